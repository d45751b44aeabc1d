// 5..8 bit codes in groups times int8 activations.
// Arithmetic: gemm_integer_driver.h, evaluated plainly in gemm_integer_reference.h; layout: gemm_layout.h.
#include "kernels/cpu/gemm_outliers.h"
#include "kernels/cpu/gemm_prepack.h"
#include "kernels/cpu/scalar/gemm_integer_reference.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_int8_w8g_f32__scalar;

const GemmKernelEntry gemm_int8_w8g_f32__scalar = {
    .name = "gemm_int8_w8g_f32__scalar",
    .weight = GemmWeight::kW8Grouped,
    .activation = GemmActivation::kInt8,
    .accumulator = "int32 per group, f32 across",
    .isa = KernelIsa::kScalar,
    .can_implement = CanPrepackI8,
    .prepack_bytes = I8PrepackBytes,
    .prepack = PrepackI8,
    .run = RunIntegerReference<ByteUnits>,
    .read_row = ReadI8Row,
    .add_outliers = AddI8Outliers,
};

}  // namespace pith
