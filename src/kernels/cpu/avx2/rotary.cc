#include "kernels/rotary.h"

#include <immintrin.h>

#include "kernels/cpu/avx2/vector_math.h"

namespace pith {

void rotary_f32__avx2(const RotaryParams& p) {
  const int64_t half = p.rotary_dim / 2;
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const float* cos = p.cos + p.position[row] * half;
    const float* sin = p.sin + p.position[row] * half;
    for (int64_t head = 0; head < p.num_heads; ++head) {
      float* x = p.x + row * p.x_stride + head * p.head_dim;
      for (int64_t i = 0; i < half; i += 8) {
        const int64_t left = half - i;
        const __m256 c = LoadF32(cos + i, left);
        const __m256 s = LoadF32(sin + i, left);
        const __m256 first = LoadF32(x + i, left);
        const __m256 second = LoadF32(x + i + half, left);
        StoreF32(x + i, left, _mm256_fmsub_ps(first, c, _mm256_mul_ps(second, s)));
        StoreF32(x + i + half, left, _mm256_fmadd_ps(second, c, _mm256_mul_ps(first, s)));
      }
    }
  }
}

}  // namespace pith
