// Unit tests of generated code, and pass@k over samples of one task.
// Source: Chen et al. 2021, "Evaluating Large Language Models Trained on Code" (HumanEval), section 2.1.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "eval/tasks/code_sandbox.h"
#include "eval/tasks/task_item.h"

namespace pith {

struct CodeScore {
  bool passed = false;
  std::string program;  // what was run
  std::string reason;   // of a failure, one line: "AssertionError: ...", "timed out after 10.0 s", "ended before the test did"
};

// The answer's code followed by the test, and the proof that the test ran to its end: a word made for this run that the program writes
// last, because leaving early with status 0 is no pass. Thread-safe.
// Errors: kInternal (an item without unit test), those of CodeSandbox::RunPython.
absl::StatusOr<CodeScore> ScoreCode(const TaskItem& item, absl::string_view answer, const CodeSandbox& sandbox);

// Unbiased estimate of the probability that at least one of k samples passes, from n samples of which c passed: 1 - C(n-c, k) / C(n, k).
// 0 <= c <= n, 1 <= k <= n.
double PassAtK(int64_t n, int64_t c, int64_t k);

struct TaskPasses {
  int64_t samples = 0, passed = 0;
};
// Mean over tasks; every task needs at least k samples. 0 without tasks.
double MeanPassAtK(absl::Span<const TaskPasses> tasks, int64_t k);

}  // namespace pith
