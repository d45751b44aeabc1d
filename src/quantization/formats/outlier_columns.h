// Columns of a weight that a module stores in bf16 beside its codes, for inputs whose outliers are those channels (LLM.int8()).
//
//   outlier_index    I32 [n], ascending, each in [0, in)
//   outlier_weight   BF16 [out, n]
// Both or neither; neither: none. Byte-level page: docs/formats/bitsandbytes.md. All functions are pure and thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "quantization/formats/stored_tensors.h"
#include "quantization/quantized_tensor.h"

namespace pith {

inline constexpr absl::string_view kOutlierIndexSuffix = "outlier_index", kOutlierWeightSuffix = "outlier_weight";

// Presence, dtypes and shapes beside an [out, in] weight. Errors: kDataLoss.
absl::Status CheckOutlierColumns(const ModuleTensors& tensors, MatrixShape shape);

// The columns of a module whose input is `input`. Errors: those of CheckOutlierColumns; kDataLoss for an index that is out of range or not
// above the one before it, and for columns where the input has no fixed outliers.
absl::StatusOr<std::vector<int32_t>> ReadOutlierIndex(const ModuleTensors& tensors, const std::optional<InputQuantization>& input,
                                                      MatrixShape shape);

// Fills in the columns of `weight`. Errors: kDataLoss for an index as above and for weights that are not finite.
absl::Status DecodeOutlierColumns(const ModuleTensors& tensors, QuantizedTensor& weight);

// The tensors of a weight's columns; none where it has none.
std::vector<StoredTensor> EncodeOutlierColumns(const QuantizedTensor& weight);

// Keeps columns (ascending) of the unquantized [out, in] `values`, rounded to bf16, beside the codes of `weight`.
void KeepOutlierColumns(MatrixView<const float> values, absl::Span<const int32_t> columns, QuantizedTensor& weight);

}  // namespace pith
