// What this machine can do, measured in the same run as whatever is compared with it.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace pith {

struct MachineLimits {
  double read_gb_per_s = 0;  // streaming read of read_bytes with every thread of the pool: median of 5
  int64_t read_bytes = 0;    // larger than any last-level cache
};

MachineLimits MeasureMachineLimits(ThreadPool& pool);

}  // namespace pith
