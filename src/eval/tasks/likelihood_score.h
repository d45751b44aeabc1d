// Scores of items that are judged by the likelihood of given text: multiple choice and LAMBADA. Pure functions of log-probabilities.
//
// Conventions of lm-evaluation-harness: the log-probability of a choice is the sum over its tokens after the prompt; `acc` takes the
// largest sum, `acc_norm` the largest sum per character of the choice without the delimiter before it (its documents say per byte, its code
// counts characters; `acc_bytes` is per byte). Ties go to the first. Sources: Brown et al. 2020 (GPT-3), section 2.4; Paperno et al. 2016
// (LAMBADA).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "eval/tasks/task_item.h"

namespace pith {

// Of one continuation of a prompt.
struct ContinuationLikelihood {
  double log_probability = 0;  // natural, summed over its tokens
  bool greedy = false;         // every token of it was the likeliest
};

struct ChoiceScore {
  int64_t picked = -1, picked_per_character = -1, picked_per_byte = -1;           // index of the choice
  bool correct = false, correct_per_character = false, correct_per_byte = false;  // acc, acc_norm, acc_bytes
  double margin = 0;  // log-probability of the gold choice less that of the best other one, in nats; above 0 when correct
};

// `likelihoods` in the order of item.choices, which must have at least two non-empty texts.
// Errors: kInternal (another kind of item, another number of likelihoods, or NaN among them).
absl::StatusOr<ChoiceScore> ScoreChoice(const TaskItem& item, absl::Span<const ContinuationLikelihood> likelihoods);

// Accuracy with an interval is left to paired_statistics.h; this is what the published LAMBADA figures are.
struct ContinuationSummary {
  int64_t n = 0;
  double accuracy = 0;    // share whose reference is what greedy decoding writes
  double perplexity = 0;  // exp of the mean negative log-probability of the reference, whole words
};

ContinuationSummary SummarizeContinuations(absl::Span<const ContinuationLikelihood> likelihoods);

// LAMBADA for a model that only generates: whether the first word of `text` is `word`, punctuation around it aside.
bool FirstWordMatches(absl::string_view text, absl::string_view word);

}  // namespace pith
