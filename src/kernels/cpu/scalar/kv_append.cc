#include "kernels/attention.h"
#include "kernels/cpu/scalar/bf16.h"

namespace pith {

void kv_append_f32_bf16__scalar(const KvAppendParams& p) {
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const int64_t t = p.first_position + row;
    const int64_t token = p.block_table[t / p.block_size] * p.block_stride + (t % p.block_size) * p.head_dim;
    for (int64_t head = 0; head < p.num_kv_heads; ++head) {
      const float* key = p.key + row * p.key_stride + head * p.head_dim;
      const float* value = p.value + row * p.value_stride + head * p.head_dim;
      for (int64_t i = 0; i < p.head_dim; ++i) {
        p.key_cache[token + head * p.head_stride + i] = Bf16FromF32(key[i]);
        p.value_cache[token + head * p.head_stride + i] = Bf16FromF32(value[i]);
      }
    }
  }
}

}  // namespace pith
