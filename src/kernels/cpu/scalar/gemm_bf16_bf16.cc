// The oracle of dense rows: sum = sum + a * w for k = 0, 1, ..., in f32 with a rounded product and a rounded sum.
// Layout: panels of 16 columns, bf16 [k][16].
#include "kernels/cpu/scalar/gemm_reference.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_bf16_bf16_f32__scalar;

namespace {

const char* CanImplement(const GemmProblem& problem) {
  if (problem.n < 1 || problem.k < 1) return "empty matrix";
  return problem.bits == 16 ? nullptr : "bits != 16";
}

size_t PrepackBytes(const GemmProblem& problem) { return (problem.n + kGemmPanel - 1) / kGemmPanel * problem.k * kGemmPanel * 2; }

void Prepack(const GemmPrepackParams& params) {
  const int64_t k_size = params.problem.k;
  uint16_t* out = reinterpret_cast<uint16_t*>(params.out);
  for (int64_t n = params.panel_begin * kGemmPanel; n < params.panel_end * kGemmPanel && n < params.problem.n; ++n) {
    uint16_t* panel = out + n / kGemmPanel * k_size * kGemmPanel;
    for (int64_t k = 0; k < k_size; ++k) panel[k * kGemmPanel + n % kGemmPanel] = params.dense[n * k_size + k];
  }
}

void Run(const GemmParams& params) {
  const int64_t k_size = params.problem.k;
  const uint16_t* weight = reinterpret_cast<const uint16_t*>(params.weight);
  for (int64_t panel = params.panel_begin; panel < params.panel_end; ++panel) {
    for (int64_t row = 0; row < params.m; ++row) {
      const uint16_t* activation = params.activation + row * params.activation_stride;
      const uint16_t* w = weight + panel * k_size * kGemmPanel;
      float sum[kGemmPanel] = {};
      for (int64_t k = 0; k < k_size; ++k, w += kGemmPanel) {
        const float a = BitsToFloat(static_cast<uint32_t>(activation[k]) << 16);
        for (int64_t j = 0; j < kGemmPanel; ++j) sum[j] += a * BitsToFloat(static_cast<uint32_t>(w[j]) << 16);
      }
      StoreReference(params, row, panel, sum);
    }
  }
}

void ReadRow(const GemmProblem& problem, const uint8_t* weight, int64_t n, float* out) {
  const uint16_t* column = reinterpret_cast<const uint16_t*>(weight) + n / kGemmPanel * problem.k * kGemmPanel + n % kGemmPanel;
  for (int64_t k = 0; k < problem.k; ++k) out[k] = BitsToFloat(static_cast<uint32_t>(column[k * kGemmPanel]) << 16);
}

}  // namespace

const GemmKernelEntry gemm_bf16_bf16_f32__scalar = {
    .name = "gemm_bf16_bf16_f32__scalar",
    .weight = GemmWeight::kBf16,
    .activation = GemmActivation::kBf16,
    .accumulator = "f32",
    .multiply = {ProbeLimit::kF32, 1},
    .isa = KernelIsa::kScalar,
    .can_implement = CanImplement,
    .prepack_bytes = PrepackBytes,
    .prepack = Prepack,
    .run = Run,
    .read_row = ReadRow,
    .emulated = "bf16 as f32",
};

}  // namespace pith
