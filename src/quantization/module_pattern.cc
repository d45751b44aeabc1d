#define PCRE2_CODE_UNIT_WIDTH 8
#include "quantization/module_pattern.h"

#include <pcre2.h>

#include "absl/strings/strip.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr size_t kMaxPatternBytes = 4096;
constexpr size_t kMaxNestedParentheses = 100;
constexpr uint32_t kMatchLimit = 1'000'000;  // backtracking steps: milliseconds
constexpr uint32_t kHeapLimitKib = 16 << 10;

std::string Pcre2Message(int error) {
  unsigned char text[256];
  return pcre2_get_error_message(error, text, sizeof(text)) < 0 ? "unknown error" : std::string(reinterpret_cast<const char*>(text));
}

}  // namespace

struct ModulePattern::Regex {
  explicit Regex(pcre2_code* code) : code(code) {}
  ~Regex() { pcre2_code_free(code); }
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  pcre2_code* const code;
};

absl::StatusOr<ModulePattern> ModulePattern::Parse(absl::string_view text) {
  if (text.empty()) return BadFileError("module pattern: expected a name or re:<expression>, found an empty text");
  if (text.size() > kMaxPatternBytes) {
    return BadFileError("module pattern: expected at most ", kMaxPatternBytes, " bytes, found ", text.size());
  }
  ModulePattern pattern = Literal(text);
  absl::string_view expression = text;
  if (!absl::ConsumePrefix(&expression, "re:")) return pattern;

  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  if (context == nullptr) return OutOfMemoryError("module pattern: no memory for a regular expression");
  pcre2_set_parens_nest_limit(context, kMaxNestedParentheses);
  int error = 0;
  size_t offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(), PCRE2_ANCHORED, &error, &offset,
                                   context);
  pcre2_compile_context_free(context);
  if (code == nullptr) {
    return BadFileError("module pattern \"", Printable(text), "\": expected a regular expression, found ", Pcre2Message(error),
                        " at offset ", offset);
  }
  pattern.regex_ = std::make_shared<const Regex>(code);
  return pattern;
}

ModulePattern ModulePattern::Literal(absl::string_view name) {
  ModulePattern pattern;
  pattern.text_ = std::string(name);
  return pattern;
}

absl::StatusOr<ModulePattern::Match> ModulePattern::Matches(absl::string_view module_name, absl::string_view class_name) const {
  if (regex_ == nullptr) return text_ == module_name ? Match::kName : text_ == class_name ? Match::kClass : Match::kNone;

  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  int result = PCRE2_ERROR_NOMEMORY;
  if (context != nullptr && data != nullptr) {
    pcre2_set_match_limit(context, kMatchLimit);
    pcre2_set_heap_limit(context, kHeapLimitKib);
    result = pcre2_match(regex_->code, reinterpret_cast<PCRE2_SPTR>(module_name.data()), module_name.size(), 0, 0, data, context);
  }
  pcre2_match_data_free(data);
  pcre2_match_context_free(context);
  if (result == PCRE2_ERROR_NOMATCH) return Match::kNone;
  if (result < 0) {
    return BadFileError("module pattern \"", Printable(text_), "\": matching \"", Printable(module_name), "\": ", Pcre2Message(result));
  }
  return Match::kRegex;
}

}  // namespace pith
