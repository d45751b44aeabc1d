#include "kernels/cpu/tables.h"

namespace pith {

void attention_f32_bf16_bf16__amx(const AttentionParams& p);
void attention_combine_f32_bf16_bf16__amx(const AttentionParams& p);
void attention_f32_int8_bf16__amx(const AttentionParams& p);
void attention_combine_f32_int8_bf16__amx(const AttentionParams& p);
void attention_f32_fp8_bf16__amx(const AttentionParams& p);
void attention_combine_f32_fp8_bf16__amx(const AttentionParams& p);

// Attention does every product twice: queries and weights are two bf16 parts (attention_lanes.h), or two planes of 8 bits
// (attention_int8_planes.h). Tiles bound the int8 row too, whose vectors take over where there are few queries.
const OperatorEntry kOperators__amx[] = {
    {.name = "attention_f32_bf16_bf16__amx",
     .isa = KernelIsa::kAmx,
     .kv_dtype = KvDtype::kBf16,
     .head_dim_multiple = 32,
     .multiply = {ProbeLimit::kBf16, 2},
     .attention = attention_f32_bf16_bf16__amx,
     .attention_combine = attention_combine_f32_bf16_bf16__amx},
    {.name = "attention_f32_int8_bf16__amx",
     .isa = KernelIsa::kAmx,
     .kv_dtype = KvDtype::kInt8,
     .head_dim_multiple = 8,
     .multiply = {ProbeLimit::kInt8, 2},
     .attention = attention_f32_int8_bf16__amx,
     .attention_combine = attention_combine_f32_int8_bf16__amx},
    {.name = "attention_f32_fp8_bf16__amx",
     .isa = KernelIsa::kAmx,
     .kv_dtype = KvDtype::kFp8,
     .head_dim_multiple = 32,
     .multiply = {ProbeLimit::kBf16, 2},
     .emulated = "fp8 as bf16",
     .attention = attention_f32_fp8_bf16__amx,
     .attention_combine = attention_combine_f32_fp8_bf16__amx},
};
const size_t kNumOperators__amx = sizeof(kOperators__amx) / sizeof(kOperators__amx[0]);

}  // namespace pith
