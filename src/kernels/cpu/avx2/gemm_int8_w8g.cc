// 5..8 bit codes in groups times int8 activations.
// Arithmetic and loops: gemm_integer_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx2/gemm_integer_lanes.h"
#include "kernels/cpu/gemm_outliers.h"
#include "kernels/cpu/gemm_prepack.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_int8_w8g_f32__avx2;

const GemmKernelEntry gemm_int8_w8g_f32__avx2 = {
    .name = "gemm_int8_w8g_f32__avx2",
    .weight = GemmWeight::kW8Grouped,
    .activation = GemmActivation::kInt8,
    .accumulator = "int32 per group, f32 across",
    .isa = KernelIsa::kAvx2,
    .can_implement = CanPrepackI8,
    .prepack_bytes = I8PrepackBytes,
    .prepack = PrepackI8,
    .run = RunIntegerGemm<IntegerLanes<false>, I8Format, 1>,
    .read_row = ReadI8Row,
    .add_outliers = AddI8Outliers,
};

}  // namespace pith
