// 5..8 bit codes in groups times int8 activations.
// Arithmetic: gemm_integer_driver.h, evaluated plainly in gemm_integer_reference.h; layout: gemm_layout.h.
#include "kernels/cpu/gemm_integer_row.h"
#include "kernels/cpu/scalar/gemm_integer_reference.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_int8_w8g_f32__scalar;

const GemmKernelEntry gemm_int8_w8g_f32__scalar = IntegerRow("gemm_int8_w8g_f32__scalar", GemmWeight::kW8Grouped, GemmActivation::kInt8,
                                                             KernelIsa::kScalar, RunIntegerReference<ByteUnits>);

}  // namespace pith
