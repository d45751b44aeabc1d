// The stored format "fp8-block" of quant_method "fp8" (DeepSeek, Qwen and others publish it): e4m3fn codes in "weight" and, per block of
// weight_block_size (128 x 128), a factor in "weight_scale_inv", which multiplies despite its name. Inputs are quantized to fp8 at run time
// in groups as long as a block is wide. Source: transformers `FineGrainedFP8Config`; docs/formats/fp8_block.md.
#pragma once

#include "quantization/formats/format_table.h"

namespace pith {

// The row of the format table.
extern const WeightFormat kFp8Block;

}  // namespace pith
