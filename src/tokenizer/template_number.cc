#include "tokenizer/template_number.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "tokenizer/template_unicode.h"
#include "tokenizer/utf8.h"

namespace pith::jinja {
namespace {

absl::Status Overflow() { return UsageError("expected integers of 64 bits, found an overflow"); }
absl::Status DivisionByZero() { return UsageError("division by zero"); }

// Without surrounding white space, any of Python's.
absl::string_view Strip(absl::string_view text) {
  size_t begin = text.size(), end = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    if (IsSpace(DecodeUtf8(text, &i))) continue;
    if (begin == text.size()) begin = start;
    end = i;
  }
  return begin < end ? text.substr(begin, end - begin) : absl::string_view();
}

// Removes underscores that stand between two digits (or after a base prefix); false if one stands elsewhere.
bool RemoveUnderscores(absl::string_view text, std::string* plain) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      plain->push_back(text[i]);
    } else if (i == 0 || i + 1 == text.size() || !absl::ascii_isalnum(text[i - 1]) || !absl::ascii_isalnum(text[i + 1])) {
      return false;
    }
  }
  return true;
}

bool TakeSign(absl::string_view* text) {
  if (text->empty() || ((*text)[0] != '-' && (*text)[0] != '+')) return false;
  const bool negative = (*text)[0] == '-';
  text->remove_prefix(1);
  return negative;
}

int DigitValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = absl::ascii_tolower(c);
  return c >= 'a' && c <= 'z' ? c - 'a' + 10 : 36;
}

// 2, 8 or 16 for 0b, 0o and 0x; 0 without a prefix.
int PrefixBase(absl::string_view text) {
  if (text.size() < 2 || text[0] != '0') return 0;
  switch (absl::ascii_tolower(text[1])) {
    case 'b': return 2;
    case 'o': return 8;
    case 'x': return 16;
    default: return 0;
  }
}

// digits[.digits][e[sign]digits] or .digits...
bool IsDecimalFloat(absl::string_view text) {
  size_t i = 0;
  const auto digits = [&] {
    const size_t start = i;
    while (i < text.size() && absl::ascii_isdigit(text[i])) ++i;
    return i > start;
  };
  bool mantissa = digits();
  if (i < text.size() && text[i] == '.') {
    ++i;
    mantissa = digits() || mantissa;
  }
  if (!mantissa) return false;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    if (!digits()) return false;
  }
  return i == text.size();
}

// The nearest double; infinity past the largest. `text` is a well-formed decimal.
double ReadDecimal(absl::string_view text) {
  double number = 0;
  (void)absl::SimpleAtod(text, &number);
  return number;
}

}  // namespace

