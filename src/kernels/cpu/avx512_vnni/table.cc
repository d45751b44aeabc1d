#include "kernels/cpu/tables.h"

namespace pith {

extern const GemmKernelEntry gemm_bf16_bf16_f32__avx512_vnni;
extern const GemmKernelEntry gemm_bf16_w8g_f32__avx512_vnni;
extern const GemmKernelEntry gemm_bf16_w4g_f32__avx512_vnni;
extern const GemmKernelEntry gemm_int16_w8g_f32__avx512_vnni;
extern const GemmKernelEntry gemm_int16_w4g_f32__avx512_vnni;
extern const GemmKernelEntry gemm_int8_w8g_f32__avx512_vnni;
extern const GemmKernelEntry gemm_int8_w4g_f32__avx512_vnni;
extern const GemmKernelEntry gemm_bf16_f8g_f32__avx512_vnni;
extern const GemmKernelEntry gemm_fp8_f8g_f32__avx512_vnni;

namespace {

const GemmKernelEntry* const kRows[] = {
    &gemm_bf16_bf16_f32__avx512_vnni, &gemm_bf16_w8g_f32__avx512_vnni,  &gemm_bf16_w4g_f32__avx512_vnni,
    &gemm_int16_w8g_f32__avx512_vnni, &gemm_int16_w4g_f32__avx512_vnni, &gemm_int8_w8g_f32__avx512_vnni,
    &gemm_int8_w4g_f32__avx512_vnni,  &gemm_bf16_f8g_f32__avx512_vnni,  &gemm_fp8_f8g_f32__avx512_vnni,
};

}  // namespace

const GemmTable kGemmTable__avx512_vnni = {kRows, sizeof(kRows) / sizeof(kRows[0])};

}  // namespace pith
