#include "kernels/attention.h"

#include <immintrin.h>

#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/avx512/vector_math.h"

namespace pith {
namespace {

constexpr int64_t kTokenVectors = kAttentionChunk / 16;
constexpr int kQueriesTogether = 6;  // 6 x 4 accumulators, 4 operands, a broadcast: 29 of 32 registers

// key[i][t..t+15] <- the bf16 pairs i..i+15 of 16 tokens: a 16 x 16 transposition of dwords, from rows to columns.
inline void TransposePairs(__m512i row[16], uint32_t* key, int64_t num_pairs) {
  __m512i a[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    row[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
    row[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
    row[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
    row[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
  // row[4 b + c] holds, per 128-bit lane l, pair 4 l + c of tokens 4 b .. 4 b + 3.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i b01_even = _mm512_shuffle_i32x4(row[c], row[4 + c], 0x88);  // lanes 0, 2 of b = 0, 1
    const __m512i b01_odd = _mm512_shuffle_i32x4(row[c], row[4 + c], 0xDD);
    const __m512i b23_even = _mm512_shuffle_i32x4(row[8 + c], row[12 + c], 0x88);
    const __m512i b23_odd = _mm512_shuffle_i32x4(row[8 + c], row[12 + c], 0xDD);
    a[c] = _mm512_shuffle_i32x4(b01_even, b23_even, 0x88);
    a[4 + c] = _mm512_shuffle_i32x4(b01_odd, b23_odd, 0x88);
    a[8 + c] = _mm512_shuffle_i32x4(b01_even, b23_even, 0xDD);
    a[12 + c] = _mm512_shuffle_i32x4(b01_odd, b23_odd, 0xDD);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    if (i < num_pairs) _mm512_store_si512(key + i * kAttentionChunk, a[i]);
  }
}

// Scores of N queries with the chunk's 64 tokens, lanes over tokens.
template <int N>
void ScoreQueries(const float* query, int64_t head_dim, const uint32_t* key, float* score, const uint16_t* keys,
                  const int64_t* next_offset) {
  __m512 acc[N][kTokenVectors] = {};
  for (int64_t i = 0; i < head_dim; i += 2, key += kAttentionChunk) {
    if (next_offset != nullptr) {  // every 16 rounds fetch one cache line of each of the 64 tokens
      const int64_t t = i / 2 % 16 * 4;
#pragma GCC unroll 4
      for (int64_t j = 0; j < 4; ++j) _mm_prefetch(keys + next_offset[t + j] + i / 32 * 32, _MM_HINT_T0);
    }
    __m512i pairs[kTokenVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kTokenVectors; ++v) pairs[v] = _mm512_load_si512(key + 16 * v);
#pragma GCC unroll 6
    for (int n = 0; n < N; ++n) {
      const __m512 q = _mm512_set1_ps(query[n * head_dim + i]);
#pragma GCC unroll 4
      for (int v = 0; v < kTokenVectors; ++v) acc[n][v] = _mm512_fmadd_ps(q, EvenF32(pairs[v]), acc[n][v]);
    }
#pragma GCC unroll 6
    for (int n = 0; n < N; ++n) {
      const __m512 q = _mm512_set1_ps(query[n * head_dim + i + 1]);
#pragma GCC unroll 4
      for (int v = 0; v < kTokenVectors; ++v) acc[n][v] = _mm512_fmadd_ps(q, OddF32(pairs[v]), acc[n][v]);
    }
  }
#pragma GCC unroll 6
  for (int n = 0; n < N; ++n) {
#pragma GCC unroll 4
    for (int v = 0; v < kTokenVectors; ++v) _mm512_store_ps(score + n * kAttentionChunk + 16 * v, acc[n][v]);
  }
}

// sum <- sum * correction + sum over tokens [begin, end) of weight * value, for N queries and V vectors of 32 dims, lanes over dims.
template <int N, int V>
void AddValuesOf(const AttentionTile& tile, int64_t query, int64_t dim, const uint16_t* values, const int64_t* offset,
                 const int64_t* next_offset, int64_t begin, int64_t end) {
  const __mmask16 last = FirstLanes((tile.head_dim - dim) / 2 - 16 * (V - 1));
  const float* weight = tile.score + query * kAttentionChunk;
  __m512 acc[N][2 * V] = {};
  for (int64_t t = begin; t < end; ++t) {
    const uint16_t* value = values + offset[t] + dim;
    if (next_offset != nullptr) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) _mm_prefetch(values + next_offset[t] + dim + 32 * v, _MM_HINT_T0);
    }
    __m512 x[2 * V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      const __m512i pairs = v == V - 1 ? _mm512_maskz_loadu_epi32(last, value + 32 * v) : _mm512_loadu_si512(value + 32 * v);
      x[2 * v] = EvenF32(pairs);
      x[2 * v + 1] = OddF32(pairs);
    }
#pragma GCC unroll 6
    for (int n = 0; n < N; ++n) {
      const __m512 w = _mm512_set1_ps(weight[n * kAttentionChunk + t]);
#pragma GCC unroll 4
      for (int v = 0; v < 2 * V; ++v) acc[n][v] = _mm512_fmadd_ps(w, x[v], acc[n][v]);
    }
  }
  float* sum = tile.sum + query * tile.sum_stride + dim;
#pragma GCC unroll 6
  for (int n = 0; n < N; ++n) {
    const __m512 correction = _mm512_set1_ps(tile.correction[query + n]);
#pragma GCC unroll 4
    for (int v = 0; v < 2 * V; ++v) {
      float* place = sum + n * tile.sum_stride + 16 * v;
      _mm512_store_ps(place, _mm512_fmadd_ps(_mm512_load_ps(place), correction, acc[n][v]));
    }
  }
}

template <int N>
void AddValuesOfQueries(const AttentionTile& tile, int64_t query, const uint16_t* values, const int64_t* offset, const int64_t* next_offset,
                        int64_t begin, int64_t end) {
  int64_t dim = 0;
  for (; dim + 32 < tile.head_dim; dim += 64) AddValuesOf<N, 2>(tile, query, dim, values, offset, next_offset, begin, end);
  if (dim < tile.head_dim) AddValuesOf<N, 1>(tile, query, dim, values, offset, next_offset, begin, end);
}

struct Avx512Lanes {
  static constexpr int64_t kDimsPerVector = 32;

  static void Begin(const AttentionParams& p, const AttentionTile& tile) {
    const __m512 scale = _mm512_set1_ps(p.scale);
    const int64_t per_row = tile.group * tile.head_dim;
    for (int64_t r = 0; r < tile.num_rows; ++r) {
      const float* in = p.query + (tile.row + r) * p.query_stride + tile.kv_head * per_row;
      float* out = tile.query + r * per_row;
      for (int64_t i = 0; i < per_row; i += 16) {
        const __mmask16 mask = FirstLanes(per_row - i);
        _mm512_mask_storeu_ps(out + i, mask, _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, in + i), scale));
      }
    }
    const int64_t queries = tile.num_rows * tile.group;
    for (int64_t i = 0; i < queries * tile.sum_stride; i += 16) _mm512_store_ps(tile.sum + i, _mm512_setzero_ps());
    for (int64_t q = 0; q < queries; ++q) {
      _mm512_store_ps(tile.total + q * kTotalLanes, _mm512_setzero_ps());
      tile.max[q] = -__builtin_inff();
    }
  }

  static void TransposeKeys(const AttentionTile& tile, const uint16_t* keys, const int64_t* offset) {
    const int64_t num_pairs = tile.head_dim / 2;
    for (int64_t t = 0; t < kAttentionChunk; t += 16) {
      for (int64_t pair = 0; pair < num_pairs; pair += 16) {
        const __mmask16 mask = FirstLanes(num_pairs - pair);
        __m512i row[16];
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) row[i] = _mm512_maskz_loadu_epi32(mask, keys + offset[t + i] + 2 * pair);
        TransposePairs(row, tile.key + pair * kAttentionChunk + t, num_pairs - pair);
      }
    }
  }

