// Puts the items of tasks to a model and scores what it says: one figure per item and sample, from which paired comparisons are made.
// The chat template is used as the server uses it; items scored by likelihood are running text, as the published figures are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/json.h"
#include "eval/answer_runner.h"
#include "eval/paired_outcomes.h"
#include "eval/tasks/code_sandbox.h"
#include "eval/tasks/task_item.h"
#include "tokenizer/chat_template.h"

namespace pith {

// What answers: everything must outlive the calls.
struct AnsweringModel {
  Engine* engine = nullptr;
  const Tokenizer* tokenizer = nullptr;
  const ChatTemplate* chat_template = nullptr;  // nullptr: items are put as running text
  std::string bos_token, eos_token;             // for the template
  std::vector<int32_t> stop_token_ids;
  std::string id;  // AnswerOptions::model_id
};

struct TaskEvaluationOptions {
  SamplingParams sampling;  // temperature 0: greedy, one sample per item
  int64_t samples = 1;
  int64_t max_tokens = 0;                // more than 0: instead of what the items say
  const CodeSandbox* sandbox = nullptr;  // needed by items with a unit test
  int scoring_threads = 2;               // unit tests that run side by side
  ResultStore* store = nullptr;
  bool reuse = true;                                   // as AnswerOptions::reuse
  std::function<absl::Status(int64_t done)> progress;  // answers, as AnswerOptions::progress
};

// What became of one item.
struct ItemResult {
  std::vector<double> scores;      // per sample, 0 to 1
  std::vector<std::string> texts;  // per sample; empty for items scored by likelihood
  int64_t cut_off = 0;             // samples that max_tokens ended

  double Mean() const;  // over samples; 0 without any
};

// results[i] is of items[i]. Deterministic, whatever ran before. Errors: those of GenerateAnswers and ScoreAnswer, with the item's id;
// kInvalidArgument for an item that cannot be put to the model (a prompt without tokens, or too long with its numbers).
absl::StatusOr<std::vector<ItemResult>> EvaluateItems(const AnsweringModel& model, absl::Span<const TaskItem> items,
                                                      const TaskEvaluationOptions& options);

// Ids of an item's prompt for a model: its conversation through the template, or its running text.
absl::StatusOr<std::vector<int32_t>> PromptTokens(const AnsweringModel& model, const TaskItem& item);

// Two models on the same items, by slice ("all" first), slices in order of their names.
struct SliceComparison {
  std::string slice;
  OutcomeComparison outcomes;
};
std::vector<SliceComparison> CompareItems(absl::Span<const TaskItem> items, absl::Span<const ItemResult> reference,
                                          absl::Span<const ItemResult> model, const BootstrapOptions& options);

}  // namespace pith
