#include "kernels/cpu/tables.h"

namespace pith {

void attention_f32_int8_bf16__avx512_vnni(const AttentionParams& p);
void attention_combine_f32_int8_bf16__avx512_vnni(const AttentionParams& p);

const OperatorEntry kOperators__avx512_vnni[] = {
    {.name = "attention_f32_int8_bf16__avx512_vnni",
     .isa = KernelIsa::kAvx512Vnni,
     .kv_dtype = KvDtype::kInt8,
     .head_dim_multiple = 8,
     .attention = attention_f32_int8_bf16__avx512_vnni,
     .attention_combine = attention_combine_f32_int8_bf16__avx512_vnni},
};
const size_t kNumOperators__avx512_vnni = sizeof(kOperators__avx512_vnni) / sizeof(kOperators__avx512_vnni[0]);

}  // namespace pith
