#include "quantization/formats/outlier_columns.h"

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/status.h"

namespace pith {
namespace {

int64_t NumColumns(const ModuleTensors& tensors) {
  const TensorView* index = tensors.Find(kOutlierIndexSuffix);
  return index != nullptr && index->shape.size() == 1 ? index->shape[0] : 0;
}

// Data of a file need not be aligned.
template <typename T> std::vector<T> CopyOf(const TensorView& view) {
  std::vector<T> values(static_cast<size_t>(view.num_elements()));
  if (!values.empty()) std::memcpy(values.data(), view.data, values.size() * sizeof(T));
  return values;
}

absl::StatusOr<std::vector<int32_t>> ReadIndex(const ModuleTensors& tensors, int64_t in) {
  std::vector<int32_t> index;
  if (tensors.Find(kOutlierIndexSuffix) != nullptr) index = CopyOf<int32_t>(*tensors.Find(kOutlierIndexSuffix));
  for (size_t c = 0; c < index.size(); ++c) {
    const int32_t least = c == 0 ? 0 : index[c - 1] + 1;
    if (index[c] >= least && index[c] < in) continue;
    return BadFileError(tensors.NameOf(kOutlierIndexSuffix), ": expected ascending columns below ", in, ", found ", index[c], " at index ",
                        c);
  }
  return index;
}

}  // namespace

absl::Status CheckOutlierColumns(const ModuleTensors& tensors, MatrixShape shape) {
  const bool has_index = tensors.Find(kOutlierIndexSuffix) != nullptr, has_weight = tensors.Find(kOutlierWeightSuffix) != nullptr;
  if (!has_index && !has_weight) return absl::OkStatus();
  const int64_t columns = NumColumns(tensors);
  RETURN_IF_ERROR(CheckTensor(tensors, kOutlierIndexSuffix, {DType::kI32}, {columns}, "(a column each)"));
  return CheckTensor(tensors, kOutlierWeightSuffix, {DType::kBF16}, {shape.out, columns}, "(outlier columns)");
}

absl::StatusOr<std::vector<int32_t>> ReadOutlierIndex(const ModuleTensors& tensors, const std::optional<InputQuantization>& input,
                                                      MatrixShape shape) {
  RETURN_IF_ERROR(CheckOutlierColumns(tensors, shape));
  ASSIGN_OR_RETURN(std::vector<int32_t> index, ReadIndex(tensors, shape.in));
  if (tensors.Find(kOutlierIndexSuffix) != nullptr && !(input.has_value() && input->args.fixed_outliers)) {
    return BadFileError(tensors.NameOf(kOutlierIndexSuffix),
                        ": expected none, since config.json does not say that columns are stored, "
                        "found ",
                        index.size());
  }
  return index;
}

absl::Status DecodeOutlierColumns(const ModuleTensors& tensors, QuantizedTensor& weight) {
  ASSIGN_OR_RETURN(weight.outlier_column, ReadIndex(tensors, weight.in));
  if (weight.outlier_column.empty()) return absl::OkStatus();
  weight.outlier_weight = CopyOf<bfloat16>(*tensors.Find(kOutlierWeightSuffix));
  for (size_t i = 0; i < weight.outlier_weight.size(); ++i) {
    const float value = ToFloat(weight.outlier_weight[i]);
    if (std::isfinite(value)) continue;
    return BadFileError(tensors.NameOf(kOutlierWeightSuffix), ": expected finite weights, found ", value, " at index ", i);
  }
  return absl::OkStatus();
}

std::vector<StoredTensor> EncodeOutlierColumns(const QuantizedTensor& weight) {
  std::vector<StoredTensor> stored;
  if (weight.outlier_column.empty()) return stored;
  const auto columns = static_cast<int64_t>(weight.outlier_column.size());
  CHECK_EQ(static_cast<int64_t>(weight.outlier_weight.size()), weight.out * columns);
  stored.push_back({std::string(kOutlierIndexSuffix), Tensor(DType::kI32, {columns})});
  std::memcpy(stored[0].tensor.data(), weight.outlier_column.data(), weight.outlier_column.size() * sizeof(int32_t));
  stored.push_back({std::string(kOutlierWeightSuffix), Tensor(DType::kBF16, {weight.out, columns})});
  std::memcpy(stored[1].tensor.data(), weight.outlier_weight.data(), weight.outlier_weight.size() * sizeof(bfloat16));
  return stored;
}

void KeepOutlierColumns(MatrixView<const float> values, absl::Span<const int32_t> columns, QuantizedTensor& weight) {
  CHECK(values.rows == weight.out && values.cols == weight.in);
  weight.outlier_column.assign(columns.begin(), columns.end());
  weight.outlier_weight.clear();
  weight.outlier_weight.reserve(static_cast<size_t>(weight.out) * columns.size());
  for (int64_t o = 0; o < weight.out; ++o) {
    for (const int32_t column : columns) weight.outlier_weight.push_back(ToBfloat16(values.row(o)[column]));
  }
}

}  // namespace pith
