#include "tokenizer/template_format_spec.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "tokenizer/template_number.h"
#include "tokenizer/template_unicode.h"
#include "tokenizer/utf8.h"

namespace pith::jinja {
namespace {

constexpr int64_t kMaxPrecision = 1000;  // of reals; a double has no more digits than that

bool IsAlign(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

// Digits from `*position` on; nullopt if none.
absl::StatusOr<std::optional<int64_t>> ReadNumber(absl::string_view spec, size_t* position) {
  const size_t start = *position;
  int64_t number = 0;
  while (*position < spec.size() && absl::ascii_isdigit(static_cast<unsigned char>(spec[*position]))) {
    number = number * 10 + (spec[(*position)++] - '0');
    if (number > kMaxFormatNumber) return UsageError("expected a format width or precision of at most ", kMaxFormatNumber);
  }
  return *position > start ? std::optional<int64_t>(number) : std::nullopt;
}

// Digits with a separator every `step` of them.
std::string Group(absl::string_view digits, char separator, size_t step) {
  std::string grouped;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % step == 0) grouped.push_back(separator);
    grouped.push_back(digits[i]);
  }
  return grouped;
}

// A number in parts: sign and prefix, whole digits, and the rest from the point on.
struct NumberParts {
  std::string sign, whole, rest;
};

// Groups the whole digits and pads; zeros that pad are grouped too.
std::string Assemble(const FormatSpec& spec, NumberParts parts, size_t group_step) {
  const bool zero_pads = spec.fill == "0" && spec.align == '=';
  if (spec.grouping != 0) {
    std::string grouped = Group(parts.whole, spec.grouping, group_step);
    const int64_t room = spec.width - static_cast<int64_t>(parts.sign.size() + parts.rest.size());
    while (zero_pads && static_cast<int64_t>(grouped.size()) < room) {
      parts.whole.insert(0, "0");
      grouped = Group(parts.whole, spec.grouping, group_step);
    }
    parts.whole = std::move(grouped);
  }
  const int64_t length = static_cast<int64_t>(parts.sign.size() + parts.whole.size() + parts.rest.size());
  const Padding padding = PadTo(spec, length, '>');
  std::string out;
  const auto fill = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) out += spec.fill;
  };
  if (spec.align == '=') {
    out += parts.sign;
    fill(padding.before);
    return absl::StrCat(out, parts.whole, parts.rest);
  }
  fill(padding.before);
  absl::StrAppend(&out, parts.sign, parts.whole, parts.rest);
  fill(padding.after);
  return out;
}

std::string SignOf(const FormatSpec& spec, bool negative) {
  if (negative) return "-";
  return spec.sign == '-' ? "" : std::string(1, spec.sign);
}

// Without trailing zeros of the fraction, and the point if nothing is left behind it.
std::string TrimFraction(std::string mantissa) {
  if (mantissa.find('.') == std::string::npos) return mantissa;
  mantissa.erase(mantissa.find_last_not_of('0') + 1);
  if (mantissa.back() == '.') mantissa.pop_back();
  return mantissa;
}

// A float with a precision but no type: like 'g', but with ".0" where nothing follows the point, and an exponent one digit earlier.
std::string FormatWithPrecision(double magnitude, int precision) {
  precision = std::max(precision, 1);
  const std::string scientific = absl::StrFormat("%.*e", precision - 1, magnitude);
  const size_t e = scientific.find('e');
  const int decimal_point = std::atoi(scientific.c_str() + e + 1) + 1;
  if (decimal_point <= -4 || decimal_point > precision - 1) return TrimFraction(scientific.substr(0, e)) + scientific.substr(e);
  const std::string fixed = TrimFraction(absl::StrFormat("%.*f", precision - decimal_point, magnitude));
  return fixed.find('.') == std::string::npos ? fixed + ".0" : fixed;
}

absl::StatusOr<std::string> FormatMagnitude(const FormatSpec& spec, double magnitude) {
  const char lower = absl::ascii_tolower(static_cast<unsigned char>(spec.type));
  std::string text;
  if (!std::isfinite(magnitude)) {
    text = std::isnan(magnitude) ? "nan" : "inf";
  } else if (spec.type == 0 && !spec.precision.has_value()) {
    text = FormatFloat(magnitude);
  } else {
    const int precision = static_cast<int>(std::min(spec.precision.value_or(6), kMaxPrecision));
    if (spec.type == 0) {
      text = FormatWithPrecision(magnitude, precision);
    } else if (lower == 'e') {
      text = spec.alternate ? absl::StrFormat("%#.*e", precision, magnitude) : absl::StrFormat("%.*e", precision, magnitude);
    } else if (lower == 'g') {
      text = spec.alternate ? absl::StrFormat("%#.*g", precision, magnitude) : absl::StrFormat("%.*g", precision, magnitude);
    } else if (lower == 'f') {
      text = spec.alternate ? absl::StrFormat("%#.*f", precision, magnitude) : absl::StrFormat("%.*f", precision, magnitude);
    } else if (spec.type == '%') {
      text = absl::StrFormat("%.*f", precision, magnitude * 100);
    } else {
      return UsageError("format type '", Printable(std::string(1, spec.type)), "' does not fit a float");
    }
  }
  if (spec.type == '%') text += "%";
  if (lower != spec.type) absl::AsciiStrToUpper(&text);
  return text;
}

