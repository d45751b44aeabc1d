#include "kernels/cpu/tables.h"

namespace pith {

void attention_f32_bf16_bf16__amx(const AttentionParams& p);
void attention_combine_f32_bf16_bf16__amx(const AttentionParams& p);
void attention_f32_int8_bf16__amx(const AttentionParams& p);
void attention_combine_f32_int8_bf16__amx(const AttentionParams& p);
void attention_f32_fp8_bf16__amx(const AttentionParams& p);
void attention_combine_f32_fp8_bf16__amx(const AttentionParams& p);

const OperatorEntry kOperators__amx[] = {
    {.name = "attention_f32_bf16_bf16__amx",
     .isa = KernelIsa::kAmx,
     .kv_dtype = KvDtype::kBf16,
     .head_dim_multiple = 32,
     .attention = attention_f32_bf16_bf16__amx,
     .attention_combine = attention_combine_f32_bf16_bf16__amx},
    {.name = "attention_f32_int8_bf16__amx",
     .isa = KernelIsa::kAmx,
     .kv_dtype = KvDtype::kInt8,
     .head_dim_multiple = 8,
     .attention = attention_f32_int8_bf16__amx,
     .attention_combine = attention_combine_f32_int8_bf16__amx},
    {.name = "attention_f32_fp8_bf16__amx",
     .isa = KernelIsa::kAmx,
     .kv_dtype = KvDtype::kFp8,
     .head_dim_multiple = 32,
     .attention = attention_f32_fp8_bf16__amx,
     .attention_combine = attention_combine_f32_fp8_bf16__amx},
};
const size_t kNumOperators__amx = sizeof(kOperators__amx) / sizeof(kOperators__amx[0]);

}  // namespace pith
