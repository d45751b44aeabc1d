#include "kernels/normalization.h"

#include <immintrin.h>

#include "kernels/cpu/avx2/vector_math.h"

namespace pith {
namespace {

// Sum of squares in four chains of 8 lanes (elements i mod 32), combined in a fixed tree.
inline float SumOfSquares(const float* x, int64_t dim) {
  __m256 acc[4] = {};
  int64_t i = 0;
  for (; i + 32 <= dim; i += 32) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const __m256 y = _mm256_loadu_ps(x + i + 8 * v);
      acc[v] = _mm256_fmadd_ps(y, y, acc[v]);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    if (i + 8 * v >= dim) continue;
    const __m256 y = LoadF32(x + i + 8 * v, dim - i - 8 * v);
    acc[v] = _mm256_fmadd_ps(y, y, acc[v]);
  }
  return ReduceAdd(_mm256_add_ps(_mm256_add_ps(acc[0], acc[1]), _mm256_add_ps(acc[2], acc[3])));
}

}  // namespace

void rms_norm_f32__avx2(const RmsNormParams& p) {
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const float* x = p.x + row * p.x_stride;
    const float mean = SumOfSquares(x, p.dim) / static_cast<float>(p.dim);
    const __m256 inverse = _mm256_set1_ps(1.0f / __builtin_sqrtf(mean + p.eps));
    for (int64_t i = 0; i < p.dim; i += 8) {
      const int64_t left = p.dim - i;
      const __m256 scaled = _mm256_mul_ps(LoadF32(x + i, left), inverse);
      __m256 y = _mm256_mul_ps(scaled, LoadF32(p.weight + i, left));
      if (p.out_bf16 != nullptr) {
        StoreBf16(p.out_bf16 + row * p.out_stride + i, left, Bf16FromF32(y));
      } else {
        float* out = p.out_f32 + row * p.out_stride + i;
        if (p.accumulate) y = _mm256_add_ps(LoadF32(out, left), y);
        StoreF32(out, left, y);
      }
    }
  }
}

}  // namespace pith
