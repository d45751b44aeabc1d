// The oracle: one row and one head at a time, products and exponentials in double, the running state in f32.
#include "kernels/attention.h"

#include <cmath>

#include "kernels/cpu/scalar/bf16.h"
#include "kernels/cpu/scalar/fp8.h"

namespace pith {
namespace {

// One key or value of the cache as it was stored.
template <KvDtype kDtype> class StoredVector {
 public:
  StoredVector(const AttentionParams& p, const uint8_t* cache, int64_t kv_head, int64_t t) {
    const int64_t token_bytes = p.head_dim * KvElementBytes(kDtype), slot = t % p.block_size;
    const uint8_t* head = cache + p.block_table[t / p.block_size] * p.block_stride + kv_head * p.head_stride;
    elements_ = head + slot * token_bytes;
    if (KvScaleBytes(kDtype) != 0) __builtin_memcpy(&scale_, head + p.block_size * token_bytes + slot * 4, 4);
  }
  double operator[](int64_t i) const {
    if (kDtype == KvDtype::kInt8) return static_cast<double>(scale_) * static_cast<int8_t>(elements_[i]);
    if (kDtype == KvDtype::kFp8) return static_cast<double>(scale_) * F32FromFp8(elements_[i]);
    uint16_t bits = 0;
    __builtin_memcpy(&bits, elements_ + 2 * i, 2);
    return F32FromBf16(bits);
  }

 private:
  const uint8_t* elements_;
  float scale_ = 1.0f;
};

// What a row knows of the tokens so far; lies in memory as the header says: sums, then maximum and total 16 floats before the end.
struct State {
  float* sum;
  float* max;
  float* total;
  State(float* floats, int64_t head_dim)
      : sum(floats), max(floats + AttentionStateFloats(head_dim) - 16), total(floats + AttentionStateFloats(head_dim) - 15) {}
};

struct TokenRange {
  int64_t begin, end;
};

// Online softmax over the chunks that hold the tokens of one partition.
template <KvDtype kDtype>
void AttendPartition(const AttentionParams& p, int64_t row, int64_t head, TokenRange tokens, const State& state, float* weight) {
  const int64_t kv_head = head / (p.num_heads / p.num_kv_heads);
  const float* query = p.query + row * p.query_stride + head * p.head_dim;
  float max = -INFINITY;
  double total = 0.0;
  for (int64_t i = 0; i < p.head_dim; ++i) state.sum[i] = 0.0f;
  for (int64_t chunk = tokens.begin / kAttentionChunk * kAttentionChunk; chunk < tokens.end; chunk += kAttentionChunk) {
    const int64_t first = chunk > tokens.begin ? chunk : tokens.begin;
    const int64_t last = chunk + kAttentionChunk < tokens.end ? chunk + kAttentionChunk : tokens.end;
    float new_max = max;
    for (int64_t t = first; t < last; ++t) {
      const StoredVector<kDtype> key(p, p.key_cache, kv_head, t);
      double dot = 0.0;
      for (int64_t i = 0; i < p.head_dim; ++i) dot += static_cast<double>(query[i]) * key[i];
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
      for (int64_t t = first; t < last; ++t) {
        partial += static_cast<double>(weight[t - first]) * StoredVector<kDtype>(p, p.value_cache, kv_head, t)[i];
      }
      state.sum[i] = static_cast<float>(state.sum[i] * correction + partial);
    }
    max = new_max;
  }
  *state.max = max;
  *state.total = static_cast<float>(total);
}

void Merge(const State& into, const State& state, int64_t head_dim, bool first) {
  const float max = first || *state.max > *into.max ? *state.max : *into.max;
  const double kept = first ? 0.0 : std::exp(static_cast<double>(*into.max) - max);
  const double added = first ? 1.0 : std::exp(static_cast<double>(*state.max) - max);
  for (int64_t i = 0; i < head_dim; ++i) {
    into.sum[i] = first ? state.sum[i] : static_cast<float>(into.sum[i] * kept + state.sum[i] * added);
  }
  *into.total = first ? *state.total : static_cast<float>(*into.total * kept + *state.total * added);
  *into.max = max;
}

// Row and head over all partitions it sees. `partial` says what happens to the states: kept there, taken from there, or neither.
enum class Partial { kNone, kWrite, kRead };

template <KvDtype kDtype> void AttendRow(const AttentionParams& p, int64_t row, int64_t head, Partial partial) {
  const int64_t position = p.first_position + row, group = p.num_heads / p.num_kv_heads;
  const int64_t first = AttentionFirstToken(position, p.window), floats = AttentionStateFloats(p.head_dim);
  const State merged(p.scratch, p.head_dim);
  for (int64_t partition = first / kAttentionPartition; partition < AttentionPartitionEnd(position); ++partition) {
    float* place = p.scratch + floats;
    if (partial != Partial::kNone) {
      if (partial == Partial::kWrite && (partition < p.partition_begin || partition >= p.partition_end)) continue;
      const int64_t rows = p.row_end - p.row_begin;
      place = p.partial + (((partition - p.partial_begin) * rows + row - p.row_begin) * group + head % group) * floats;
    }
    const State state(place, p.head_dim);
    if (partial != Partial::kRead) {
      const int64_t begin = partition * kAttentionPartition, end = begin + kAttentionPartition;
      const TokenRange tokens{begin > first ? begin : first, end < position + 1 ? end : position + 1};
      AttendPartition<kDtype>(p, row, head, tokens, state, p.scratch + 2 * floats);
    }
    if (partial != Partial::kWrite) Merge(merged, state, p.head_dim, partition == first / kAttentionPartition);
  }
  if (partial == Partial::kWrite) return;
  uint16_t* out = p.out + row * p.out_stride + head * p.head_dim;
  for (int64_t i = 0; i < p.head_dim; ++i) out[i] = Bf16FromF32(merged.sum[i] / *merged.total);
}

template <KvDtype kDtype> void AttendRows(const AttentionParams& p, Partial partial) {
  const int64_t group = p.num_heads / p.num_kv_heads;
  for (int64_t row = p.row_begin; row < p.row_end; ++row) {
    for (int64_t head = p.kv_head_begin * group; head < p.kv_head_end * group; ++head) AttendRow<kDtype>(p, row, head, partial);
  }
}

template <KvDtype kDtype> void Attend(const AttentionParams& p) {
  AttendRows<kDtype>(p, p.partial != nullptr ? Partial::kWrite : Partial::kNone);
}
template <KvDtype kDtype> void Combine(const AttentionParams& p) { AttendRows<kDtype>(p, Partial::kRead); }

}  // namespace

void attention_f32_bf16_bf16__scalar(const AttentionParams& p) { Attend<KvDtype::kBf16>(p); }
void attention_f32_int8_bf16__scalar(const AttentionParams& p) { Attend<KvDtype::kInt8>(p); }
void attention_f32_fp8_bf16__scalar(const AttentionParams& p) { Attend<KvDtype::kFp8>(p); }
void attention_combine_f32_bf16_bf16__scalar(const AttentionParams& p) { Combine<KvDtype::kBf16>(p); }
void attention_combine_f32_int8_bf16__scalar(const AttentionParams& p) { Combine<KvDtype::kInt8>(p); }
void attention_combine_f32_fp8_bf16__scalar(const AttentionParams& p) { Combine<KvDtype::kFp8>(p); }

}  // namespace pith
