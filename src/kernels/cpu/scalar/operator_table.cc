#include "kernels/cpu/tables.h"

namespace pith {

void attention_f32_bf16_bf16__scalar(const AttentionParams& p);
void attention_combine_f32_bf16_bf16__scalar(const AttentionParams& p);
void kv_append_f32_bf16__scalar(const KvAppendParams& p);
void attention_f32_int8_bf16__scalar(const AttentionParams& p);
void attention_combine_f32_int8_bf16__scalar(const AttentionParams& p);
void kv_append_f32_int8__scalar(const KvAppendParams& p);
void attention_f32_fp8_bf16__scalar(const AttentionParams& p);
void attention_combine_f32_fp8_bf16__scalar(const AttentionParams& p);
void kv_append_f32_fp8__scalar(const KvAppendParams& p);
void rms_norm_f32__scalar(const RmsNormParams& p);
void rotary_f32__scalar(const RotaryParams& p);
void gated_activation_f32_bf16__scalar(const GatedActivationParams& p);
void embedding_bf16_f32__scalar(const EmbeddingParams& p);
void convert_f32_bf16__scalar(const ConvertParams& p);
void quantize_activation_f32_int8__scalar(const QuantizeActivationParams& p);
void quantize_activation_f32_fp8__scalar(const QuantizeActivationFp8Params& p);

// Attention multiplies in double, which has no probe: the one of f32 is above it.
const OperatorEntry kOperators__scalar[] = {
    {.name = "attention_f32_bf16_bf16__scalar",
     .isa = KernelIsa::kScalar,
     .kv_dtype = KvDtype::kBf16,
     .multiply = {ProbeLimit::kF32, 1},
     .emulated = "bf16 as f64",
     .attention = attention_f32_bf16_bf16__scalar,
     .attention_combine = attention_combine_f32_bf16_bf16__scalar},
    {.name = "kv_append_f32_bf16__scalar", .isa = KernelIsa::kScalar, .kv_dtype = KvDtype::kBf16, .kv_append = kv_append_f32_bf16__scalar},
    {.name = "attention_f32_int8_bf16__scalar",
     .isa = KernelIsa::kScalar,
     .kv_dtype = KvDtype::kInt8,
     .multiply = {ProbeLimit::kF32, 1},
     .emulated = "int8 as f64",
     .attention = attention_f32_int8_bf16__scalar,
     .attention_combine = attention_combine_f32_int8_bf16__scalar},
    {.name = "kv_append_f32_int8__scalar", .isa = KernelIsa::kScalar, .kv_dtype = KvDtype::kInt8, .kv_append = kv_append_f32_int8__scalar},
    {.name = "attention_f32_fp8_bf16__scalar",
     .isa = KernelIsa::kScalar,
     .kv_dtype = KvDtype::kFp8,
     .multiply = {ProbeLimit::kF32, 1},
     .emulated = "fp8 as f64",
     .attention = attention_f32_fp8_bf16__scalar,
     .attention_combine = attention_combine_f32_fp8_bf16__scalar},
    {.name = "kv_append_f32_fp8__scalar", .isa = KernelIsa::kScalar, .kv_dtype = KvDtype::kFp8, .kv_append = kv_append_f32_fp8__scalar},
    {.name = "rms_norm_f32__scalar", .isa = KernelIsa::kScalar, .rms_norm = rms_norm_f32__scalar},
    {.name = "rotary_f32__scalar", .isa = KernelIsa::kScalar, .rotary = rotary_f32__scalar},
    {.name = "gated_activation_f32_bf16__scalar", .isa = KernelIsa::kScalar, .gated_activation = gated_activation_f32_bf16__scalar},
    {.name = "embedding_bf16_f32__scalar", .isa = KernelIsa::kScalar, .embedding = embedding_bf16_f32__scalar},
    {.name = "convert_f32_bf16__scalar", .isa = KernelIsa::kScalar, .convert = convert_f32_bf16__scalar},
    {.name = "quantize_activation_f32_int8__scalar",
     .isa = KernelIsa::kScalar,
     .quantize_activation = quantize_activation_f32_int8__scalar},
    {.name = "quantize_activation_f32_fp8__scalar",
     .isa = KernelIsa::kScalar,
     .quantize_activation_fp8 = quantize_activation_f32_fp8__scalar},
};
const size_t kNumOperators__scalar = sizeof(kOperators__scalar) / sizeof(kOperators__scalar[0]);

}  // namespace pith
