#define PCRE2_CODE_UNIT_WIDTH 8
#include "eval/tasks/text_match.h"

#include <pcre2.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/match.h"
#include "base/status.h"
#include "tokenizer/unicode_class.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

constexpr size_t kMaxExpressionBytes = 4096;
constexpr size_t kMaxNestedGroups = 100;
constexpr uint32_t kMaxMatchSteps = 1'000'000;  // of backtracking: milliseconds
constexpr uint32_t kMaxHeapKib = 64 << 10;

std::string ReasonOf(int error) {
  unsigned char text[256];
  return pcre2_get_error_message(error, text, sizeof(text)) < 0 ? "an unknown error" : std::string(reinterpret_cast<const char*>(text));
}

std::string Compose(const std::string& valid, bool ignore_case) {
  const int options = UTF8PROC_STABLE | UTF8PROC_COMPOSE | (ignore_case ? UTF8PROC_CASEFOLD : 0);
  utf8proc_uint8_t* composed = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(valid.data()),
                                             static_cast<utf8proc_ssize_t>(valid.size()), &composed,
                                             static_cast<utf8proc_option_t>(options));
  if (size < 0) return valid;  // out of memory
  std::string text(reinterpret_cast<const char*>(composed), static_cast<size_t>(size));
  std::free(composed);
  return text;
}

std::string CollapseSpaces(absl::string_view text) {
  std::string out;
  bool pending = false;
  for (size_t position = 0; position < text.size();) {
    const char32_t c = DecodeUtf8(text, &position);
    if (HasUnicodeClass(c, kClassSpace)) {
      pending = true;
      continue;
    }
    if (pending && !out.empty()) out += ' ';
    pending = false;
    AppendUtf8(c, &out);
  }
  return out;
}

}  // namespace

std::string NormalizeAnswer(absl::string_view text, bool ignore_case) {
  return CollapseSpaces(Compose(ReplaceInvalidUtf8(text), ignore_case));
}

bool MatchesExactly(absl::string_view text, const std::vector<std::string>& answers, bool ignore_case) {
  const std::string normal = NormalizeAnswer(text, ignore_case);
  return std::any_of(answers.begin(), answers.end(),
                     [&](const std::string& answer) { return NormalizeAnswer(answer, ignore_case) == normal; });
}

bool ContainsAny(absl::string_view text, const std::vector<std::string>& answers, bool ignore_case) {
  return ShareContained(text, answers, ignore_case) > 0;
}

double ShareContained(absl::string_view text, const std::vector<std::string>& answers, bool ignore_case) {
  if (answers.empty()) return 0;
  const std::string normal = NormalizeAnswer(text, ignore_case);
  const auto contained = std::count_if(answers.begin(), answers.end(), [&](const std::string& answer) {
    return absl::StrContains(normal, NormalizeAnswer(answer, ignore_case));
  });
  return static_cast<double>(contained) / static_cast<double>(answers.size());
}

struct AnswerPattern::Regex {
  explicit Regex(pcre2_code* code) : code(code) {}
  ~Regex() { pcre2_code_free(code); }
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  pcre2_code* const code;
};

absl::StatusOr<AnswerPattern> AnswerPattern::Parse(absl::string_view expression, bool ignore_case) {
  if (expression.size() > kMaxExpressionBytes) {
    return BadFileError("regular expression: expected at most ", kMaxExpressionBytes, " bytes, found ", expression.size());
  }
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  if (context == nullptr) return OutOfMemoryError("regular expression: no memory");
  pcre2_set_parens_nest_limit(context, kMaxNestedGroups);
  int error = 0;
  size_t offset = 0;
  // Without \C, which could split a character.
  const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | (ignore_case ? PCRE2_CASELESS : 0);
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(), options, &error, &offset, context);
  pcre2_compile_context_free(context);
  if (code == nullptr) {
    return BadFileError("expected a regular expression, found \"", Printable(expression), "\": ", ReasonOf(error), " at offset ", offset);
  }
  AnswerPattern pattern;
  pattern.expression_ = std::string(expression);
  pattern.regex_ = std::make_shared<const Regex>(code);
  return pattern;
}

absl::StatusOr<bool> AnswerPattern::FoundIn(absl::string_view text) const {
  const std::string valid = ReplaceInvalidUtf8(text);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  int result = PCRE2_ERROR_NOMEMORY;
  if (context != nullptr && data != nullptr) {
    pcre2_set_match_limit(context, kMaxMatchSteps);
    pcre2_set_heap_limit(context, kMaxHeapKib);
    result = pcre2_match(regex_->code, reinterpret_cast<PCRE2_SPTR>(valid.data()), valid.size(), 0, PCRE2_NO_UTF_CHECK, data, context);
  }
  pcre2_match_data_free(data);
  pcre2_match_context_free(context);
  if (result == PCRE2_ERROR_NOMATCH) return false;
  if (result < 0) {
    return BadFileError("regular expression \"", Printable(expression_), "\": expected a search of at most ", kMaxMatchSteps,
                        " steps, found: ", ReasonOf(result));
  }
  return true;
}

}  // namespace pith
