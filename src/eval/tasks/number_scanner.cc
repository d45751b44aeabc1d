#include "eval/tasks/number_scanner.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tokenizer/utf8.h"

namespace pith {
namespace {

// Zeros of decimal digits outside ASCII (Unicode category Nd) in scripts that problems are posed in.
constexpr char32_t kZeros[] = {0x0660, 0x06F0, 0x0966, 0x09E6, 0x0C66, 0x0E50, 0xFF10};

constexpr std::pair<char32_t, char32_t> kFolded[] = {
    {0x00A0, ' '}, {0x2009, ' '},  {0x202F, ' '}, {0x3000, ' '},                  // spaces
    {0x2212, '-'}, {0xFF0D, '-'},  {0xFE63, '-'},                                 // minus
    {0xFF0C, ','}, {0x066C, ','},  {0xFF0E, '.'}, {0x066B, '.'}, {0x2019, '\''},  // separators
    {0xFF04, '$'}, {0xFFE5, 0xA5}, {0xFF1A, ':'},
};

constexpr char32_t kCurrency[] = {'$', 0xA2, 0xA3, 0xA5, 0x20AC, 0x20B9, 0x20BD};

struct Multiplier {
  char32_t sign;
  size_t power;  // of ten
};
constexpr Multiplier kMultipliers[] = {{0x5341, 1}, {0x767E, 2}, {0x5343, 3}, {0x4E07, 4}, {0x842C, 4}, {0x5104, 8}, {0x4EBF, 8}};

bool IsDigit(char32_t c) { return c >= '0' && c <= '9'; }
bool IsCurrency(char32_t c) { return std::find(std::begin(kCurrency), std::end(kCurrency), c) != std::end(kCurrency); }
bool IsAsciiLetter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

char32_t Fold(char32_t c) {
  for (const char32_t zero : kZeros) {
    if (c >= zero && c < zero + 10) return '0' + (c - zero);
  }
  for (const auto& [from, to] : kFolded) {
    if (c == from) return to;
  }
  return c;
}

// An unsigned decimal while it is read.
struct Decimal {
  std::string integer, fraction;
  size_t end = 0;

  void Shift(size_t power) {
    for (; power > 0; --power) {
      integer += fraction.empty() ? '0' : fraction.front();
      if (!fraction.empty()) fraction.erase(0, 1);
    }
  }
  std::string Canonical(bool negative) const {
    const size_t first = std::min(integer.find_first_not_of('0'), integer.size());
    const size_t last = fraction.find_last_not_of('0');
    std::string text = first == integer.size() ? "0" : integer.substr(first);
    if (last != std::string::npos) text += "." + fraction.substr(0, last + 1);
    return negative && text != "0" ? "-" + text : text;
  }
};

class NumberReader {
 public:
  NumberReader(const std::u32string& text, const NumberCustoms& customs) : text_(text), customs_(customs) {}

  // The readings of the number whose digits begin at `begin`; the longest ones.
  NumberToken Read(size_t begin, bool negative) const {
    NumberToken token{.begin = begin};
    for (const bool comma : {customs_.decimal_comma, false}) {
      const Decimal decimal = customs_.myriads ? ReadMyriads(begin, kAnyPower) : ReadPlain(begin, comma);
      if (decimal.end > token.end) token.readings.clear();
      if (decimal.end < token.end) continue;
      token.end = decimal.end;
      const std::string reading = decimal.Canonical(negative);
      if (std::find(token.readings.begin(), token.readings.end(), reading) == token.readings.end()) token.readings.push_back(reading);
    }
    return token;
  }

 private:
  static constexpr size_t kAnyPower = 100;

  char32_t At(size_t i) const { return i < text_.size() ? text_[i] : 0; }

  size_t DigitsEnd(size_t i) const {
    while (IsDigit(At(i))) ++i;
    return i;
  }

  void Append(size_t begin, size_t end, std::string* out) const {
    for (; begin < end; ++begin) *out += static_cast<char>(text_[begin]);
  }

