#include "tokenizer/template_lexer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "tokenizer/template_number.h"
#include "tokenizer/template_unicode.h"
#include "tokenizer/utf8.h"

namespace pith::jinja {
namespace {

constexpr size_t kNone = absl::string_view::npos;

// Longest first, as they are tried.
constexpr absl::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                            "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

bool IsNameCharacter(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool IsDigitCharacter(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// "\r\n" and "\r" become "\n"; one newline at the end goes.
std::string NormalizeNewlines(absl::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text.push_back(source[i]);
    }
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// The end of the white space from `position` on.
size_t SkipSpace(absl::string_view source, size_t position) {
  while (position < source.size()) {
    size_t next = position;
    if (!IsSpace(DecodeUtf8(source, &next))) break;
    position = next;
  }
  return position;
}

// The start of the white space that ends `text`.
size_t TrimmedSize(absl::string_view text) {
  size_t size = text.size();
  while (size > 0) {
    const size_t start = PreviousUtf8(text, size);
    size_t next = start;
    if (!IsSpace(DecodeUtf8(text, &next))) break;
    size = start;
  }
  return size;
}

// Digits with single underscores between them, from `position` on; the end, or `position` if there are none.
size_t SkipDigits(absl::string_view source, size_t position) {
  size_t end = position;
  while (position < source.size() && IsDigitCharacter(source[position])) {
    end = ++position;
    if (position < source.size() && source[position] == '_') ++position;
  }
  return end;
}

class Lexer {
 public:
  explicit Lexer(absl::string_view source) : source_(source) {}

  absl::StatusOr<std::vector<Token>> Run() {
    while (position_ < source_.size()) RETURN_IF_ERROR(LexRoot());
    Add(TokenKind::kEnd);
    return std::move(tokens_);
  }

 private:
  Token& Add(TokenKind kind, std::string text = "") {
    tokens_.push_back({.kind = kind, .line = line_, .text = std::move(text)});
    return tokens_.back();
  }

  template <typename... Args> absl::Status Fail(const Args&... args) const { return UsageError("line ", line_, ": ", args...); }

  // Moves to `position`, counting lines.
  void MoveTo(size_t position) {
    line_ += static_cast<int>(std::count(source_.begin() + position_, source_.begin() + position, '\n'));
    position_ = position;
  }

  // Adds the text up to the tag at `tag`, stripped as the tag's sign and kind ask.
  void AddData(size_t tag, char sign, bool strips_line) {
    absl::string_view text = absl::string_view(source_).substr(position_, tag - position_);
    if (sign == '-') {
      text = text.substr(0, TrimmedSize(text));
    } else if (sign != '+' && strips_line) {
      const size_t newline = text.rfind('\n');
      const size_t line = newline == kNone ? 0 : newline + 1;
      if ((line > 0 || line_starting_) && TrimmedSize(text.substr(line)) == 0) text = text.substr(0, line);
    }
    if (!text.empty()) Add(TokenKind::kData, std::string(text));
    MoveTo(tag);
  }

  bool Has(size_t position, absl::string_view text) const { return absl::string_view(source_).substr(position, text.size()) == text; }

  char SignAt(size_t position) const {
    if (position >= source_.size()) return 0;
    return source_[position] == '-' || source_[position] == '+' ? source_[position] : 0;
  }

  absl::Status LexRoot() {
    size_t tag = position_;
    while (true) {
      tag = source_.find('{', tag);
      if (tag == kNone || tag + 1 >= source_.size()) {
        Add(TokenKind::kData, source_.substr(position_));
        MoveTo(source_.size());
        return absl::OkStatus();
      }
      if (absl::StrContains("{%#", source_.substr(tag + 1, 1))) break;
      ++tag;
    }
    const char type = source_[tag + 1], sign = SignAt(tag + 2);
    AddData(tag, sign, type != '{');
    size_t raw_body = kNone;
    if (type == '%' && (raw_body = EndOfRawTag(tag)) != kNone) return LexRaw(raw_body);
    MoveTo(tag + 2 + (sign != 0 ? 1 : 0));
    if (type == '#') return LexComment();
    Add(type == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin);
    return LexTag(type == '{');
  }

  // Behind "{% raw %}" (or "-%}" and white space) at `tag`, or kNone if that is another tag.
  size_t EndOfRawTag(size_t tag) const {
    size_t at = SkipSpace(source_, tag + 2 + (SignAt(tag + 2) != 0 ? 1 : 0));
    if (!Has(at, "raw")) return kNone;
    at = SkipSpace(source_, at + 3);
    if (Has(at, "-%}")) return SkipSpace(source_, at + 3);
    return Has(at, "%}") ? at + 2 : kNone;
  }

  absl::Status LexRaw(size_t body) {
    EndTag(body);
    if (body == source_.size()) return absl::OkStatus();
    for (size_t tag = source_.find("{%", body); tag != kNone; tag = source_.find("{%", tag + 1)) {
      const char sign = SignAt(tag + 2);
      size_t at = SkipSpace(source_, tag + 2 + (sign != 0 ? 1 : 0));
      if (!Has(at, "endraw")) continue;
      at = SkipSpace(source_, at + 6);
      const size_t end = EndOfClosing(at, "%}");
      if (end == kNone) continue;
      AddData(tag, sign, /*strips_line=*/true);
      EndTag(end);
      return absl::OkStatus();
    }
    return Fail("raw block without {% endraw %}");
  }

  absl::Status LexComment() {
    if (position_ == source_.size()) return absl::OkStatus();
    for (size_t at = source_.find("#}", position_); at != kNone; at = source_.find("#}", at + 1)) {
      const bool strips = at > position_ && source_[at - 1] == '-';
      EndTag(strips ? SkipSpace(source_, at + 2) : BehindNewline(at + 2, at > position_ && source_[at - 1] == '+'));
      return absl::OkStatus();
    }
    return Fail("comment without #}");
  }

  size_t BehindNewline(size_t position, bool keep) const {
    return !keep && position < source_.size() && source_[position] == '\n' ? position + 1 : position;
  }

  // Behind "+%}", "-%}" and white space, or "%}" and a newline at `at`; kNone if none is there. "}}" strips no newline and takes no "+".
  size_t EndOfClosing(size_t at, absl::string_view closing) const {
    const char sign = SignAt(at);
    if (sign == '-' && Has(at + 1, closing)) return SkipSpace(source_, at + 3);
    if (sign == '+' && closing == "%}" && Has(at + 1, closing)) return at + 3;
    if (!Has(at, closing)) return kNone;
    return BehindNewline(at + 2, /*keep=*/closing == "}}");
  }

  void EndTag(size_t end) {
    MoveTo(end);
    line_starting_ = source_[end - 1] == '\n';
  }

  absl::Status LexTag(bool variable) {
    std::string brackets;
    while (position_ < source_.size()) {
      const size_t end = brackets.empty() ? EndOfClosing(position_, variable ? "}}" : "%}") : kNone;
      if (end != kNone) {
        Add(variable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd);
        EndTag(end);
        return absl::OkStatus();
      }
      const size_t token = SkipSpace(source_, position_);
      if (token != position_) {
        MoveTo(token);
        continue;
      }
      RETURN_IF_ERROR(LexToken(&brackets));
    }
    return absl::OkStatus();
  }

  absl::Status LexToken(std::string* brackets) {
    const char c = source_[position_];
    if (IsDigitCharacter(c)) return LexNumber();
    if (IsNameCharacter(c)) {
      size_t end = position_;
      while (end < source_.size() && IsNameCharacter(source_[end])) ++end;
      Add(TokenKind::kName, source_.substr(position_, end - position_));
      MoveTo(end);
      return absl::OkStatus();
    }
    if (c == '"' || c == '\'') return LexString();
    for (const absl::string_view symbol : kOperators) {
      if (!Has(position_, symbol)) continue;
      RETURN_IF_ERROR(Balance(c, brackets));
      Add(TokenKind::kOperator, std::string(symbol));
      MoveTo(position_ + symbol.size());
      return absl::OkStatus();
    }
    size_t next = position_;
    DecodeUtf8(source_, &next);
    return Fail("unexpected character '", Printable(source_.substr(position_, next - position_)), "'");
  }

  absl::Status Balance(char c, std::string* brackets) const {
    if (c == '(' || c == '[' || c == '{') {
      brackets->push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (brackets->empty()) return Fail("unexpected '", std::string(1, c), "'");
      if (brackets->back() != c) return Fail("expected '", std::string(1, brackets->back()), "', found '", std::string(1, c), "'");
      brackets->pop_back();
    }
    return absl::OkStatus();
  }

  absl::Status LexNumber() {
    if (position_ == 0 || source_[position_ - 1] != '.') {
      const size_t end = EndOfFloat();
      if (end != kNone) {
        Add(TokenKind::kFloat).real = *ParseFloat(source_.substr(position_, end - position_));
        MoveTo(end);
        return absl::OkStatus();
      }
    }
    const size_t end = EndOfInteger();
    ASSIGN_OR_RETURN(const std::optional<int64_t> number, Located(ParseInteger(source_.substr(position_, end - position_), 0)));
    Add(TokenKind::kInteger).integer = *number;
    MoveTo(end);
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<int64_t>> Located(absl::StatusOr<std::optional<int64_t>> parsed) const {
    return parsed.ok() ? parsed : Fail(parsed.status().message());
  }

  // digits, then a fraction, an exponent or both; kNone for anything else.
  size_t EndOfFloat() const {
    const size_t whole = SkipDigits(source_, position_);
    size_t end = whole;
    if (end < source_.size() && source_[end] == '.') {
      const size_t fraction = SkipDigits(source_, end + 1);
      if (fraction > end + 1) end = fraction;
    }
    const bool has_fraction = end > whole;
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const size_t digits = end + 1 + (SignAt(end + 1) != 0 ? 1 : 0);
      const size_t exponent = SkipDigits(source_, digits);
      if (exponent > digits) return exponent;
    }
    return has_fraction ? end : kNone;
  }

  // 0x, 0o and 0b with digits, a number that does not start with 0, or zeros.
  size_t EndOfInteger() const {
    if (source_[position_] != '0') return SkipDigits(source_, position_);
    const char prefix = position_ + 1 < source_.size() ? absl::ascii_tolower(static_cast<unsigned char>(source_[position_ + 1])) : 0;
    const absl::string_view digits = prefix == 'x' ? "0123456789abcdefABCDEF" : prefix == 'o' ? "01234567" : prefix == 'b' ? "01" : "";
    size_t end = position_ + (digits.empty() ? 1 : 2);
    const absl::string_view accepted = digits.empty() ? absl::string_view("0") : digits;
    const size_t first = end;
    while (end < source_.size()) {
      const size_t digit = source_[end] == '_' ? end + 1 : end;
      if (digit >= source_.size() || !absl::StrContains(accepted, source_.substr(digit, 1))) break;
      end = digit + 1;
    }
    return !digits.empty() && end == first ? position_ + 1 : end;
  }

  absl::Status LexString() {
    const char quote = source_[position_];
    size_t end = position_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return Fail("string without a closing ", std::string(1, quote));
    std::string text;
    RETURN_IF_ERROR(Unescape(absl::string_view(source_).substr(position_ + 1, end - position_ - 1), &text));
    Add(TokenKind::kString, std::move(text));
    MoveTo(end + 1);
    return absl::OkStatus();
  }

  // Python's unicode-escape, after non-ASCII characters were written as escapes.
  absl::Status Unescape(absl::string_view body, std::string* text) const {
    for (size_t i = 0; i < body.size();) {
      if (body[i] != '\\') {
        text->push_back(body[i++]);
        continue;
      }
      RETURN_IF_ERROR(UnescapeOne(body, &i, text));
    }
    return absl::OkStatus();
  }

  // One escape; body[*i] is the backslash, and a character follows.
  absl::Status UnescapeOne(absl::string_view body, size_t* i, std::string* text) const {
    constexpr absl::string_view kLetters = "\\'\"abfnrtv", kMeanings = "\\'\"\a\b\f\n\r\t\v";
    const char c = body[*i + 1];
    const size_t letter = kLetters.find(c);
    if (letter != kNone) {
      text->push_back(kMeanings[letter]);
      *i += 2;
    } else if (c == '\n') {
      *i += 2;
    } else if (c >= '0' && c <= '7') {
      char32_t octal = 0;
      size_t end = *i + 1;
      while (end < body.size() && end < *i + 4 && body[end] >= '0' && body[end] <= '7') octal = octal * 8 + (body[end++] - '0');
      AppendUtf8(octal, text);
      *i = end;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      return UnescapeHex(body, c == 'x' ? 2 : c == 'u' ? 4 : 8, i, text);
    } else if (c == 'N') {
      return Fail("escape \\N is not supported");
    } else if (static_cast<unsigned char>(c) < 0x80) {
      text->append({'\\', c});
      *i += 2;
    } else {
      ++*i;
      const char32_t point = DecodeUtf8(body, i);
      const auto value = static_cast<uint32_t>(point);
      if (value < 0x100) {
        absl::StrAppendFormat(text, "\\x%02x", value);
      } else if (value < 0x10000) {
        absl::StrAppendFormat(text, "\\u%04x", value);
      } else {
        absl::StrAppendFormat(text, "\\U%08x", value);
      }
    }
    return absl::OkStatus();
  }

  absl::Status UnescapeHex(absl::string_view body, size_t digits, size_t* i, std::string* text) const {
    const absl::string_view hex = body.substr(*i + 2, digits);
    uint32_t point = 0;
    if (hex.size() != digits || !std::all_of(hex.begin(), hex.end(), [](unsigned char h) { return absl::ascii_isxdigit(h); }) ||
        !absl::SimpleHexAtoi(hex, &point)) {
      return Fail("expected ", digits, " hexadecimal digits after ", body.substr(*i, 2), ", found '", Printable(hex), "'");
    }
    if (point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
      return Fail("escape of no Unicode character: ", body.substr(*i, 2 + digits));
    AppendUtf8(point, text);
    *i += 2 + digits;
    return absl::OkStatus();
  }

  const std::string source_;
  size_t position_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // whether the last thing before position_ ended with a newline
  std::vector<Token> tokens_;
};

}  // namespace

std::string Describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData: return "text";
    case TokenKind::kVariableBegin: return "'{{'";
    case TokenKind::kVariableEnd: return "'}}'";
    case TokenKind::kBlockBegin: return "'{%'";
    case TokenKind::kBlockEnd: return "'%}'";
    case TokenKind::kName: return absl::StrCat("name '", token.text, "'");
    case TokenKind::kString: return "a string";
    case TokenKind::kInteger:
    case TokenKind::kFloat: return "a number";
    case TokenKind::kOperator: return absl::StrCat("'", token.text, "'");
    default: return "the end of the template";
  }
}

absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view source) { return Lexer(NormalizeNewlines(source)).Run(); }

}  // namespace pith::jinja
