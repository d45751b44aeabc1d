// One generation request and what comes back for it. Token ids only: text, templates and JSON stay above the engine.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "sampling/sampler.h"
#include "sampling/sampling_params.h"

namespace pith {

using RequestId = uint64_t;

enum class FinishReason { kNone, kStop, kLength, kAborted, kError };

struct Request {
  RequestId id = 0;             // unique among live requests; chosen by the caller
  std::vector<int32_t> prompt;  // at least one token
  SamplingParams sampling;      // validated by Engine::Add
  int64_t max_tokens = 16;      // generated tokens, >= 0 (0: only the prompt is run)
  // EOS ids and others, unless sampling.ignore_eos; the stopping token is reported but belongs to no text.
  std::vector<int32_t> stop_token_ids;
  int priority = 0;              // lower runs first; FCFS within one priority
  bool prompt_logprobs = false;  // logprobs of the prompt's own tokens (echo with logprobs)
};

// What one step produced for one request: zero or more new tokens, in order, and possibly its end.
struct RequestOutput {
  RequestId id = 0;
  std::vector<SampleResult> tokens;           // new ones only, with logprobs as asked for
  std::vector<SampleResult> prompt_logprobs;  // once, when asked for: of prompt tokens 1..n-1
  FinishReason finish = FinishReason::kNone;
  std::string error;        // with kError
  int32_t stop_token = -1;  // the id that stopped it, with kStop
};

}  // namespace pith
