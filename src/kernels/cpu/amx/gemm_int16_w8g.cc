// 5..8 bit codes in groups times 16-bit fixed point activations in two int8 planes.
// Arithmetic: gemm_integer_driver.h; loops there and in gemm_integer_tiles.h; layout: gemm_layout.h.
#include "kernels/cpu/amx/gemm_integer_tiles.h"
#include "kernels/cpu/gemm_integer_row.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_int16_w8g_f32__amx;

const GemmKernelEntry gemm_int16_w8g_f32__amx = IntegerRow("gemm_int16_w8g_f32__amx", GemmWeight::kW8Grouped, GemmActivation::kInt16,
                                                           KernelIsa::kAmx, RunTiledGemm<I8Format, 2>);

}  // namespace pith
