// The stored formats "gptq" and "gptq_v2" (AutoGPTQ, GPTQModel): unsigned codes of 2, 3, 4 or 8 bits as bit streams along the input rows,
// zero points as bit streams along the output columns, f16 scales, and the group of every input row. The first version stores zero points
// minus one. Source: AutoGPTQ `QuantLinear.pack`, GPTQModel `convert_gptq_v1_to_v2_format`; docs/formats/gptq.md.
#pragma once

#include "quantization/formats/format_table.h"

namespace pith {

// Rows of the format table.
extern const WeightFormat kGptq;
extern const WeightFormat kGptqV2;

}  // namespace pith
