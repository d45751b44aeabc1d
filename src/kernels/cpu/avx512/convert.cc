#include <immintrin.h>

#include "kernels/cpu/avx512/vector_math.h"
#include "kernels/embedding.h"

namespace pith {

void convert_f32_bf16__avx512(const ConvertParams& p) {
  for (int64_t i = 0; i < p.count; i += 16) {
    const __mmask16 mask = FirstLanes(p.count - i);
    _mm256_mask_storeu_epi16(p.out + i, mask, Bf16FromF32(_mm512_maskz_loadu_ps(mask, p.in + i)));
  }
}

}  // namespace pith
