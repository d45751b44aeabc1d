// What must hold between steps, checked on an immutable snapshot: after every step in debug builds, and in tests.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "engine/request.h"

namespace pith {

struct SequenceSnapshot {
  RequestId id = 0;
  bool running = false;
  int64_t num_tokens = 0, num_computed = 0, max_model_len = 0;
  std::vector<int32_t> blocks;
};

struct EngineSnapshot {
  int64_t num_blocks = 0, num_free_blocks = 0, max_sequences = 0;
  std::vector<SequenceSnapshot> sequences;
};

// No block owned twice or out of range; used + free = total; a waiting sequence holds no block; a running one holds exactly the blocks of
// its computed tokens, with at least one token left to compute; no length over the limits. Errors: kInternal naming the broken rule.
absl::Status CheckInvariants(const EngineSnapshot& snapshot);

}  // namespace pith
