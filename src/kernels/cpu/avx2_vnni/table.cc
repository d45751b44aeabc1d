#include "kernels/cpu/tables.h"

namespace pith {

extern const GemmKernelEntry gemm_int16_w8g_f32__avx2_vnni;
extern const GemmKernelEntry gemm_int16_w4g_f32__avx2_vnni;
extern const GemmKernelEntry gemm_int8_w8g_f32__avx2_vnni;
extern const GemmKernelEntry gemm_int8_w4g_f32__avx2_vnni;

namespace {

const GemmKernelEntry* const kRows[] = {
    &gemm_int16_w8g_f32__avx2_vnni,
    &gemm_int16_w4g_f32__avx2_vnni,
    &gemm_int8_w8g_f32__avx2_vnni,
    &gemm_int8_w4g_f32__avx2_vnni,
};

}  // namespace

const GemmTable kGemmTable__avx2_vnni = {kRows, sizeof(kRows) / sizeof(kRows[0])};

}  // namespace pith
