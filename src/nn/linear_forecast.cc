#include "nn/linear_forecast.h"

#include "base/status.h"
#include "kernels/gemm_problem.h"
#include "nn/linear_kernel.h"

namespace pith {
namespace {

absl::StatusOr<int64_t> MatrixBytes(absl::Span<const WeightShape> parts, const ComputeContext& context) {
  GemmProblem problem = StackedProblem(parts);
  for (const WeightShape& part : parts) {
    if (part.scale != problem.scale) problem.scale = GemmScale::kF32;  // one type for all of the matrix
  }
  const GemmWeight family = GemmWeightFamily(parts[0].bits, parts[0].type);
  ASSIGN_OR_RETURN(const LinearKernel chosen, SelectLinearKernel(family, parts[0].input, problem, context));
  const size_t outlier_bytes = chosen.outlier_kernel != nullptr ? chosen.outlier_kernel->prepack_bytes(chosen.outlier_problem) : 0;
  return static_cast<int64_t>(chosen.kernel->prepack_bytes(problem) + outlier_bytes);
}

}  // namespace

absl::StatusOr<int64_t> ForecastLinearBytes(absl::Span<const WeightShape> parts, const ComputeContext& context) {
  int64_t bytes = 0;
  size_t begin = 0;
  for (const size_t end : MatrixEnds(parts)) {
    ASSIGN_OR_RETURN(const int64_t matrix, MatrixBytes(parts.subspan(begin, end - begin), context));
    bytes += matrix;
    begin = end;
  }
  return bytes;
}

absl::StatusOr<int64_t> ForecastEmbeddingBytes(const WeightShape& table, const ComputeContext& context) {
  if (table.dense()) return table.out * table.in * static_cast<int64_t>(sizeof(uint16_t));
  return ForecastLinearBytes({&table, 1}, context);
}

}  // namespace pith
