// 2..4 bit codes in groups times 16-bit fixed point activations in two int8 planes.
// Arithmetic and loops: gemm_integer_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx2/gemm_integer_lanes.h"
#include "kernels/cpu/gemm_integer_row.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_int16_w4g_f32__avx2;

const GemmKernelEntry gemm_int16_w4g_f32__avx2 = IntegerRow("gemm_int16_w4g_f32__avx2", GemmWeight::kW4Grouped, GemmActivation::kInt16,
                                                            KernelIsa::kAvx2, RunIntegerGemm<IntegerLanes<true>, I4Format, 2>);

}  // namespace pith
