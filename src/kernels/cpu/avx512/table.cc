#include "kernels/cpu/tables.h"

namespace pith {

extern const GemmKernelEntry gemm_bf16_bf16_f32__avx512;
extern const GemmKernelEntry gemm_bf16_w8g_f32__avx512;
extern const GemmKernelEntry gemm_bf16_w4g_f32__avx512;
extern const GemmKernelEntry gemm_bf16_f8g_f32__avx512;
extern const GemmKernelEntry gemm_fp8_f8g_f32__avx512;

namespace {

const GemmKernelEntry* const kRows[] = {
    &gemm_bf16_bf16_f32__avx512, &gemm_bf16_w8g_f32__avx512, &gemm_bf16_w4g_f32__avx512,
    &gemm_bf16_f8g_f32__avx512,  &gemm_fp8_f8g_f32__avx512,
};

}  // namespace

const GemmTable kGemmTable__avx512 = {kRows, sizeof(kRows) / sizeof(kRows[0])};

}  // namespace pith
