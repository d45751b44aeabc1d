#include "kernels/embedding.h"

#include "kernels/cpu/scalar/bf16.h"

namespace pith {

void embedding_bf16_f32__scalar(const EmbeddingParams& p) {
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const uint16_t* in = p.table + p.token[row] * p.dim;
    float* out = p.out + row * p.out_stride;
    for (int64_t i = 0; i < p.dim; ++i) out[i] = F32FromBf16(in[i]) * p.scale;
  }
}

}  // namespace pith
