#include "tokenizer/regex_translation.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace pith {
namespace {

// Without the brackets, so that they fit into a set as well.
constexpr char kWordSet[] = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";

class Translator {
 public:
  explicit Translator(absl::string_view pattern) : pattern_(pattern) {}

  absl::StatusOr<std::string> Run() {
    while (position_ < pattern_.size()) {
      const char c = pattern_[position_];
      if (c == '\\') {
        RETURN_IF_ERROR(Escape(/*in_set=*/false));
      } else if (c == '[') {
        RETURN_IF_ERROR(Set());
      } else {
        RETURN_IF_ERROR(Plain(c));
      }
    }
    return std::move(out_);
  }

 private:
  char At(size_t position) const { return position < pattern_.size() ? pattern_[position] : '\0'; }

  absl::Status Refuse(absl::string_view construct) const {
    return NotSupportedError("pattern '", Printable(pattern_), "': ", construct, " at byte ", position_, " is not supported");
  }
  absl::Status Unfinished() const {
    return BadFileError("pattern '", Printable(pattern_), "': expected the construct at byte ", position_, " to end, found the end");
  }

  absl::Status Plain(char c) {
    if (c == '{' && At(position_ + 1) == ',') return Refuse("{,n}");
    if (c == '}' && At(position_ + 1) == '+') return Refuse("{n,m}+");
    if (c == '(' && At(position_ + 1) == '?' && At(position_ + 2) == '~') return Refuse("(?~");
    out_.push_back(c);
    ++position_;
    return absl::OkStatus();
  }

  // A backslash and what belongs to it.
  absl::Status Escape(bool in_set) {
    if (position_ + 1 >= pattern_.size()) return Unfinished();
    const char c = pattern_[position_ + 1];
    if (c == 'p' || c == 'P' || c == 'x' || c == 'u') return LongEscape(c);
    const absl::string_view translation = ShortEscape(c, in_set);
    if (!translation.empty()) {
      absl::StrAppend(&out_, translation);
    } else if (c == 'w') {
      out_ += in_set ? std::string(kWordSet) : absl::StrCat("[", kWordSet, "]");
    } else if (c == 'W' && !in_set) {
      out_ += absl::StrCat("[^", kWordSet, "]");
    } else if (absl::ascii_isalnum(static_cast<unsigned char>(c))) {
      return Refuse(absl::StrCat("\\", absl::string_view(&c, 1), in_set ? " in a set" : ""));
    } else {
      absl::StrAppend(&out_, pattern_.substr(position_, 2));  // an escaped punctuation character, or the first byte of any other
    }
    position_ += 2;
    return absl::OkStatus();
  }

  static absl::string_view ShortEscape(char c, bool in_set) {
    switch (c) {
      case 's': return R"(\p{White_Space})";
      case 'S': return R"(\P{White_Space})";
      case 'd': return R"(\p{Nd})";
      case 'D': return R"(\P{Nd})";
      case 'h': return in_set ? "0-9a-fA-F" : "[0-9a-fA-F]";
      case 'H': return in_set ? "" : "[^0-9a-fA-F]";
      case 'n': return R"(\n)";
      case 'r': return R"(\r)";
      case 't': return R"(\t)";
      case 'f': return R"(\f)";
      case 'a': return R"(\a)";
      case 'e': return R"(\e)";
      case 'v': return R"(\x0b)";
      case 'A': return in_set ? "" : R"(\A)";
      case 'z': return in_set ? "" : R"(\z)";
      case 'Z': return in_set ? "" : R"(\Z)";
      default: return "";
    }
  }

  // \p{...} \P{...} \x{...} \xHH \uHHHH
  absl::Status LongEscape(char c) {
    const size_t body = position_ + 2;
    if (At(body) == '{' && c != 'u') {
      const size_t close = pattern_.find('}', body);
      if (close == absl::string_view::npos) return Unfinished();
      absl::StrAppend(&out_, pattern_.substr(position_, close + 1 - position_));
      position_ = close + 1;
      return absl::OkStatus();
    }
    if (c == 'p' || c == 'P') return Refuse("\\p without braces");
    const size_t max_digits = c == 'u' ? 4 : 2;
    size_t digits = 0;
    while (digits < max_digits && absl::ascii_isxdigit(static_cast<unsigned char>(At(body + digits)))) ++digits;
    if (digits == 0 || (c == 'u' && digits != 4)) return Unfinished();
    out_ += absl::StrCat("\\x{", pattern_.substr(body, digits), "}");
    position_ = body + digits;
    return absl::OkStatus();
  }

  absl::Status Set() {
    out_.push_back('[');
    ++position_;
    if (At(position_) == '^') {
      out_.push_back('^');
      ++position_;
    }
    bool first = true;
    for (int depth = 1; depth > 0; first = false) {
      if (position_ >= pattern_.size()) return Unfinished();
      const char c = pattern_[position_];
      if (c == '\\') {
        RETURN_IF_ERROR(Escape(/*in_set=*/true));
      } else if (c == '[') {
        RETURN_IF_ERROR(NestedSet(&depth));
      } else if (c == '&' && At(position_ + 1) == '&') {
        return Refuse("&&");
      } else {
        if (c == ']' && first) return Refuse("an empty set");
        if (c == ']') --depth;
        if (c != ']' || depth == 0) out_.push_back(c);
        ++position_;
      }
    }
    return absl::OkStatus();
  }

  // "[" inside a set: a POSIX class, copied, or a nested set, whose brackets go.
  absl::Status NestedSet(int* depth) {
    if (At(position_ + 1) == ':') {
      const size_t close = pattern_.find(":]", position_ + 2);
      if (close == absl::string_view::npos) return Unfinished();
      absl::StrAppend(&out_, pattern_.substr(position_, close + 2 - position_));
      position_ = close + 2;
      return absl::OkStatus();
    }
    if (At(position_ + 1) == '^') return Refuse("a negated nested set");
    if (At(position_ + 1) == ']') return Refuse("an empty set");
    ++*depth;
    ++position_;
    return absl::OkStatus();
  }

  absl::string_view pattern_;
  size_t position_ = 0;
  std::string out_;
};

}  // namespace

absl::StatusOr<std::string> TranslateOnigurumaPattern(absl::string_view pattern) { return Translator(pattern).Run(); }

}  // namespace pith
