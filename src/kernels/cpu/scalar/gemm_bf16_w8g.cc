// 5..8 bit codes in groups, one per byte: arithmetic and layout in gemm_reference.h.
#include "kernels/cpu/scalar/gemm_reference.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_bf16_w8g_f32__scalar;

namespace {

const char* CanImplement(const GemmProblem& problem) { return CanImplementReference(problem, 5, 8); }

}  // namespace

const GemmKernelEntry gemm_bf16_w8g_f32__scalar = {
    .name = "gemm_bf16_w8g_f32__scalar",
    .weight = GemmWeight::kW8Grouped,
    .activation = GemmActivation::kBf16,
    .accumulator = "f32",
    .multiply = {ProbeLimit::kF32, 1},
    .isa = KernelIsa::kScalar,
    .can_implement = CanImplement,
    .prepack_bytes = ReferencePrepackBytes<ByteCodes>,
    .prepack = PrepackReference<ByteCodes>,
    .run = RunReference<ByteCodes>,
    .read_row = ReadReferenceRow<ByteCodes>,
    .emulated = "bf16 as f32",
};

}  // namespace pith
