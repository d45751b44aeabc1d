// 2..4 bit codes in groups times 16-bit fixed point activations in two int8 planes.
// Arithmetic: gemm_integer_driver.h; loops there and in gemm_integer_tiles.h; layout: gemm_layout.h.
#include "kernels/cpu/amx/gemm_integer_tiles.h"
#include "kernels/cpu/gemm_prepack.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_int16_w4g_f32__amx;

const GemmKernelEntry gemm_int16_w4g_f32__amx = {
    .name = "gemm_int16_w4g_f32__amx",
    .weight = GemmWeight::kW4Grouped,
    .activation = GemmActivation::kInt16,
    .accumulator = "int32 per group, f32 across",
    .isa = KernelIsa::kAmx,
    .can_implement = CanPrepackI4,
    .prepack_bytes = I4PrepackBytes,
    .prepack = PrepackI4,
    .run = RunTiledGemm<I4Format, 2>,
    .read_row = ReadI4Row,
};

}  // namespace pith
