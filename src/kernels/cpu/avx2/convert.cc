#include <immintrin.h>

#include "kernels/cpu/avx2/vector_math.h"
#include "kernels/embedding.h"

namespace pith {

void convert_f32_bf16__avx2(const ConvertParams& p) {
  for (int64_t i = 0; i < p.count; i += 8) {
    StoreBf16(p.out + i, p.count - i, Bf16FromF32(LoadF32(p.in + i, p.count - i)));
  }
}

}  // namespace pith
