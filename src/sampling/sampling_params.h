// What a client asks of the sampler, and the check of its ranges. Plain data; names and meanings as in vLLM.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace pith {

constexpr float kGreedyTemperature = 1e-5f;  // below it the most likely token is taken, without noise
constexpr int kMaxTopLogprobs = 20;

struct SamplingParams {
  float temperature = 1.0f;         // [0, 2]
  int top_k = -1;                   // >= -1; -1 and 0: off
  float top_p = 1.0f;               // (0, 1]
  float min_p = 0.0f;               // [0, 1], a share of the largest probability
  float presence_penalty = 0.0f;    // [-2, 2], subtracted from every token already in the output
  float frequency_penalty = 0.0f;   // [-2, 2], subtracted once per occurrence in the output
  float repetition_penalty = 1.0f;  // > 0, divides positive and multiplies negative logits of tokens of prompt and output
  uint64_t seed = 0;
  std::vector<std::pair<int32_t, float>> logit_bias;  // token id, [-100, 100]; each id at most once
  int min_tokens = 0;                                 // >= 0; until then the engine passes the stop ids as SamplingContext::banned
  bool ignore_eos = false;                            // the engine goes on after its stop ids
  int logprobs = -1;                                  // -1: none; 0..20: that of the chosen token and of this many most likely ones

  bool greedy() const { return temperature < kGreedyTemperature; }
  bool has_penalties() const { return presence_penalty != 0.0f || frequency_penalty != 0.0f || repetition_penalty != 1.0f; }
};

// Errors: FieldError (kInvalidArgument, ErrorField() names the parameter as the OpenAI API spells it) for the first value out of range.
absl::Status Validate(const SamplingParams& params, int64_t vocab_size);

}  // namespace pith
