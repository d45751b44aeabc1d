// Counters and gauges the engine keeps, by plain assignment on the engine thread. Prometheus names are given in server/prometheus.h.
#pragma once

#include <cstdint>
#include <string>

namespace pith {

struct EngineMetrics {
  int64_t num_requests_running = 0, num_requests_waiting = 0;
  int64_t kv_blocks_total = 0, kv_blocks_used = 0;
  int64_t kv_block_size = 0;            // tokens
  std::string kv_cache_dtype = "bf16";  // how keys and values are stored
  int64_t num_preemptions = 0;
  int64_t prompt_tokens = 0;  // prompt tokens run (recomputation after preemption not counted twice)
  int64_t generation_tokens = 0;
  int64_t steps = 0;
  int64_t last_step_rows = 0;
  double last_step_seconds = 0;
};

}  // namespace pith