  static void Scores(const AttentionTile& tile, int64_t query, int64_t query_end, const uint16_t* keys, const int64_t* next_offset) {
    for (int64_t count; query < query_end; query += count) {
      count = QueriesTogether(query_end - query, kQueriesTogether);
      const float* q = tile.query + query * tile.head_dim;
      float* score = tile.score + query * kAttentionChunk;
      switch (count) {
        case 6: ScoreQueries<6>(q, tile.head_dim, tile.key, score, keys, next_offset); break;
        case 5: ScoreQueries<5>(q, tile.head_dim, tile.key, score, keys, next_offset); break;
        case 4: ScoreQueries<4>(q, tile.head_dim, tile.key, score, keys, next_offset); break;
        case 3: ScoreQueries<3>(q, tile.head_dim, tile.key, score, keys, next_offset); break;
        case 2: ScoreQueries<2>(q, tile.head_dim, tile.key, score, keys, next_offset); break;
        default: ScoreQueries<1>(q, tile.head_dim, tile.key, score, keys, next_offset); break;
      }
      next_offset = nullptr;  // once is enough
    }
  }

  // Scores of the tokens [begin, end) become weights exp(score - max); the running maximum and total follow.
  static void Softmax(const AttentionTile& tile, int64_t query, int64_t query_end, int64_t begin, int64_t end) {
    __mmask16 mask[kTokenVectors];
    for (int v = 0; v < kTokenVectors; ++v) mask[v] = static_cast<__mmask16>(FirstLanes(end - 16 * v) & ~FirstLanes(begin - 16 * v));
    for (; query < query_end; ++query) {
      float* score = tile.score + query * kAttentionChunk;
      __m512 s[kTokenVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kTokenVectors; ++v) {
        s[v] = _mm512_mask_loadu_ps(_mm512_set1_ps(-__builtin_inff()), mask[v], score + 16 * v);
      }
      const float chunk_max = ReduceMax(_mm512_max_ps(_mm512_max_ps(s[0], s[1]), _mm512_max_ps(s[2], s[3])));
      const float old_max = tile.max[query];
      const float new_max = chunk_max > old_max ? chunk_max : old_max;
      const __m512 max = _mm512_set1_ps(new_max);
#pragma GCC unroll 4
      for (int v = 0; v < kTokenVectors; ++v) {
        s[v] = Exp(_mm512_sub_ps(s[v], max));
        _mm512_store_ps(score + 16 * v, s[v]);
      }
      const __m512 correction = Exp(_mm512_sub_ps(_mm512_set1_ps(old_max), max));
      const __m512 added = _mm512_add_ps(_mm512_add_ps(s[0], s[1]), _mm512_add_ps(s[2], s[3]));
      float* total = tile.total + query * kTotalLanes;
      _mm512_store_ps(total, _mm512_fmadd_ps(_mm512_load_ps(total), correction, added));
      tile.correction[query] = _mm512_cvtss_f32(correction);
      tile.max[query] = new_max;
    }
  }

