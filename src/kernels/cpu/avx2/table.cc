#include "kernels/cpu/tables.h"

namespace pith {

extern const GemmKernelEntry gemm_bf16_bf16_f32__avx2;
extern const GemmKernelEntry gemm_bf16_w8g_f32__avx2;
extern const GemmKernelEntry gemm_bf16_w4g_f32__avx2;
extern const GemmKernelEntry gemm_int16_w8g_f32__avx2;
extern const GemmKernelEntry gemm_int16_w4g_f32__avx2;
extern const GemmKernelEntry gemm_int8_w8g_f32__avx2;
extern const GemmKernelEntry gemm_int8_w4g_f32__avx2;
extern const GemmKernelEntry gemm_bf16_f8g_f32__avx2;
extern const GemmKernelEntry gemm_fp8_f8g_f32__avx2;

namespace {

const GemmKernelEntry* const kRows[] = {
    &gemm_bf16_bf16_f32__avx2, &gemm_bf16_w8g_f32__avx2, &gemm_bf16_w4g_f32__avx2, &gemm_int16_w8g_f32__avx2, &gemm_int16_w4g_f32__avx2,
    &gemm_int8_w8g_f32__avx2,  &gemm_int8_w4g_f32__avx2, &gemm_bf16_f8g_f32__avx2, &gemm_fp8_f8g_f32__avx2,
};

}  // namespace

const GemmTable kGemmTable__avx2 = {kRows, sizeof(kRows) / sizeof(kRows[0])};

}  // namespace pith
