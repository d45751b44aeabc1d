// The stored format "awq" (AWQ GEMM): unsigned 4-bit codes input rows first, eight output columns to a word in the order 0 2 4 6 1 3 5 7,
// zero points in the same order, f16 scales. Source: AutoAWQ `WQLinear_GEMM`; docs/formats/awq.md.
#pragma once

#include "quantization/formats/format_table.h"

namespace pith {

// The row of the format table.
extern const WeightFormat kAwq;

}  // namespace pith
