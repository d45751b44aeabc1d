// The stored formats "float-quantized" and, for float weights, "naive-quantized": e4m3fn codes as they are, one byte each, with scales per
// tensor, channel, group or block. weight = scale * e4m3(code).
// Source: compressed-tensors `FloatQuantizationCompressor`; docs/formats/compressed_tensors.md.
#pragma once

#include "quantization/formats/format_table.h"

namespace pith {

// Fills in the codes of "weight", which is checked. Errors: kDataLoss for a NaN, with its row and column.
absl::Status DecodeFloatCodes(const ModuleTensors& tensors, QuantizedTensor& weight);

// Rows of the format table: the same bytes under two names.
extern const WeightFormat kFloatQuantized;
extern const WeightFormat kNaiveFloatQuantized;

}  // namespace pith
