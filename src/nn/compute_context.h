// What every module needs to run: the thread pool and the operators chosen for this CPU.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "base/cpu_features.h"
#include "base/huge_page_arena.h"
#include "base/thread_pool.h"
#include "kernels/selection.h"

namespace pith {

struct ComputeContext {
  ThreadPool* pool = nullptr;  // borrowed
  Isa isa = Isa::kScalar;
  // What weight-only quantized matrices are multiplied with: int16 keeps the accuracy of 16-bit activations, int8 is faster, bf16 plain.
  // A matrix that no kernel can run so falls back to bf16, and its data path says why.
  GemmActivation weight_only_activation = GemmActivation::kInt16;
  Operators operators;
  std::shared_ptr<HugePageArena> arena;  // where layers loaded with this context keep their prepacked weights

  // Calls body(begin, end) over [0, rows), split over the pool, or on the caller alone when the whole is cheaper than waking the
  // others (a barrier costs microseconds). For work whose rows do not depend on each other.
  void ForRows(int64_t rows, int64_t elements_per_row, absl::FunctionRef<void(int64_t, int64_t)> body) const;
};

ComputeContext MakeComputeContext(ThreadPool* pool, Isa isa, GemmActivation weight_only_activation = GemmActivation::kInt16);

// `count` floats of the calling thread, for one row at a time; the next call on the same thread may move them.
absl::Span<float> RowScratch(int64_t count);

}  // namespace pith
