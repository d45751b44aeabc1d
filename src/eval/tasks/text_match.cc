#include "eval/tasks/text_match.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "absl/strings/match.h"
#include "base/status.h"
#include "tokenizer/unicode_class.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

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

absl::StatusOr<AnswerPattern> AnswerPattern::Parse(absl::string_view expression, bool ignore_case) {
  ASSIGN_OR_RETURN(Regex regex, Regex::Compile(expression, {.unicode = true, .ignore_case = ignore_case}));
  return AnswerPattern(std::move(regex));
}

absl::StatusOr<bool> AnswerPattern::FoundIn(absl::string_view text) const {
  ASSIGN_OR_RETURN(const std::optional<Regex::Match> match, regex_.Find(ReplaceInvalidUtf8(text)));
  return match.has_value();
}

}  // namespace pith
