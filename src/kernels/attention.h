// Causal attention of the new rows of one sequence over its paged KV cache, which already holds their keys and values.
// POD only: ISA folders include this header.
//
//   out[r][h] = sum_j softmax_j(scale * q[r][h] . K[j][h/g]) V[j][h/g],   g = num_heads / num_kv_heads,
//   j from max(0, p - window + 1) to p, where p = first_position + r is the row's position (window 0: from 0).
//
// Row invariance: the bits of out[r] depend only on the row's query, its position and the cache content. The tokens are cut into partitions
// of kAttentionPartition at multiples of it. Within a partition, chunks of kAttentionChunk tokens are reduced one after the other in
// ascending order; the states of the partitions are merged one after the other in ascending order, always, so that it does not matter
// whether one call computes them all or several threads share them, nor which rows, heads or sequences share a call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pith {

constexpr int64_t kAttentionChunk = 64;       // tokens reduced together; a multiple of the KV block size or a divisor of it
constexpr int64_t kAttentionPartition = 512;  // tokens a thread may take by itself; whole chunks
constexpr int64_t kAttentionTileRows = 16;    // rows that share one read of keys and values

// How the cache holds keys and values (docs/formats/kv_cache.md). Int8 and fp8 have one f32 scale per token and KV head, for the key and
// for the value: x = scale * code. A vector of zeros has scale 0, one with an element that is not finite has scale NaN and codes 0. With
// static scales (fp8 alone, KvAppendParams) every token of a head has the same one.
enum class KvDtype : int32_t {
  kBf16 = 0,
  kInt8 = 1,  // codes in [-127, 127], scale = max|x| / 127
  kFp8 = 2,   // e4m3fn codes, never NaN, scale = max|x| / 448, or static
};
constexpr int kNumKvDtypes = 3;

constexpr int64_t KvElementBytes(KvDtype dtype) { return dtype == KvDtype::kBf16 ? 2 : 1; }
constexpr int64_t KvScaleBytes(KvDtype dtype) { return dtype == KvDtype::kBf16 ? 0 : 4; }  // per token and KV head

// Where the cache lies. KV head h of block b begins at key_cache + b * block_stride + h * head_stride and holds block_size rows of head_dim
// elements, then, for int8 and fp8, block_size scales (4-byte aligned). Values likewise. Token t lies in block block_table[t / block_size].

// Vectors smaller than this throughout are stored as zeros (int8, fp8): below it scales and their reciprocals are not exact enough.
constexpr float kKvSmallest = 0x1p-100f;

struct AttentionParams {
  const float* query = nullptr;  // [num_rows, num_heads, head_dim], rows query_stride floats apart
  int64_t query_stride = 0;
  uint16_t* out = nullptr;  // bf16 bits [num_rows, num_heads * head_dim], rows out_stride elements apart
  int64_t out_stride = 0;
  int64_t num_rows = 0;
  int64_t first_position = 0;  // absolute position of row 0; rows are consecutive
  int64_t num_heads = 0, num_kv_heads = 0;
  int64_t head_dim = 0;
  const uint8_t* key_cache = nullptr;
  const uint8_t* value_cache = nullptr;
  const int32_t* block_table = nullptr;
  int64_t block_size = 0;                     // tokens
  int64_t block_stride = 0, head_stride = 0;  // bytes
  int64_t window = 0;                         // sliding window in tokens; 0: none
  float scale = 1.0f;                         // on q.k
  // What this call computes: KV heads [kv_head_begin, kv_head_end) of rows [row_begin, row_end).
  int64_t kv_head_begin = 0, kv_head_end = 0, row_begin = 0, row_end = 0;
  // Where several threads share the tokens of a tile (one KV head, at most kAttentionTileRows rows): `partial` holds a state of
  // AttentionStateFloats per partition, row and query head of the group, in this order, from partition partial_begin on; 64-byte aligned.
  // attention() computes the states of partitions [partition_begin, partition_end) and leaves `out` alone; when all that the rows see are
  // there, attention_combine() of the same kernel row merges them into `out`. Without `partial`, attention() does both in one call.
  float* partial = nullptr;
  int64_t partial_begin = 0, partition_begin = 0, partition_end = 0;
  float* scratch = nullptr;  // AttentionScratchFloats floats, private to the call
};

// The first token and partition a row sees, and the number of the partition after the last.
inline int64_t AttentionFirstToken(int64_t position, int64_t window) {
  return window > 0 && position + 1 > window ? position + 1 - window : 0;
}
inline int64_t AttentionPartitionEnd(int64_t position) { return position / kAttentionPartition + 1; }

// Floats of the state of one row and query head over some tokens: weighted sum, running maximum, sum of weights.
constexpr int64_t AttentionStateFloats(int64_t head_dim) { return (head_dim + 63) / 64 * 64 + 16; }

// Floats of scratch a call needs for these sizes, for every ISA and cache format.
inline int64_t AttentionScratchFloats(int64_t num_heads, int64_t num_kv_heads, int64_t head_dim) {
  const int64_t queries = kAttentionTileRows * (num_heads / num_kv_heads);
  const int64_t padded = (head_dim + 63) / 64 * 64;
  return queries * (2 * AttentionStateFloats(head_dim) + padded + kAttentionChunk + 20) + kAttentionChunk * (padded + 2) + 16;
}

// Stores new keys and values of one sequence into the paged cache, rounded to nearest even in the cache's format. Every ISA stores the same
// bits. Int8: code = round(x / scale). Fp8: code = e4m3(x / scale). The quotient is rounded to f32 first.
struct KvAppendParams {
  const float* key = nullptr;  // [num_rows, num_kv_heads, head_dim], rows key_stride floats apart (after RoPE)
  const float* value = nullptr;
  int64_t key_stride = 0, value_stride = 0;
  int64_t num_rows = 0, first_position = 0, num_kv_heads = 0, head_dim = 0;
  uint8_t* key_cache = nullptr;
  uint8_t* value_cache = nullptr;
  const int32_t* block_table = nullptr;
  int64_t block_size = 0;                     // tokens
  int64_t block_stride = 0, head_stride = 0;  // bytes
  // Fp8, else ignored: [num_kv_heads] each, finite and at least kKvSmallest. Every vector of a head is stored with its scale, and what is
  // larger than 448 scales becomes 448. Both null: each vector has a scale of its own.
  const float* key_scales = nullptr;
  const float* value_scales = nullptr;
};

}  // namespace pith
