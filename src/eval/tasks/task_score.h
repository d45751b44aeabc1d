// The score of one generated answer, by the item's kind of match.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "eval/tasks/code_sandbox.h"
#include "eval/tasks/task_item.h"

namespace pith {

struct AnswerScore {
  double value = 0;       // 0 to 1; between only for kContainsAll
  std::string extracted;  // what of the answer was compared: the number, or the reason of a failed test; empty where the whole text was
};

// `answer` is what the model generated, without the prompt. `sandbox` runs unit tests; nullptr refuses them. A continuation is scored by
// the first word of the answer, for models that are only reached as text. Thread-safe.
// Errors: kInternal (a choice, or code without a sandbox), kDataLoss (a regular expression that is bad or needs too many steps), those of
// CodeSandbox::RunPython.
absl::StatusOr<AnswerScore> ScoreAnswer(const TaskItem& item, absl::string_view answer, const CodeSandbox* sandbox);

}  // namespace pith
