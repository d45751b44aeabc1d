// 5..8 bit codes in groups times 16-bit fixed point activations in two int8 planes.
// Arithmetic and loops: gemm_integer_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx2_vnni/gemm_integer_lanes.h"
#include "kernels/cpu/gemm_prepack.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_int16_w8g_f32__avx2_vnni;

const GemmKernelEntry gemm_int16_w8g_f32__avx2_vnni = {
    .name = "gemm_int16_w8g_f32__avx2_vnni",
    .weight = GemmWeight::kW8Grouped,
    .activation = GemmActivation::kInt16,
    .accumulator = "int32 per group, f32 across",
    .isa = KernelIsa::kAvx2Vnni,
    .can_implement = CanPrepackI8,
    .prepack_bytes = I8PrepackBytes,
    .prepack = PrepackI8,
    .run = RunIntegerGemm<IntegerLanes, I8Format, 2>,
    .read_row = ReadI8Row,
};

}  // namespace pith
