// 2..4 bit codes in groups, two per byte: arithmetic and layout in gemm_reference.h.
#include "kernels/cpu/scalar/gemm_reference.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_bf16_w4g_f32__scalar;

namespace {

const char* CanImplement(const GemmProblem& problem) { return CanImplementReference(problem, 2, 4); }

}  // namespace

const GemmKernelEntry gemm_bf16_w4g_f32__scalar = {
    .name = "gemm_bf16_w4g_f32__scalar",
    .weight = GemmWeight::kW4Grouped,
    .activation = GemmActivation::kBf16,
    .accumulator = "f32",
    .multiply = {ProbeLimit::kF32, 1},
    .isa = KernelIsa::kScalar,
    .can_implement = CanImplement,
    .prepack_bytes = ReferencePrepackBytes<NibbleCodes>,
    .prepack = PrepackReference<NibbleCodes>,
    .run = RunReference<NibbleCodes>,
    .read_row = ReadReferenceRow<NibbleCodes>,
    .emulated = "bf16 as f32",
};

}  // namespace pith
