#include "kernels/cpu/tables.h"

namespace pith {

void attention_f32_bf16_bf16__avx512(const AttentionParams& p);
void attention_combine_f32_bf16_bf16__avx512(const AttentionParams& p);
void kv_append_f32_bf16__avx512(const KvAppendParams& p);
void attention_f32_int8_bf16__avx512(const AttentionParams& p);
void attention_combine_f32_int8_bf16__avx512(const AttentionParams& p);
void kv_append_f32_int8__avx512(const KvAppendParams& p);
void attention_f32_fp8_bf16__avx512(const AttentionParams& p);
void attention_combine_f32_fp8_bf16__avx512(const AttentionParams& p);
void kv_append_f32_fp8__avx512(const KvAppendParams& p);
void rms_norm_f32__avx512(const RmsNormParams& p);
void rotary_f32__avx512(const RotaryParams& p);
void gated_activation_f32_bf16__avx512(const GatedActivationParams& p);
void embedding_bf16_f32__avx512(const EmbeddingParams& p);
void convert_f32_bf16__avx512(const ConvertParams& p);
void quantize_activation_f32_int8__avx512(const QuantizeActivationParams& p);
void quantize_activation_f32_fp8__avx512(const QuantizeActivationFp8Params& p);

const OperatorEntry kOperators__avx512[] = {
    {.name = "attention_f32_bf16_bf16__avx512",
     .isa = KernelIsa::kAvx512,
     .kv_dtype = KvDtype::kBf16,
     .head_dim_multiple = 8,
     .multiply = {ProbeLimit::kF32, 1},
     .emulated = "bf16 as f32",
     .attention = attention_f32_bf16_bf16__avx512,
     .attention_combine = attention_combine_f32_bf16_bf16__avx512},
    {.name = "kv_append_f32_bf16__avx512", .isa = KernelIsa::kAvx512, .kv_dtype = KvDtype::kBf16, .kv_append = kv_append_f32_bf16__avx512},
    {.name = "attention_f32_int8_bf16__avx512",
     .isa = KernelIsa::kAvx512,
     .kv_dtype = KvDtype::kInt8,
     .head_dim_multiple = 8,
     .multiply = {ProbeLimit::kF32, 1},
     .emulated = "int8 as f32",
     .attention = attention_f32_int8_bf16__avx512,
     .attention_combine = attention_combine_f32_int8_bf16__avx512},
    {.name = "kv_append_f32_int8__avx512", .isa = KernelIsa::kAvx512, .kv_dtype = KvDtype::kInt8, .kv_append = kv_append_f32_int8__avx512},
    {.name = "attention_f32_fp8_bf16__avx512",
     .isa = KernelIsa::kAvx512,
     .kv_dtype = KvDtype::kFp8,
     .head_dim_multiple = 8,
     .multiply = {ProbeLimit::kF32, 1},
     .emulated = "fp8 as f32",
     .attention = attention_f32_fp8_bf16__avx512,
     .attention_combine = attention_combine_f32_fp8_bf16__avx512},
    {.name = "kv_append_f32_fp8__avx512", .isa = KernelIsa::kAvx512, .kv_dtype = KvDtype::kFp8, .kv_append = kv_append_f32_fp8__avx512},
    {.name = "rms_norm_f32__avx512", .isa = KernelIsa::kAvx512, .rms_norm = rms_norm_f32__avx512},
    {.name = "rotary_f32__avx512", .isa = KernelIsa::kAvx512, .rotary = rotary_f32__avx512},
    {.name = "gated_activation_f32_bf16__avx512", .isa = KernelIsa::kAvx512, .gated_activation = gated_activation_f32_bf16__avx512},
    {.name = "embedding_bf16_f32__avx512", .isa = KernelIsa::kAvx512, .embedding = embedding_bf16_f32__avx512},
    {.name = "convert_f32_bf16__avx512", .isa = KernelIsa::kAvx512, .convert = convert_f32_bf16__avx512},
    {.name = "quantize_activation_f32_int8__avx512",
     .isa = KernelIsa::kAvx512,
     .quantize_activation = quantize_activation_f32_int8__avx512},
    {.name = "quantize_activation_f32_fp8__avx512",
     .isa = KernelIsa::kAvx512,
     .quantize_activation_fp8 = quantize_activation_f32_fp8__avx512},
};
const size_t kNumOperators__avx512 = sizeof(kOperators__avx512) / sizeof(kOperators__avx512[0]);

}  // namespace pith
