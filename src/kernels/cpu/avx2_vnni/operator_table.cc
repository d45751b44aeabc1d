#include "kernels/cpu/tables.h"

namespace pith {

void attention_f32_int8_bf16__avx2_vnni(const AttentionParams& p);
void attention_combine_f32_int8_bf16__avx2_vnni(const AttentionParams& p);

const OperatorEntry kOperators__avx2_vnni[] = {
    {.name = "attention_f32_int8_bf16__avx2_vnni",
     .isa = KernelIsa::kAvx2Vnni,
     .kv_dtype = KvDtype::kInt8,
     .head_dim_multiple = 8,
     .attention = attention_f32_int8_bf16__avx2_vnni,
     .attention_combine = attention_combine_f32_int8_bf16__avx2_vnni},
};
const size_t kNumOperators__avx2_vnni = sizeof(kOperators__avx2_vnni) / sizeof(kOperators__avx2_vnni[0]);

}  // namespace pith
