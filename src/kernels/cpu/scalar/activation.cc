// The oracle: the formulas of the header in double, rounded once. 0.5 (1 + tanh(z)) is computed as 1 / (1 + exp(-2 z)): the same value
// without the cancellation for z far below 0.
#include "kernels/activation.h"

#include <cmath>

#include "kernels/cpu/scalar/bf16.h"

namespace pith {
namespace {

double Activate(Activation activation, double x) {
  constexpr double kTwiceSqrt2OverPi = 1.59576912160573071176;
  if (activation == Activation::kSilu) return x / (1.0 + std::exp(-x));
  return x / (1.0 + std::exp(-kTwiceSqrt2OverPi * (x + 0.044715 * x * x * x)));
}

}  // namespace

void gated_activation_f32_bf16__scalar(const GatedActivationParams& p) {
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const float* gate = p.gate + row * p.gate_stride;
    const float* up = p.up + row * p.up_stride;
    for (int64_t i = 0; i < p.dim; ++i) {
      const float y = static_cast<float>(Activate(p.activation, gate[i]) * up[i]);
      if (p.out_f32 != nullptr) {
        p.out_f32[row * p.out_stride + i] = y;
      } else {
        p.out[row * p.out_stride + i] = Bf16FromF32(y);
      }
    }
  }
}

}  // namespace pith
