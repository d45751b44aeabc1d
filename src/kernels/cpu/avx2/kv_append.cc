#include <immintrin.h>

#include "kernels/attention.h"
#include "kernels/cpu/avx2/vector_math.h"

namespace pith {
namespace {

inline void StoreHead(const float* in, int64_t head_dim, uint16_t* out) {
  for (int64_t i = 0; i < head_dim; i += 8) {
    StoreBf16(out + i, head_dim - i, Bf16FromF32(LoadF32(in + i, head_dim - i)));
  }
}

}  // namespace

void kv_append_f32_bf16__avx2(const KvAppendParams& p) {
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const int64_t t = p.first_position + row;
    const int64_t token = p.block_table[t / p.block_size] * p.block_stride + (t % p.block_size) * p.head_dim;
    for (int64_t head = 0; head < p.num_kv_heads; ++head) {
      StoreHead(p.key + row * p.key_stride + head * p.head_dim, p.head_dim, p.key_cache + token + head * p.head_stride);
      StoreHead(p.value + row * p.value_stride + head * p.head_dim, p.head_dim, p.value_cache + token + head * p.head_stride);
    }
  }
}

}  // namespace pith
