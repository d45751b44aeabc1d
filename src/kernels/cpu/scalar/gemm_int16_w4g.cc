// 2..4 bit codes in groups times 16-bit fixed point activations in two int8 planes.
// Arithmetic: gemm_integer_driver.h, evaluated plainly in gemm_integer_reference.h; layout: gemm_layout.h.
#include "kernels/cpu/gemm_integer_row.h"
#include "kernels/cpu/scalar/gemm_integer_reference.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_int16_w4g_f32__scalar;

const GemmKernelEntry gemm_int16_w4g_f32__scalar = IntegerRow("gemm_int16_w4g_f32__scalar", GemmWeight::kW4Grouped, GemmActivation::kInt16,
                                                              KernelIsa::kScalar, RunIntegerReference<NibbleUnits>);

}  // namespace pith
