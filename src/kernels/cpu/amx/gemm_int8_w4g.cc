// 2..4 bit codes in groups times int8 activations.
// Arithmetic: gemm_integer_driver.h; loops there and in gemm_integer_tiles.h; layout: gemm_layout.h.
#include "kernels/cpu/amx/gemm_integer_tiles.h"
#include "kernels/cpu/gemm_integer_row.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_int8_w4g_f32__amx;

const GemmKernelEntry gemm_int8_w4g_f32__amx = IntegerRow("gemm_int8_w4g_f32__amx", GemmWeight::kW4Grouped, GemmActivation::kInt8,
                                                          KernelIsa::kAmx, RunTiledGemm<I4Format, 1>);

}  // namespace pith
