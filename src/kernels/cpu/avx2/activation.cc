// Both activations are x / (1 + exp(-t)): SiLU with t = x, GELU (tanh form) with t = 2 sqrt(2/pi) (x + 0.044715 x^3), because
// 0.5 (1 + tanh(z)) = 1 / (1 + exp(-2 z)).
#include "kernels/activation.h"

#include <immintrin.h>

#include "kernels/cpu/avx2/vector_math.h"

namespace pith {
namespace {

template <Activation kActivation> inline __m256 Activate(__m256 x) {
  __m256 minus_t = _mm256_sub_ps(_mm256_setzero_ps(), x);
  if constexpr (kActivation == Activation::kGeluTanh) {
    constexpr float kTwiceSqrt2OverPi = 1.5957691216057308f;
    const __m256 cubic = _mm256_fmadd_ps(_mm256_mul_ps(x, x), _mm256_set1_ps(0.044715f * kTwiceSqrt2OverPi),
                                         _mm256_set1_ps(kTwiceSqrt2OverPi));
    minus_t = _mm256_mul_ps(minus_t, cubic);
  }
  const __m256 e = Exp(_mm256_min_ps(_mm256_set1_ps(88.75f), minus_t));  // the second operand wins when it is NaN
  return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0f), e));
}

template <Activation kActivation> void Run(const GatedActivationParams& p) {
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const float* gate = p.gate + row * p.gate_stride;
    const float* up = p.up + row * p.up_stride;
    for (int64_t i = 0; i < p.dim; i += 8) {
      const int64_t left = p.dim - i;
      const __m256 y = _mm256_mul_ps(Activate<kActivation>(LoadF32(gate + i, left)), LoadF32(up + i, left));
      if (p.out_f32 != nullptr) {
        StoreF32(p.out_f32 + row * p.out_stride + i, left, y);
      } else {
        StoreBf16(p.out + row * p.out_stride + i, left, Bf16FromF32(y));
      }
    }
  }
}

}  // namespace

void gated_activation_f32_bf16__avx2(const GatedActivationParams& p) {
  if (p.activation == Activation::kSilu) {
    Run<Activation::kSilu>(p);
  } else {
    Run<Activation::kGeluTanh>(p);
  }
}

}  // namespace pith
