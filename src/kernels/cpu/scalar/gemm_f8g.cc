// e4m3 codes in groups, times bf16 or fp8 activations (which are bf16 bits with a scale per row): arithmetic and layout in
// gemm_reference.h.
#include "kernels/cpu/scalar/gemm_reference.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_bf16_f8g_f32__scalar;
extern const GemmKernelEntry gemm_fp8_f8g_f32__scalar;

namespace {

const char* CanImplement(const GemmProblem& problem) {
  if (problem.has_zero_point || problem.has_min) return "fp8 weights with zero points or mins";
  return CanImplementReference(problem, 8, 8);
}

}  // namespace

const GemmKernelEntry gemm_bf16_f8g_f32__scalar = {
    .name = "gemm_bf16_f8g_f32__scalar",
    .weight = GemmWeight::kF8Grouped,
    .activation = GemmActivation::kBf16,
    .accumulator = "f32",
    .multiply = {ProbeLimit::kF32, 1},
    .isa = KernelIsa::kScalar,
    .can_implement = CanImplement,
    .prepack_bytes = ReferencePrepackBytes<Fp8Codes>,
    .prepack = PrepackReference<Fp8Codes>,
    .run = RunReference<Fp8Codes>,
    .read_row = ReadReferenceRow<Fp8Codes>,
    .emulated = "fp8 as f32",
};

const GemmKernelEntry gemm_fp8_f8g_f32__scalar = {
    .name = "gemm_fp8_f8g_f32__scalar",
    .weight = GemmWeight::kF8Grouped,
    .activation = GemmActivation::kFp8,
    .accumulator = "f32",
    .multiply = {ProbeLimit::kF32, 1},
    .isa = KernelIsa::kScalar,
    .can_implement = CanImplement,
    .prepack_bytes = ReferencePrepackBytes<Fp8Codes>,
    .prepack = PrepackReference<Fp8Codes>,
    .run = RunReference<Fp8Codes>,
    .read_row = ReadReferenceRow<Fp8Codes>,
    .emulated = "fp8 as f32",
};

}  // namespace pith
