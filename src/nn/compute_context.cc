#include "nn/compute_context.h"

#include "tensor/tensor.h"

namespace pith {
namespace {

constexpr int64_t kInlineElements = 16384;  // a few microseconds of element-wise work

}  // namespace

void ComputeContext::ForRows(int64_t rows, int64_t elements_per_row, absl::FunctionRef<void(int64_t, int64_t)> body) const {
  if (rows <= 0) return;
  if (rows == 1 || pool->num_threads() == 1 || rows * elements_per_row <= kInlineElements) return body(0, rows);
  pool->ParallelFor(rows, 1, [&](int64_t begin, int64_t end, int) { body(begin, end); });
}

ComputeContext MakeComputeContext(ThreadPool* pool, Isa isa, WeightOnlyActivation weight_only_activation) {
  return {.pool = pool,
          .isa = isa,
          .weight_only_activation = weight_only_activation,
          .operators = SelectOperators(isa),
          .arena = std::make_shared<HugePageArena>()};
}

absl::Span<float> RowScratch(int64_t count) {
  thread_local AlignedBuffer buffer;
  buffer.Reserve(static_cast<size_t>(count) * sizeof(float));
  return {reinterpret_cast<float*>(buffer.data()), static_cast<size_t>(count)};
}

}  // namespace pith
