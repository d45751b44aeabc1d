// The oracle: one row and one head at a time, products and exponentials in double, the running state in f32.
#include "kernels/attention.h"

#include <cmath>

#include "kernels/cpu/scalar/bf16.h"

namespace pith {
namespace {

// First element of token t of `cache` for one KV head.
const uint16_t* TokenOf(const AttentionParams& p, const uint16_t* cache, int64_t kv_head, int64_t t) {
  return cache + p.block_table[t / p.block_size] * p.block_stride + kv_head * p.head_stride + (t % p.block_size) * p.head_dim;
}

// Online softmax over the chunks that hold tokens [begin, end). Scratch: head_dim sums, then the scores of one chunk.
void AttendOne(const AttentionParams& p, int64_t row, int64_t head, int64_t begin, int64_t end) {
  const int64_t kv_head = head / (p.num_heads / p.num_kv_heads);
  const float* query = p.query + row * p.query_stride + head * p.head_dim;
  float* sum = p.scratch;
  float* weight = p.scratch + p.head_dim;
  float max = -INFINITY;
  double total = 0.0;
  for (int64_t i = 0; i < p.head_dim; ++i) sum[i] = 0.0f;
  for (int64_t chunk = begin / kAttentionChunk * kAttentionChunk; chunk < end; chunk += kAttentionChunk) {
    const int64_t first = chunk > begin ? chunk : begin;
    const int64_t last = chunk + kAttentionChunk < end ? chunk + kAttentionChunk : end;
    const uint16_t* value[kAttentionChunk];
    float new_max = max;
    for (int64_t t = first; t < last; ++t) {
      const uint16_t* key = TokenOf(p, p.key_cache, kv_head, t);
      value[t - first] = TokenOf(p, p.value_cache, kv_head, t);
      double dot = 0.0;
      for (int64_t i = 0; i < p.head_dim; ++i) dot += static_cast<double>(query[i]) * F32FromBf16(key[i]);
      weight[t - first] = static_cast<float>(dot * p.scale);
      if (weight[t - first] > new_max) new_max = weight[t - first];
    }
    const double correction = std::exp(static_cast<double>(max) - new_max);
    total *= correction;
    for (int64_t t = first; t < last; ++t) {
      weight[t - first] = static_cast<float>(std::exp(static_cast<double>(weight[t - first]) - new_max));
      total += weight[t - first];
    }
    for (int64_t i = 0; i < p.head_dim; ++i) {
      double partial = 0.0;
      for (int64_t t = 0; t < last - first; ++t) partial += static_cast<double>(weight[t]) * F32FromBf16(value[t][i]);
      sum[i] = static_cast<float>(sum[i] * correction + partial);
    }
    max = new_max;
  }
  uint16_t* out = p.out + row * p.out_stride + head * p.head_dim;
  for (int64_t i = 0; i < p.head_dim; ++i) out[i] = Bf16FromF32(static_cast<float>(sum[i] / total));
}

}  // namespace

void attention_f32_bf16_bf16__scalar(const AttentionParams& p) {
  const int64_t group = p.num_heads / p.num_kv_heads;
  for (int64_t row = p.row_begin; row < p.row_end; ++row) {
    const int64_t end = p.first_position + row + 1;
    const int64_t begin = p.window > 0 && end > p.window ? end - p.window : 0;
    for (int64_t head = p.kv_head_begin * group; head < p.kv_head_end * group; ++head) AttendOne(p, row, head, begin, end);
  }
}

}  // namespace pith
