// Draws one token per row by Gumbel-max with counter-based noise: the token with the largest logit / T + g(seed, position, token) of those
// that the processors keep. The draw is a pure function of the row, the parameters and the position: it never depends on what was drawn
// before or beside it, and a drafter that adds the same noise proposes the token the target will draw as often as the two agree.
// Source: Maddison, Tarlow & Minka 2014 (A* sampling); Daliri, Musco & Suresh 2024 (arXiv 2408.07978) for the shared noise.
//
// Thread-safe with one scratch per thread. NaN logits are never drawn.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "sampling/logits_processor.h"
#include "sampling/sampling_params.h"

namespace pith {

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;  // natural log; -infinity for a token the model rules out
};

struct SampleResult {
  int32_t token = 0;
  float logprob = 0;                       // of `token`, from the softmax of the raw logits; 0 when params.logprobs < 0
  std::vector<TokenLogprob> top_logprobs;  // the params.logprobs most likely tokens, descending, ties by lower id
};

// Standard Gumbel noise of one token at one position: -log(-log(u)), u = UniformOpenPair(seed, position, token / 2)[token % 2].
double GumbelNoise(uint64_t seed, int64_t position, int32_t token);

// Draws the token at context.position from one row of logits [vocab_size].
// Greedy parameters: the largest processed logit, ties by lower id. Errors: kInternal when no logit is finite (a corrupted row).
absl::StatusOr<SampleResult> Sample(absl::Span<const float> logits, const SamplingParams& params, const SamplingContext& context,
                                    SamplerScratch& scratch);

// The log-probabilities of a token that is already known (echoed prompts): as Sample reports them, with the `count` most likely tokens.
SampleResult TokenLogprobs(absl::Span<const float> logits, int32_t token, int count);

// The index of the largest value, the lowest one on ties, NaN ignored; -1 when every value is NaN or -infinity.
int32_t ArgMax(absl::Span<const float> values);

// log(sum(exp(values))), accumulated in f64. NaN counts as -infinity.
double LogSumExp(absl::Span<const float> values);

}  // namespace pith
