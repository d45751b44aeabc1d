#include "kernels/normalization.h"

#include <immintrin.h>

#include "kernels/cpu/avx512/vector_math.h"

namespace pith {
namespace {

// Sum of squares in four chains of 16 lanes (elements i mod 64), combined in a fixed tree.
inline float SumOfSquares(const float* x, int64_t dim) {
  __m512 acc[4] = {};
  int64_t i = 0;
  for (; i + 64 <= dim; i += 64) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const __m512 y = _mm512_loadu_ps(x + i + 16 * v);
      acc[v] = _mm512_fmadd_ps(y, y, acc[v]);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    const __m512 y = _mm512_maskz_loadu_ps(FirstLanes(dim - i - 16 * v), x + i + 16 * v);
    acc[v] = _mm512_fmadd_ps(y, y, acc[v]);
  }
  return ReduceAdd(_mm512_add_ps(_mm512_add_ps(acc[0], acc[1]), _mm512_add_ps(acc[2], acc[3])));
}

}  // namespace

void rms_norm_f32__avx512(const RmsNormParams& p) {
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const float* x = p.x + row * p.x_stride;
    const float mean = SumOfSquares(x, p.dim) / static_cast<float>(p.dim);
    const __m512 inverse = _mm512_set1_ps(1.0f / __builtin_sqrtf(mean + p.eps));
    for (int64_t i = 0; i < p.dim; i += 16) {
      const __mmask16 mask = FirstLanes(p.dim - i);
      const __m512 scaled = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + i), inverse);
      __m512 y = _mm512_mul_ps(scaled, _mm512_maskz_loadu_ps(mask, p.weight + i));
      if (p.out_bf16 != nullptr) {
        _mm256_mask_storeu_epi16(p.out_bf16 + row * p.out_stride + i, mask, Bf16FromF32(y));
      } else {
        float* out = p.out_f32 + row * p.out_stride + i;
        if (p.accumulate) y = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, out), y);
        _mm512_mask_storeu_ps(out, mask, y);
      }
    }
  }
}

}  // namespace pith
