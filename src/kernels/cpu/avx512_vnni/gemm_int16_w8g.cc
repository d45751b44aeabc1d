// 5..8 bit codes in groups times 16-bit fixed point activations in two int8 planes.
// Arithmetic and loops: gemm_integer_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx512_vnni/gemm_integer_lanes.h"
#include "kernels/cpu/gemm_integer_row.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_int16_w8g_f32__avx512_vnni;

const GemmKernelEntry gemm_int16_w8g_f32__avx512_vnni = IntegerRow("gemm_int16_w8g_f32__avx512_vnni", GemmWeight::kW8Grouped,
                                                                   GemmActivation::kInt16, KernelIsa::kAvx512Vnni,
                                                                   RunIntegerGemm<IntegerLanes, I8Format, 2>);

}  // namespace pith
