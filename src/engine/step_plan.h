// What one engine step will do, decided before anything is touched. Plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/request.h"

namespace pith {

// Consecutive tokens of one sequence to run in this pass.
struct PlannedRows {
  RequestId id = 0;
  int64_t first_position = 0;  // == tokens already computed
  int64_t num_rows = 0;
  bool reaches_end = false;  // the last row is the sequence's last token: its logits are sampled
};

struct StepPlan {
  std::vector<RequestId> preempted;  // blocks are freed and the sequences wait again, before anything runs
  std::vector<RequestId> admitted;   // move from waiting to running
  std::vector<PlannedRows> rows;     // in scheduling order; at most one entry per sequence
  int64_t num_rows = 0;              // sum over rows

  bool empty() const { return rows.empty(); }
};

}  // namespace pith
