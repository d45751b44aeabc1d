#include "kernels/embedding.h"

#include <immintrin.h>

#include "kernels/cpu/avx2/vector_math.h"

namespace pith {

void embedding_bf16_f32__avx2(const EmbeddingParams& p) {
  const __m256 scale = _mm256_set1_ps(p.scale);
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const uint16_t* in = p.table + p.token[row] * p.dim;
    float* out = p.out + row * p.out_stride;
    for (int64_t i = 0; i < p.dim; i += 8) {
      StoreF32(out + i, p.dim - i, _mm256_mul_ps(F32FromBf16(LoadBf16(in + i, p.dim - i)), scale));
    }
  }
}

}  // namespace pith
