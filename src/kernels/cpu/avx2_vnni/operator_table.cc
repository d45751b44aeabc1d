#include "kernels/cpu/tables.h"

namespace pith {

void attention_f32_int8_bf16__avx2_vnni(const AttentionParams& p);
void attention_combine_f32_int8_bf16__avx2_vnni(const AttentionParams& p);

// Attention over int8: queries and weights are two planes of 8 bits each (attention_int8_planes.h), so every product is done twice.
const OperatorEntry kOperators__avx2_vnni[] = {
    {.name = "attention_f32_int8_bf16__avx2_vnni",
     .isa = KernelIsa::kAvx2Vnni,
     .kv_dtype = KvDtype::kInt8,
     .head_dim_multiple = 8,
     .multiply = {ProbeLimit::kInt8, 2},
     .attention = attention_f32_int8_bf16__avx2_vnni,
     .attention_combine = attention_combine_f32_int8_bf16__avx2_vnni},
};
const size_t kNumOperators__avx2_vnni = sizeof(kOperators__avx2_vnni) / sizeof(kOperators__avx2_vnni[0]);

}  // namespace pith
