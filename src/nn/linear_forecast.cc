#include "nn/linear_forecast.h"

#include <algorithm>

#include "base/status.h"
#include "kernels/gemm_problem.h"
#include "nn/linear_kernel.h"

namespace pith {
namespace {

absl::Status AddMatrix(absl::Span<const WeightShape> parts, const ComputeContext& context, LinearForecast& forecast) {
  GemmProblem problem = StackedProblem(parts);
  for (const WeightShape& part : parts) {
    if (part.scale != problem.scale) problem.scale = GemmScale::kF32;  // one type for all of the matrix
  }
  const GemmWeight family = GemmWeightFamily(parts[0].bits, parts[0].type);
  ASSIGN_OR_RETURN(const LinearKernel chosen, SelectLinearKernel(family, parts[0].input, problem, context));
  const size_t outlier_bytes = chosen.outlier_kernel != nullptr ? chosen.outlier_kernel->prepack_bytes(chosen.outlier_problem) : 0;
  forecast.bytes += static_cast<int64_t>(chosen.kernel->prepack_bytes(problem) + outlier_bytes);
  std::vector<InputFormat>& formats = forecast.formats;
  if (std::find(formats.begin(), formats.end(), chosen.input) == formats.end()) formats.push_back(chosen.input);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LinearForecast> ForecastLinear(absl::Span<const WeightShape> parts, const ComputeContext& context) {
  LinearForecast forecast;
  size_t begin = 0;
  for (const size_t end : MatrixEnds(parts)) {
    RETURN_IF_ERROR(AddMatrix(parts.subspan(begin, end - begin), context, forecast));
    begin = end;
  }
  return forecast;
}

absl::StatusOr<int64_t> ForecastEmbeddingBytes(const WeightShape& table, const ComputeContext& context) {
  if (table.dense()) return table.out * table.in * static_cast<int64_t>(sizeof(uint16_t));
  ASSIGN_OR_RETURN(const LinearForecast forecast, ForecastLinear({&table, 1}, context));
  return forecast.bytes;
}

}  // namespace pith
