#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/regex.h"

#include <pcre2.h>

#include "base/status.h"

namespace pith {
namespace {

constexpr size_t kMaxNestedParentheses = 100;

std::string ReasonOf(int error) {
  unsigned char text[256];
  return pcre2_get_error_message(error, text, sizeof(text)) < 0 ? "an unknown error" : std::string(reinterpret_cast<const char*>(text));
}

PCRE2_SPTR Units(absl::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

struct Free {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};

uint32_t CompileOptions(const Regex::Options& options) {
  return (options.unicode ? PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C : 0) | (options.anchored ? PCRE2_ANCHORED : 0) |
         (options.ignore_case ? PCRE2_CASELESS : 0) | (options.multiline ? PCRE2_MULTILINE : 0);
}

}  // namespace

struct Regex::Code {
  Code() = default;
  ~Code() {
    pcre2_code_free(code);
    pcre2_match_context_free(context);
  }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  std::string expression;
  pcre2_code* code = nullptr;
  pcre2_match_context* context = nullptr;
};

absl::StatusOr<Regex> Regex::Compile(absl::string_view expression, const Options& options) {
  if (expression.size() > options.max_bytes) {
    return BadFileError("regular expression: expected at most ", options.max_bytes, " bytes, found ", expression.size());
  }
  auto code = std::make_shared<Code>();
  code->expression = std::string(expression);
  code->context = pcre2_match_context_create(nullptr);
  const std::unique_ptr<pcre2_compile_context, Free> context(pcre2_compile_context_create(nullptr));
  if (context == nullptr || code->context == nullptr) return OutOfMemoryError("regular expression: no memory");
  pcre2_set_parens_nest_limit(context.get(), kMaxNestedParentheses);
  int error = 0;
  size_t offset = 0;
  code->code = pcre2_compile(Units(expression), expression.size(), CompileOptions(options), &error, &offset, context.get());
  if (code->code == nullptr) {
    return BadFileError("expected a regular expression, found \"", Printable(expression), "\": ", ReasonOf(error), " at offset ", offset);
  }
  if (options.jit) pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE);  // on failure the interpreter runs it
  pcre2_set_match_limit(code->context, options.max_steps);
  pcre2_set_depth_limit(code->context, options.max_depth);
  pcre2_set_heap_limit(code->context, options.max_heap_bytes >> 10);
  Regex regex;
  regex.code_ = std::move(code);
  return regex;
}

absl::StatusOr<std::optional<Regex::Match>> Regex::Find(absl::string_view text, size_t offset) const {
  static thread_local const std::unique_ptr<pcre2_match_data, Free> data(pcre2_match_data_create(1, nullptr));
  if (data == nullptr) return OutOfMemoryError("regular expression: no memory for a match");
  const auto match = [&](uint32_t options) {
    return pcre2_match(code_->code, Units(text), text.size(), offset, options | PCRE2_NO_UTF_CHECK, data.get(), code_->context);
  };
  int result = match(0);
  if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = match(PCRE2_NO_JIT);  // machine code has a small stack of its own
  if (result == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (result < 0) {
    return BadFileError("regular expression \"", Printable(code_->expression),
                        "\": expected a match within the limits, found: ", ReasonOf(result), " at byte ", offset, " of a text of ",
                        text.size());
  }
  const size_t* bounds = pcre2_get_ovector_pointer(data.get());
  return Match{.begin = bounds[0], .end = bounds[1]};
}

}  // namespace pith
