#include "kernels/embedding.h"

#include <immintrin.h>

#include "kernels/cpu/avx512/vector_math.h"

namespace pith {

void embedding_bf16_f32__avx512(const EmbeddingParams& p) {
  const __m512 scale = _mm512_set1_ps(p.scale);
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const uint16_t* in = p.table + p.token[row] * p.dim;
    float* out = p.out + row * p.out_stride;
    for (int64_t i = 0; i < p.dim; i += 16) {
      const __mmask16 mask = FirstLanes(p.dim - i);
      _mm512_mask_storeu_ps(out + i, mask, _mm512_mul_ps(F32FromBf16(_mm256_maskz_loadu_epi16(mask, in + i)), scale));
    }
  }
}

}  // namespace pith
