// From raw logits to the tokens that may be drawn: bias, bans, penalties, temperature, min-p, top-k, top-p, in this order (vLLM's).
// Pure functions of logits, parameters and history, shared by plain decoding, drafters and verification, so all see one distribution.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "sampling/sampling_params.h"

namespace pith {

// How often each token stands in the prompt and the output of one sequence; what the penalties look at. Kept by the engine only for
// requests with penalties. Not thread-safe.
class TokenCounts {
 public:
  struct Count {
    bool in_prompt = false;
    int32_t in_output = 0;
  };

  void AddPrompt(absl::Span<const int32_t> tokens);
  void AddOutput(int32_t token);
  void RemoveOutput(int32_t token);  // takes back one AddOutput (a rejected draft token)
  const absl::flat_hash_map<int32_t, Count>& counts() const { return counts_; }

 private:
  absl::flat_hash_map<int32_t, Count> counts_;
};

// What a draw depends on besides logits and parameters.
struct SamplingContext {
  int64_t position = 0;                   // absolute position in the sequence of the token to draw
  const TokenCounts* history = nullptr;   // prompt and output before it; may be null when there are no penalties
  absl::Span<const int32_t> banned = {};  // ids that must not be drawn now (stop ids before min_tokens)
};

// A token that may be drawn. `score` is its logit after all processors, divided by the temperature (greedy: by 1).
struct Candidate {
  int32_t token = 0;
  float score = 0;
};

// Buffers reused from call to call; the content means nothing between calls.
struct SamplerScratch {
  std::vector<float> logits;
  std::vector<Candidate> candidates;
  std::vector<Candidate> boundary;
  std::vector<double> mass;
};

// The steps that change logits, in place. Ids are in range (Validate has seen them); `logits` is one row [vocab_size].
void ApplyLogitBias(absl::Span<float> logits, const SamplingParams& params);
void ApplyBans(absl::Span<float> logits, absl::Span<const int32_t> banned);  // to -infinity
void ApplyPenalties(absl::Span<float> logits, const SamplingParams& params, const TokenCounts& history);

// All of them, when any applies: `logits` itself, or a changed copy in scratch. Valid until scratch is used again.
absl::Span<const float> ProcessLogits(absl::Span<const float> logits, const SamplingParams& params, const SamplingContext& context,
                                      SamplerScratch& scratch);

// The tokens that temperature, min-p, top-k and top-p leave of processed logits, in ascending order of ids, at least one. The k of top-k is
// exact and ties go to lower ids; top-p keeps the shortest prefix, by descending score, whose share of what min-p and top-k left reaches
// top_p. Tokens more than kHopelessGap below the best are left out: no noise can make them win. Valid until scratch is used again.
// params.temperature must not be greedy. Errors: kInternal when the largest logit is not finite.
absl::StatusOr<absl::Span<const Candidate>> KeepCandidates(absl::Span<const float> logits, const SamplingParams& params,
                                                           SamplerScratch& scratch);

// More than the difference between the largest (36.8) and the smallest (-3.7) Gumbel noise of uniforms in [2^-53, 1 - 2^-53].
constexpr float kHopelessGap = 41.0f;

}  // namespace pith
