// What every module needs to run: the thread pool and the operators chosen for this CPU.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "base/cpu_features.h"
#include "base/thread_pool.h"
#include "kernels/selection.h"

namespace pith {

struct ComputeContext {
  ThreadPool* pool = nullptr;  // borrowed
  Isa isa = Isa::kScalar;
  Operators operators;

  // Calls body(begin, end) over [0, rows), split over the pool, or on the caller alone when the whole is cheaper than waking the
  // others (a barrier costs microseconds). For work whose rows do not depend on each other.
  void ForRows(int64_t rows, int64_t elements_per_row, absl::FunctionRef<void(int64_t, int64_t)> body) const;
};

ComputeContext MakeComputeContext(ThreadPool* pool, Isa isa);

}  // namespace pith