  bool SeparatesThousands(char32_t c, bool decimal_comma) const { return decimal_comma ? c == '.' || c == ' ' || c == '\'' : c == ','; }

  // Digits with separators of thousands between groups of three, and a fraction.
  Decimal ReadPlain(size_t begin, bool decimal_comma) const {
    Decimal decimal;
    size_t at = DigitsEnd(begin);
    Append(begin, at, &decimal.integer);
    const char32_t separator = At(at);
    if (at - begin >= 1 && at - begin <= 3 && SeparatesThousands(separator, decimal_comma)) {
      while (At(at) == separator && DigitsEnd(at + 1) == at + 4) {
        Append(at + 1, at + 4, &decimal.integer);
        at += 4;
      }
    }
    if (At(at) == (decimal_comma ? U',' : U'.') && IsDigit(At(at + 1))) {
      const size_t end = DigitsEnd(at + 1);
      Append(at + 1, end, &decimal.fraction);
      at = end;
    }
    decimal.end = at;
    return decimal;
  }

  // The same with multipliers: 3 followed by the sign of 10^4 and by 5000 is 35000. What follows a multiplier must be smaller than it.
  Decimal ReadMyriads(size_t begin, size_t below_power) const {
    Decimal decimal = ReadPlain(begin, false);
    const auto* row = std::find_if(std::begin(kMultipliers), std::end(kMultipliers),
                                   [&](const Multiplier& multiplier) { return multiplier.sign == At(decimal.end); });
    if (row == std::end(kMultipliers) || row->power >= below_power) return decimal;
    decimal.Shift(row->power);
    ++decimal.end;
    if (!decimal.fraction.empty() || !IsDigit(At(decimal.end))) return decimal;
    const Decimal rest = ReadMyriads(decimal.end, row->power);
    const size_t zeros = decimal.integer.size() - (decimal.integer.find_last_not_of('0') + 1);
    if (rest.integer.size() > std::min(row->power, zeros)) return decimal;
    decimal.integer.replace(decimal.integer.size() - rest.integer.size(), rest.integer.size(), rest.integer);
    decimal.fraction = rest.fraction;
    decimal.end = rest.end;
    return decimal;
  }

  const std::u32string& text_;
  const NumberCustoms customs_;
};

// Where the sign of a number whose digits begin at `begin` stands; npos without one. After a digit, a letter or a closing bracket a minus
// is a subtraction, a hyphen or a range.
size_t FindMinus(const std::u32string& text, size_t begin) {
  while (begin > 0 && IsCurrency(text[begin - 1])) --begin;
  if (begin == 0 || text[begin - 1] != '-') return std::u32string::npos;
  if (begin == 1) return 0;
  const char32_t before = text[begin - 2];
  const bool operand = IsDigit(before) || IsAsciiLetter(before) || before == ')' || before == ']' || before == '}' || before == '%';
  return operand || before == '-' ? std::u32string::npos : begin - 1;
}

}  // namespace

std::u32string FoldDigits(absl::string_view text) {
  const std::string valid = ReplaceInvalidUtf8(text);
  std::u32string folded;
  folded.reserve(valid.size());
  for (size_t position = 0; position < valid.size();) folded += Fold(DecodeUtf8(valid, &position));
  return folded;
}

std::optional<NumberToken> NextNumber(const std::u32string& text, size_t from, const NumberCustoms& customs) {
  for (size_t i = from; i < text.size(); ++i) {
    const bool bare_fraction = text[i] == '.' && i + 1 < text.size() && IsDigit(text[i + 1]) && (i == 0 || !IsDigit(text[i - 1]));
    if (!IsDigit(text[i]) && !bare_fraction) continue;
    const size_t minus = FindMinus(text, i);
    const bool negative = minus != std::u32string::npos && minus >= from;
    NumberToken token = NumberReader(text, customs).Read(i, negative);
    if (negative) token.begin = minus;
    return token;
  }
  return std::nullopt;
}

}  // namespace pith
