#include "eval/tasks/task_score.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/status.h"
#include "eval/tasks/code_score.h"
#include "eval/tasks/likelihood_score.h"
#include "eval/tasks/number_match.h"
#include "eval/tasks/text_match.h"

namespace pith {
namespace {

AnswerScore ScoreNumber(const TaskItem& item, absl::string_view answer) {
  const std::vector<CanonicalNumber> readings = FinalNumber(answer, item.language);
  const bool right = std::any_of(readings.begin(), readings.end(), [&](const CanonicalNumber& reading) {
    return std::find(item.answers.begin(), item.answers.end(), reading) != item.answers.end();
  });
  return {.value = right ? 1.0 : 0.0, .extracted = absl::StrJoin(readings, " or ")};
}

absl::StatusOr<AnswerScore> ScoreRegex(const TaskItem& item, absl::string_view answer) {
  for (const std::string& expression : item.answers) {
    ASSIGN_OR_RETURN(const AnswerPattern pattern, AnswerPattern::Parse(expression, item.ignore_case));
    ASSIGN_OR_RETURN(const bool found, pattern.FoundIn(answer));
    if (found) return AnswerScore{.value = 1};
  }
  return AnswerScore{};
}

absl::StatusOr<AnswerScore> ScoreUnitTest(const TaskItem& item, absl::string_view answer, const CodeSandbox* sandbox) {
  if (sandbox == nullptr) return BugError(item.id, ": expected a sandbox to run its unit test in, found none");
  ASSIGN_OR_RETURN(CodeScore score, ScoreCode(item, answer, *sandbox));
  return AnswerScore{.value = score.passed ? 1.0 : 0.0, .extracted = std::move(score.reason)};
}

}  // namespace

absl::StatusOr<AnswerScore> ScoreAnswer(const TaskItem& item, absl::string_view answer, const CodeSandbox* sandbox) {
  const auto whether = [](bool right) { return AnswerScore{.value = right ? 1.0 : 0.0}; };
  switch (item.match) {
    case MatchKind::kExact: return whether(MatchesExactly(answer, item.answers, item.ignore_case));
    case MatchKind::kContains: return whether(ContainsAny(answer, item.answers, item.ignore_case));
    case MatchKind::kContainsAll: return AnswerScore{.value = ShareContained(answer, item.answers, item.ignore_case)};
    case MatchKind::kRegex: return ScoreRegex(item, answer);
    case MatchKind::kNumber: return ScoreNumber(item, answer);
    case MatchKind::kCode: return ScoreUnitTest(item, answer, sandbox);
    case MatchKind::kContinuation: return whether(FirstWordMatches(answer, item.answers.empty() ? "" : item.answers[0]));
    case MatchKind::kChoice: break;
  }
  return BugError(item.id, ": expected an item that is answered by text, found a multiple choice");
}

}  // namespace pith
