// 5..8 bit codes in groups times int8 activations.
// Arithmetic: gemm_integer_driver.h; loops there and in gemm_integer_tiles.h; layout: gemm_layout.h.
#include "kernels/cpu/amx/gemm_integer_tiles.h"
#include "kernels/cpu/gemm_outliers.h"
#include "kernels/cpu/gemm_prepack.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_int8_w8g_f32__amx;

const GemmKernelEntry gemm_int8_w8g_f32__amx = {
    .name = "gemm_int8_w8g_f32__amx",
    .weight = GemmWeight::kW8Grouped,
    .activation = GemmActivation::kInt8,
    .accumulator = "int32 per group, f32 across",
    .isa = KernelIsa::kAmx,
    .can_implement = CanPrepackI8,
    .prepack_bytes = I8PrepackBytes,
    .prepack = PrepackI8,
    .run = RunTiledGemm<I8Format, 1>,
    .read_row = ReadI8Row,
    .add_outliers = AddI8Outliers,
};

}  // namespace pith
