// 5..8 bit codes in groups times 16-bit fixed point activations in two int8 planes.
// Arithmetic and loops: gemm_integer_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx2/gemm_integer_lanes.h"
#include "kernels/cpu/gemm_prepack.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_int16_w8g_f32__avx2;

const GemmKernelEntry gemm_int16_w8g_f32__avx2 = {
    .name = "gemm_int16_w8g_f32__avx2",
    .weight = GemmWeight::kW8Grouped,
    .activation = GemmActivation::kInt16,
    .accumulator = "int32 per group, f32 across",
    .isa = KernelIsa::kAvx2,
    .can_implement = CanPrepackI8,
    .prepack_bytes = I8PrepackBytes,
    .prepack = PrepackI8,
    .run = RunIntegerGemm<IntegerLanes<false>, I8Format, 2>,
    .read_row = ReadI8Row,
};

}  // namespace pith