  static void AddValues(const AttentionTile& tile, int64_t query, int64_t query_end, const uint16_t* values, const int64_t* offset,
                        const int64_t* next_offset, int64_t begin, int64_t end) {
    for (int64_t count; query < query_end; query += count) {
      count = QueriesTogether(query_end - query, kQueriesTogether);
      switch (count) {
        case 6: AddValuesOfQueries<6>(tile, query, values, offset, next_offset, begin, end); break;
        case 5: AddValuesOfQueries<5>(tile, query, values, offset, next_offset, begin, end); break;
        case 4: AddValuesOfQueries<4>(tile, query, values, offset, next_offset, begin, end); break;
        case 3: AddValuesOfQueries<3>(tile, query, values, offset, next_offset, begin, end); break;
        case 2: AddValuesOfQueries<2>(tile, query, values, offset, next_offset, begin, end); break;
        default: AddValuesOfQueries<1>(tile, query, values, offset, next_offset, begin, end); break;
      }
      next_offset = nullptr;  // once is enough
    }
  }

  static void Finish(const AttentionParams& p, const AttentionTile& tile) {
    for (int64_t q = 0; q < tile.num_rows * tile.group; ++q) {
      const float* sum = tile.sum + q * tile.sum_stride;
      const __m512 total = _mm512_set1_ps(ReduceAdd(_mm512_load_ps(tile.total + q * kTotalLanes)));
      uint16_t* out = p.out + (tile.row + q / tile.group) * p.out_stride + (tile.kv_head * tile.group + q % tile.group) * tile.head_dim;
      for (int64_t dim = 0; dim < tile.head_dim; dim += 32) {
        const __m512i even = _mm512_srli_epi32(RoundToBf16High(_mm512_div_ps(_mm512_load_ps(sum + dim), total)), 16);
        const __m512i odd = _mm512_and_si512(RoundToBf16High(_mm512_div_ps(_mm512_load_ps(sum + dim + 16), total)),
                                             _mm512_set1_epi32(static_cast<int>(0xFFFF0000u)));
        _mm512_mask_storeu_epi32(out + dim, FirstLanes((tile.head_dim - dim) / 2), _mm512_or_si512(even, odd));
      }
    }
  }
};

}  // namespace

void attention_f32_bf16_bf16__avx512(const AttentionParams& p) { AttendTiles<Avx512Lanes>(p); }

}  // namespace pith
