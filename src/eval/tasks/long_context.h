// Questions of any length that are answered by what a long text hides, in the manner of RULER: a needle, a needle among others with other
// keys, and chains of variable assignments. Generated; the same options give the same items.
// Source: Hsieh et al. 2024, "RULER: What's the Real Context Size of Your Long-Context Language Models?" (arXiv 2404.06654), sections 3.1
// and 3.2. The wording and the filler are our own, so figures compare with each other and not with RULER's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "eval/tasks/task_item.h"

namespace pith {

enum class LongContextKind {
  kNeedle,            // one sentence gives a number to a key
  kMultiKeyNeedle,    // several sentences do, each to a key of its own
  kVariableTracking,  // which variables have the value that is handed from one to the next
};
absl::string_view LongContextName(LongContextKind kind);  // "needle", "multi_key_needle", "variable_tracking"

using CountTokens = std::function<int64_t(absl::string_view)>;

struct LongContextOptions {
  LongContextKind kind = LongContextKind::kNeedle;
  int64_t tokens = 4096;  // of the prompt, at most; the answer and a chat template come on top
  int64_t items = 20;     // the needles of item i of n lie at the depth (i + 0.5) / n, so every depth is asked
  uint64_t seed = 1;
  int64_t distractors = 3;       // kMultiKeyNeedle: needles with other keys
  int64_t chains = 1, hops = 4;  // kVariableTracking: chains, of which one is asked for; assignments after the first one in each
  std::string filler;            // text to hide things in, cut into sentences and repeated as needed; empty: our own sentences
};

// Items of the slice "long_context" with match contains (needles) or contains_all (variables), each with running text and one message of
// the same content. A prompt is as long as whole sentences allow: at most options.tokens by `count`, and shorter by less than one sentence
// of filler and the error of adding the counts of parts. `count` is called a few times per item with the whole prompt.
// Errors: kInvalidArgument (FieldError; a number out of range, or so few tokens that question and needles alone pass them), kDataLoss (a
// filler that is not UTF-8 or has no sentence).
absl::StatusOr<std::vector<TaskItem>> GenerateLongContext(const LongContextOptions& options, const CountTokens& count);

}  // namespace pith
