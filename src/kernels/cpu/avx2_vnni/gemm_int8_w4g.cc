// 2..4 bit codes in groups times int8 activations.
// Arithmetic and loops: gemm_integer_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx2_vnni/gemm_integer_lanes.h"
#include "kernels/cpu/gemm_integer_row.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_int8_w4g_f32__avx2_vnni;

const GemmKernelEntry gemm_int8_w4g_f32__avx2_vnni = IntegerRow("gemm_int8_w4g_f32__avx2_vnni", GemmWeight::kW4Grouped,
                                                                GemmActivation::kInt8, KernelIsa::kAvx2Vnni,
                                                                RunIntegerGemm<IntegerLanes, I4Format, 1>);

}  // namespace pith
