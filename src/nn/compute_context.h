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

// What weight-only quantized matrices are multiplied with: int16 keeps the accuracy of 16-bit activations, int8 is faster, bf16 plain.
// int8 with an outlier threshold is LLM.int8(): one scale per row; magnitudes of at least the threshold stay out of it and are multiplied
// in f32. Matrices of codes of at most 4 bits have no columns to read for that, and take int16 then.
struct WeightOnlyActivation {
  GemmActivation kind = GemmActivation::kInt16;
  float outlier_threshold = 0;  // 0: none

  WeightOnlyActivation() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a kind alone is the usual choice
  WeightOnlyActivation(GemmActivation kind, float outlier_threshold = 0) : kind(kind), outlier_threshold(outlier_threshold) {}
};

struct ComputeContext {
  ThreadPool* pool = nullptr;  // borrowed
  Isa isa = Isa::kScalar;
  // A matrix that no kernel can run so falls back to bf16, and its data path says why.
  WeightOnlyActivation weight_only_activation;
  Operators operators;
  std::shared_ptr<HugePageArena> arena;  // where layers loaded with this context keep their prepacked weights

  // Calls body(begin, end) over [0, rows), split over the pool, or on the caller alone when the whole is cheaper than waking the
  // others (a barrier costs microseconds). For work whose rows do not depend on each other.
  void ForRows(int64_t rows, int64_t elements_per_row, absl::FunctionRef<void(int64_t, int64_t)> body) const;
};

ComputeContext MakeComputeContext(ThreadPool* pool, Isa isa, WeightOnlyActivation weight_only_activation = {});

// `count` floats of the calling thread, for one row at a time; the next call on the same thread may move them.
absl::Span<float> RowScratch(int64_t count);

}  // namespace pith