std::string FormatFloat(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto written = std::to_chars(buffer, buffer + sizeof(buffer), number, std::chars_format::scientific);
  absl::string_view text(buffer, static_cast<size_t>(written.ptr - buffer));
  const std::string sign = TakeSign(&text) ? "-" : "";
  const size_t e = text.find('e');
  const int exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  std::string digits(text.substr(0, 1));
  if (e > 2) absl::StrAppend(&digits, text.substr(2, e - 2));
  if (exponent < -4 || exponent >= 16) {
    const std::string fraction = digits.size() > 1 ? absl::StrCat(".", digits.substr(1)) : "";
    return absl::StrFormat("%s%c%se%c%02d", sign, digits[0], fraction, exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return absl::StrCat(sign, "0.", std::string(static_cast<size_t>(-exponent - 1), '0'), digits);
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return absl::StrCat(sign, digits, std::string(whole - digits.size(), '0'), ".0");
  return absl::StrCat(sign, digits.substr(0, whole), ".", digits.substr(whole));
}

std::optional<double> ParseFloat(absl::string_view text) {
  std::string plain;
  if (!RemoveUnderscores(Strip(text), &plain)) return std::nullopt;
  absl::string_view rest = plain;
  const double sign = TakeSign(&rest) ? -1 : 1;
  const std::string lower = absl::AsciiStrToLower(rest);
  if (lower == "inf" || lower == "infinity") return sign * std::numeric_limits<double>::infinity();
  if (lower == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (!IsDecimalFloat(rest)) return std::nullopt;
  return sign * ReadDecimal(rest);
}

absl::StatusOr<std::optional<int64_t>> ParseInteger(absl::string_view text, int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) return UsageError("expected a base of 2 to 36 or 0, found ", base);
  std::string plain;
  if (!RemoveUnderscores(Strip(text), &plain)) return std::optional<int64_t>();
  absl::string_view rest = plain;
  const bool negative = TakeSign(&rest);
  const int prefix = PrefixBase(rest);
  if (prefix != 0 && (base == 0 || base == prefix)) {
    rest.remove_prefix(2);
    base = prefix;
  } else if (base == 0) {
    base = 10;
    if (rest.size() > 1 && rest[0] == '0' && rest.find_first_not_of('0') != absl::string_view::npos) return std::optional<int64_t>();
  }
  if (rest.empty()) return std::optional<int64_t>();
  int64_t number = 0;
  bool overflow = false;
  for (const char c : rest) {
    const int digit = DigitValue(c);
    if (digit >= base) return std::optional<int64_t>();
    overflow = overflow || __builtin_mul_overflow(number, base, &number) ||
               __builtin_add_overflow(number, negative ? -digit : digit, &number);
  }
  if (overflow) return Overflow();
  return std::optional<int64_t>(number);
}

double RoundToDigits(double number, int64_t digits) {
  if (!std::isfinite(number) || digits > 330) return number;
  if (digits >= 0) return ReadDecimal(absl::StrFormat("%.*f", static_cast<int>(digits), number));
  if (digits < -308) return number < 0 ? -0.0 : 0.0;
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  const double magnitude = std::abs(number), rest = std::fmod(magnitude, unit);
  double whole = magnitude - rest;
  const bool odd = std::fmod(whole, 2 * unit) != 0;
  if (rest > unit / 2 || (rest == unit / 2 && odd)) whole += unit;
  return std::copysign(whole, number);
}

absl::StatusOr<int64_t> RoundToDigits(int64_t number, int64_t digits) {
  if (digits >= 0) return number;
  if (digits < -18) return int64_t{0};
  int64_t unit = 1;
  for (int64_t i = digits; i < 0; ++i) unit *= 10;
  ASSIGN_OR_RETURN(const int64_t quotient, FloorDivideIntegers(number, unit));
  const int64_t rest = number - quotient * unit;
  const bool up = rest > unit - rest || (rest == unit - rest && quotient % 2 != 0);
  return MultiplyIntegers(quotient + (up ? 1 : 0), unit);
}

absl::StatusOr<int64_t> AddIntegers(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return Overflow();
  return sum;
}

absl::StatusOr<int64_t> SubtractIntegers(int64_t a, int64_t b) {
  int64_t difference;
  if (__builtin_sub_overflow(a, b, &difference)) return Overflow();
  return difference;
}

absl::StatusOr<int64_t> MultiplyIntegers(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return Overflow();
  return product;
}

absl::StatusOr<int64_t> FloorDivideIntegers(int64_t a, int64_t b) {
  if (b == 0) return DivisionByZero();
  if (b == -1) return SubtractIntegers(0, a);
  const int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

absl::StatusOr<int64_t> RemainderOfIntegers(int64_t a, int64_t b) {
  if (b == 0) return DivisionByZero();
  if (b == -1) return int64_t{0};
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

absl::StatusOr<int64_t> PowerOfIntegers(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (true) {
    if (exponent & 1) {
      ASSIGN_OR_RETURN(result, MultiplyIntegers(result, base));
    }
    exponent >>= 1;
    if (exponent == 0) return result;
    if (base != 0 && base != 1 && base != -1) {
      ASSIGN_OR_RETURN(base, MultiplyIntegers(base, base));
    } else {
      base *= base;
    }
  }
}

absl::StatusOr<double> FloorDivideFloats(double a, double b) {
  if (b == 0) return DivisionByZero();
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

absl::StatusOr<double> RemainderOfFloats(double a, double b) {
  if (b == 0) return DivisionByZero();
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

absl::StatusOr<double> PowerOfFloats(double base, double exponent) {
  if (base == 0 && exponent < 0) return UsageError("expected a non-zero base for a negative power, found 0");
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) && std::floor(exponent) != exponent) {
    return UsageError("expected an integer power for a negative base (complex numbers are not supported)");
  }
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) return UsageError("expected a finite power, found an overflow");
  return result;
}

absl::StatusOr<int64_t> TruncateToInteger(double number) {
  if (!(std::abs(number) < 9223372036854775808.0)) return UsageError("expected a number within 64 bits, found ", FormatFloat(number));
  return static_cast<int64_t>(number);
}

}  // namespace pith::jinja
