// The stored format "bitsandbytes" (LLM.int8): signed bytes in "weight" and the largest magnitude of every row in "SCB", so that
// weight[o][i] = q[o][i] * SCB[o] / 127. Source: bitsandbytes `Int8Params`, transformers `BitsAndBytesConfig`;
// docs/formats/bitsandbytes.md. Beside them lie the outlier columns of LLM_INT8, where the config says so (outlier_columns.h).
#pragma once

#include "quantization/formats/format_table.h"

namespace pith {

// The row of the format table.
extern const WeightFormat kBitsandbytes;

}  // namespace pith
