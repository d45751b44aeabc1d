// A request in the engine: its tokens so far, how many of them are in the KV cache, and its blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/request.h"
#include "kv_cache/block_pool.h"
#include "sampling/logits_processor.h"

namespace pith {

struct Sequence {
  Request request;
  uint64_t arrival = 0;         // order of Add: first come, first served within a priority
  std::vector<int32_t> tokens;  // prompt, then generated
  int64_t num_computed = 0;     // tokens[0, num_computed) have keys and values in `blocks`
  BlockTable blocks;
  TokenCounts history;              // kept only when the request has penalties
  int64_t num_prompt_logprobs = 0;  // prompt positions already reported, with prompt_logprobs
  int64_t num_prompt_counted = 0;   // prompt tokens that EngineMetrics::prompt_tokens has; what a preemption makes run again is not new

  int64_t num_tokens() const { return static_cast<int64_t>(tokens.size()); }
  int64_t num_prompt() const { return static_cast<int64_t>(request.prompt.size()); }
  int64_t num_generated() const { return num_tokens() - num_prompt(); }
};

}  // namespace pith
