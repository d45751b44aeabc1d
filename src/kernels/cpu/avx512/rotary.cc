#include "kernels/rotary.h"

#include <immintrin.h>

#include "kernels/cpu/avx512/vector_math.h"

namespace pith {

void rotary_f32__avx512(const RotaryParams& p) {
  const int64_t half = p.rotary_dim / 2;
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const float* cos = p.cos + p.position[row] * half;
    const float* sin = p.sin + p.position[row] * half;
    for (int64_t head = 0; head < p.num_heads; ++head) {
      float* x = p.x + row * p.x_stride + head * p.head_dim;
      for (int64_t i = 0; i < half; i += 16) {
        const __mmask16 mask = FirstLanes(half - i);
        const __m512 c = _mm512_maskz_loadu_ps(mask, cos + i);
        const __m512 s = _mm512_maskz_loadu_ps(mask, sin + i);
        const __m512 first = _mm512_maskz_loadu_ps(mask, x + i);
        const __m512 second = _mm512_maskz_loadu_ps(mask, x + i + half);
        _mm512_mask_storeu_ps(x + i, mask, _mm512_fmsub_ps(first, c, _mm512_mul_ps(second, s)));
        _mm512_mask_storeu_ps(x + i + half, mask, _mm512_fmadd_ps(second, c, _mm512_mul_ps(first, s)));
      }
    }
  }
}

}  // namespace pith
