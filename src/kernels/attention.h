// Causal attention of the new rows of one sequence over its paged KV cache, which already holds their keys and values.
// POD only: ISA folders include this header.
//
//   out[r][h] = sum_j softmax_j(scale * q[r][h] . K[j][h/g]) V[j][h/g],   g = num_heads / num_kv_heads,
//   j from max(0, p - window + 1) to p, where p = first_position + r is the row's position (window 0: from 0).
// Row invariance: the bits of out[r] depend only on the row's query, its position and the cache content: key/value chunks of
// kAttentionChunk tokens, aligned to absolute position 0, are reduced one after the other in ascending order, whatever rows, heads or
// sequences share the call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pith {

constexpr int64_t kAttentionChunk = 64;  // tokens reduced together; a multiple of the KV block size or a divisor of it

struct AttentionParams {
  const float* query = nullptr;  // [num_rows, num_heads, head_dim], rows query_stride floats apart
  int64_t query_stride = 0;
  uint16_t* out = nullptr;  // bf16 bits [num_rows, num_heads * head_dim], rows out_stride elements apart
  int64_t out_stride = 0;
  int64_t num_rows = 0;
  int64_t first_position = 0;  // absolute position of row 0; rows are consecutive
  int64_t num_heads = 0, num_kv_heads = 0;
  int64_t head_dim = 0;  // a multiple of 8
  // Paged cache of this layer, bf16 bits. Token t lies in block block_table[t / block_size]; key of kv head h at
  // key_cache + block * block_stride + h * head_stride + (t % block_size) * head_dim; values likewise.
  const uint16_t* key_cache = nullptr;
  const uint16_t* value_cache = nullptr;
  const int32_t* block_table = nullptr;
  int64_t block_size = 0, block_stride = 0, head_stride = 0;  // in elements, but block_size in tokens
  int64_t window = 0;                                         // sliding window in tokens; 0: none
  float scale = 1.0f;                                         // on q.k
  // What this call computes: KV heads [kv_head_begin, kv_head_end) of rows [row_begin, row_end).
  int64_t kv_head_begin = 0, kv_head_end = 0, row_begin = 0, row_end = 0;
  float* scratch = nullptr;  // AttentionScratchFloats floats, private to the call
};

// Floats of scratch a call needs for these sizes, for every ISA.
inline int64_t AttentionScratchFloats(int64_t num_heads, int64_t num_kv_heads, int64_t head_dim) {
  constexpr int64_t kMaxRowsTogether = 16;
  const int64_t rows = kMaxRowsTogether * (num_heads / num_kv_heads);
  return rows * (2 * head_dim + 2 * kAttentionChunk + 4) + 2 * kAttentionChunk * head_dim + 64;
}

// Stores new keys and values of one sequence into the paged cache, as bf16 (round to nearest even).
struct KvAppendParams {
  const float* key = nullptr;  // [num_rows, num_kv_heads, head_dim], rows key_stride floats apart (after RoPE)
  const float* value = nullptr;
  int64_t key_stride = 0, value_stride = 0;
  int64_t num_rows = 0, first_position = 0, num_kv_heads = 0, head_dim = 0;
  uint16_t* key_cache = nullptr;
  uint16_t* value_cache = nullptr;
  const int32_t* block_table = nullptr;
  int64_t block_size = 0, block_stride = 0, head_stride = 0;
};

}  // namespace pith
