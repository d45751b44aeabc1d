#include "compression/scaled_layer.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "quantization/qparams.h"
#include "tensor/store_float.h"

namespace pith {
namespace {

absl::StatusOr<std::vector<float>> ReadVector(const TensorView& view) {
  std::vector<float> values(static_cast<size_t>(view.num_elements()));
  RETURN_IF_ERROR(ConvertToFloat(view, absl::MakeSpan(values)));
  return values;
}

}  // namespace

absl::StatusOr<Tensor> ReadMatrix(const ArtifactReader& reader, const std::string& module) {
  ASSIGN_OR_RETURN(const Weight weight, reader.ReadWeight(module));
  if (!weight.dense.has_value() || weight.dense->shape.size() != 2) return BadFileError(module, ": expected a dense matrix");
  Tensor matrix(DType::kF32, weight.dense->shape);
  RETURN_IF_ERROR(ConvertToFloat(*weight.dense, matrix.as<float>()));
  return matrix;
}

absl::StatusOr<std::vector<float>> ScaledLayer::FoldIntoNorm(const std::string& norm, absl::Span<const float> scales) {
  ASSIGN_OR_RETURN(const Weight weight, reader_.ReadWeight(norm));
  ASSIGN_OR_RETURN(const std::vector<float> values, ReadVector(*weight.dense));
  if (values.size() != scales.size()) {
    return BadFileError(norm, ".weight: expected ", scales.size(), " elements, found ", values.size());
  }
  const DType dtype = weight.dense->dtype;
  const float offset = norm_weight_plus_one_ ? 1.0f : 0.0f;
  auto changed = std::make_shared<Tensor>(dtype, weight.dense->shape);
  std::vector<float> divisors(scales.size(), 1.0f);
  for (size_t i = 0; i < values.size(); ++i) {
    const float before = values[i] + offset;
    float stored = RoundToDType(before / scales[i] - offset, dtype);
    const float divisor = before / (stored + offset);
    if (std::isfinite(divisor) && divisor > 0) {
      divisors[i] = divisor;
    } else {
      stored = values[i];
    }
    StoreFloat(stored, static_cast<int64_t>(i), *changed);
  }
  changed_[absl::StrCat(norm, ".weight")] = std::move(changed);
  return divisors;
}

absl::Status ScaledLayer::FoldIntoRows(const LayerInput& input, absl::Span<const float> scales) {
  ASSIGN_OR_RETURN(const Weight weight, reader_.ReadWeight(input.producer));
  std::vector<float> divisors(static_cast<size_t>(weight.dense->shape[0]), 1.0f);
  std::vector<bool> set(divisors.size(), false);
  for (size_t i = 0; i < scales.size(); ++i) {
    const size_t row = input.tied_columns.empty() ? i : static_cast<size_t>(input.tied_columns[i]);
    CHECK_LT(row, divisors.size());
    if (set[row] && divisors[row] != scales[i]) {
      return BugError(input.producer, ": expected one scale for row ", row, ", found ", divisors[row], " and ", scales[i]);
    }
    set[row] = true;
    divisors[row] = scales[i];
  }
  const std::string bias_name = absl::StrCat(input.producer, ".bias");
  ASSIGN_OR_RETURN(const std::optional<Weight> bias, reader_.ReadTensor(bias_name));
  if (bias.has_value()) {
    ASSIGN_OR_RETURN(const std::vector<float> values, ReadVector(*bias->dense));
    if (values.size() != divisors.size())
      return BadFileError(bias_name, ": expected ", divisors.size(), " elements, found ", values.size());
    auto changed = std::make_shared<Tensor>(bias->dense->dtype, bias->dense->shape);
    for (size_t i = 0; i < values.size(); ++i) {
      const float value = values[i] / divisors[i];
      if (!std::isfinite(RoundToDType(value, changed->dtype()))) return BadFileError(bias_name, ": expected finite values, found ", value);
      StoreFloat(value, static_cast<int64_t>(i), *changed);
    }
    changed_[bias_name] = std::move(changed);
  }
  CHECK(row_divisors_.emplace(input.producer, std::move(divisors)).second);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> ScaledLayer::Fold(const LayerInput& input, absl::Span<const float> scales) {
  std::vector<float> divisors(scales.begin(), scales.end());
  if (input.producer_is_norm) {
    ASSIGN_OR_RETURN(divisors, FoldIntoNorm(input.producer, scales));
  } else {
    RETURN_IF_ERROR(FoldIntoRows(input, scales));
  }
  for (const std::string& module : input.consumers) CHECK(column_scales_.emplace(module, divisors).second);
  return divisors;
}

absl::StatusOr<Tensor> ScaledLayer::ReadMatrix(const std::string& module) const {
  ASSIGN_OR_RETURN(Tensor matrix, pith::ReadMatrix(reader_, module));
  const int64_t out = matrix.shape()[0], in = matrix.shape()[1];
  const auto columns = column_scales_.find(module);
  const auto rows = row_divisors_.find(module);
  float* values = matrix.as<float>().data();
  for (int64_t o = 0; o < out; ++o, values += in) {
    if (columns != column_scales_.end()) {
      for (int64_t i = 0; i < in; ++i) values[i] *= columns->second[i];
    }
    if (rows == row_divisors_.end()) continue;
    for (int64_t i = 0; i < in; ++i) values[i] /= rows->second[o];
  }
  return matrix;
}

}  // namespace pith
