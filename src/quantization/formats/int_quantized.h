// The stored formats "int-quantized" and, for integer weights, "naive-quantized": signed codes of 2 to 8 bits, one byte each.
// Source: compressed-tensors `NaiveQuantizationCompressor`; docs/formats/compressed_tensors.md.
#pragma once

#include "quantization/formats/format_table.h"

namespace pith {

// Rows of the format table: the same bytes under two names.
extern const WeightFormat kIntQuantized;
extern const WeightFormat kNaiveQuantized;

}  // namespace pith
