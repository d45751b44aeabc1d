// 2..4 bit codes in groups times int8 activations.
// Arithmetic and loops: gemm_integer_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx2_vnni/gemm_integer_lanes.h"
#include "kernels/cpu/gemm_prepack.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_int8_w4g_f32__avx2_vnni;

const GemmKernelEntry gemm_int8_w4g_f32__avx2_vnni = {
    .name = "gemm_int8_w4g_f32__avx2_vnni",
    .weight = GemmWeight::kW4Grouped,
    .activation = GemmActivation::kInt8,
    .accumulator = "int32 per group, f32 across",
    .isa = KernelIsa::kAvx2Vnni,
    .can_implement = CanPrepackI4,
    .prepack_bytes = I4PrepackBytes,
    .prepack = PrepackI4,
    .run = RunIntegerGemm<IntegerLanes, I4Format, 1>,
    .read_row = ReadI4Row,
};

}  // namespace pith
