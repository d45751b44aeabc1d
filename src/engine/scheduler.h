// Which sequences run in the next pass, and how many rows of each: a pure function of counters.
//
// Policy: lower `priority` first, then first come, first served. Sequences one token from their end (decode) come first, so a long prompt
// never holds them up; what is left of the token budget goes to prefill chunks; then waiting sequences are admitted in order while blocks
// for all their tokens are free. When a running sequence needs a block and none is free, the last running one in policy order is preempted
// (its keys and values are recomputed later). The first in policy order always makes progress, because Engine::Add refuses what cannot fit.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/step_plan.h"

namespace pith {

// What the scheduler sees of a sequence.
struct SchedulerEntry {
  RequestId id = 0;
  int priority = 0;
  uint64_t arrival = 0;
  int64_t num_tokens = 0;    // known tokens: prompt and generated
  int64_t num_computed = 0;  // < num_tokens
  int64_t num_blocks = 0;    // held
  int64_t max_rows = 0;      // a cap on this sequence's rows per pass; 0: none
};

struct SchedulerLimits {
  int64_t max_batch_tokens = 0, max_sequences = 0, prefill_chunk = 0;
};

// `running` and `waiting` in any order. Deterministic.
StepPlan PlanStep(absl::Span<const SchedulerEntry> running, absl::Span<const SchedulerEntry> waiting, int64_t free_blocks,
                  const SchedulerLimits& limits);

}  // namespace pith
