// 5..8 bit codes in groups times int8 activations.
// Arithmetic and loops: gemm_integer_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx2/gemm_integer_lanes.h"
#include "kernels/cpu/gemm_integer_row.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_int8_w8g_f32__avx2;

const GemmKernelEntry gemm_int8_w8g_f32__avx2 = IntegerRow("gemm_int8_w8g_f32__avx2", GemmWeight::kW8Grouped, GemmActivation::kInt8,
                                                           KernelIsa::kAvx2, RunIntegerGemm<IntegerLanes<false>, I8Format, 1>);

}  // namespace pith