std::string DigitsInBase(uint64_t magnitude, int base, bool upper) {
  std::string digits;
  do {
    const auto digit = static_cast<int>(magnitude % static_cast<uint64_t>(base));
    digits.push_back(static_cast<char>(digit < 10 ? '0' + digit : (upper ? 'A' : 'a') + digit - 10));
    magnitude /= static_cast<uint64_t>(base);
  } while (magnitude > 0);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace

absl::StatusOr<FormatSpec> ParseFormatSpec(absl::string_view text) {
  FormatSpec spec;
  size_t i = 0, second = 0;
  if (!text.empty()) DecodeUtf8(text, &second);
  if (second < text.size() && second > 0 && IsAlign(text[second])) {
    spec.fill = std::string(text.substr(0, second));
    spec.align = text[second];
    i = second + 1;
  } else if (!text.empty() && IsAlign(text[0])) {
    spec.align = text[i++];
  }
  const bool has_fill = i > 1;
  const auto next_is = [&](absl::string_view set) { return i < text.size() && set.find(text[i]) != absl::string_view::npos; };
  if (next_is("+- ")) spec.sign = text[i++];
  if (next_is("#")) {
    spec.alternate = true;
    ++i;
  }
  if (next_is("0")) {
    if (!has_fill) spec.fill.assign(1, '0');
    if (spec.align == 0) spec.align = '0';  // '=' for numbers, '<' for text
    ++i;
  }
  ASSIGN_OR_RETURN(const std::optional<int64_t> width, ReadNumber(text, &i));
  spec.width = width.value_or(0);
  if (next_is(",_")) spec.grouping = text[i++];
  if (next_is(".")) {
    ++i;
    ASSIGN_OR_RETURN(spec.precision, ReadNumber(text, &i));
    if (!spec.precision.has_value()) return UsageError("format spec '", Printable(text), "' misses a precision after '.'");
  }
  if (i < text.size()) spec.type = text[i++];
  if (i < text.size()) return UsageError("expected a format spec, found '", Printable(text), "'");
  return spec;
}

absl::StatusOr<std::string> FormatInteger(const FormatSpec& given, int64_t number) {
  FormatSpec spec = given;
  if (spec.align == '0') spec.align = '=';
  int base = 10;
  std::string prefix;
  switch (spec.type) {
    case 0:
    case 'd': break;
    case 'b':
      base = 2;
      prefix = "0b";
      break;
    case 'o':
      base = 8;
      prefix = "0o";
      break;
    case 'x':
    case 'X':
      base = 16;
      prefix = spec.type == 'x' ? "0x" : "0X";
      break;
    case 'c': return UsageError("format type 'c' is not supported");
    default: return FormatReal(given, static_cast<double>(number));
  }
  if (spec.precision.has_value()) return UsageError("a precision does not fit the format of an int");
  if (spec.grouping == ',' && base != 10) return UsageError("',' does not fit the format type '", std::string(1, spec.type), "'");
  const uint64_t magnitude = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  std::string digits = DigitsInBase(magnitude, base, spec.type == 'X');
  const auto missing = spec.min_digits.value_or(0) - static_cast<int64_t>(digits.size());
  if (missing > 0) digits.insert(0, std::string(static_cast<size_t>(missing), '0'));
  return Assemble(spec, {SignOf(spec, number < 0) + (spec.alternate ? prefix : ""), std::move(digits), ""}, base == 10 ? 3 : 4);
}

absl::StatusOr<std::string> FormatReal(const FormatSpec& given, double number) {
  FormatSpec spec = given;
  if (spec.align == '0') spec.align = '=';
  ASSIGN_OR_RETURN(const std::string text, FormatMagnitude(spec, std::abs(number)));
  const size_t whole = std::min(text.find_first_not_of("0123456789"), text.size());
  const bool negative = std::signbit(number) && !std::isnan(number);
  return Assemble(spec, {SignOf(spec, negative), text.substr(0, whole), text.substr(whole)}, 3);
}

Padding PadTo(const FormatSpec& spec, int64_t length, char default_align) {
  const int64_t missing = std::max<int64_t>(0, spec.width - length);
  const char align = spec.align == 0 || spec.align == '0' ? default_align : spec.align;
  if (align == '<') return {0, missing};
  if (align == '^') return {missing / 2, missing - missing / 2};
  return {missing, 0};
}

}  // namespace pith::jinja
