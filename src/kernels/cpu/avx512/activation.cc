// Both activations are x / (1 + exp(-t)): SiLU with t = x, GELU (tanh form) with t = 2 sqrt(2/pi) (x + 0.044715 x^3), because
// 0.5 (1 + tanh(z)) = 1 / (1 + exp(-2 z)).
#include "kernels/activation.h"

#include <immintrin.h>

#include "kernels/cpu/avx512/vector_math.h"

namespace pith {
namespace {

template <Activation kActivation> inline __m512 Activate(__m512 x) {
  __m512 minus_t = _mm512_sub_ps(_mm512_setzero_ps(), x);
  if constexpr (kActivation == Activation::kGeluTanh) {
    constexpr float kTwiceSqrt2OverPi = 1.5957691216057308f;
    const __m512 cubic = _mm512_fmadd_ps(_mm512_mul_ps(x, x), _mm512_set1_ps(0.044715f * kTwiceSqrt2OverPi),
                                         _mm512_set1_ps(kTwiceSqrt2OverPi));
    minus_t = _mm512_mul_ps(minus_t, cubic);
  }
  const __m512 e = Exp(_mm512_min_ps(_mm512_set1_ps(89.0f), minus_t));  // the second operand wins when it is NaN
  return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), e));
}

template <Activation kActivation> void Run(const GatedActivationParams& p) {
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const float* gate = p.gate + row * p.gate_stride;
    const float* up = p.up + row * p.up_stride;
    for (int64_t i = 0; i < p.dim; i += 16) {
      const __mmask16 mask = FirstLanes(p.dim - i);
      const __m512 y = _mm512_mul_ps(Activate<kActivation>(_mm512_maskz_loadu_ps(mask, gate + i)), _mm512_maskz_loadu_ps(mask, up + i));
      if (p.out_f32 != nullptr) {
        _mm512_mask_storeu_ps(p.out_f32 + row * p.out_stride + i, mask, y);
      } else {
        _mm256_mask_storeu_epi16(p.out + row * p.out_stride + i, mask, Bf16FromF32(y));
      }
    }
  }
}

}  // namespace

void gated_activation_f32_bf16__avx512(const GatedActivationParams& p) {
  if (p.activation == Activation::kSilu) {
    Run<Activation::kSilu>(p);
  } else {
    Run<Activation::kGeluTanh>(p);
  }
}

}  // namespace pith
