// Attention in f32 FMA: keys and values become bf16 pairs as they are read (Format: attention_formats.h), then f32. Include in one kernel
// per format.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/avx512/attention_state.h"
#include "kernels/cpu/avx512/transpose.h"
#include "kernels/cpu/avx512/vector_math.h"

namespace pith {
namespace {

constexpr int kQueriesTogether = 6;  // 6 x 4 accumulators, 4 operands, a broadcast: 29 of 32 registers

// Scores of N queries with the chunk's 64 tokens, lanes over tokens. Meanwhile every cache line of the next chunk's keys is fetched:
// 64 tokens per line of elements.
template <int N, int kElementBytes>
void ScoreQueries(const AttentionTile& tile, int64_t first_query, const uint8_t* keys, const int64_t* next_offset) {
  constexpr int64_t kLineRounds = 32 / kElementBytes;  // rounds per cache line of elements
  constexpr int kFetches = kAttentionChunk / kLineRounds;
  const float* query = tile.query + first_query * tile.query_stride();
  const int64_t stride = tile.query_stride();
  const uint32_t* key = tile.key;
  __m512 acc[N][kTokenVectors] = {};
  for (int64_t i = 0; i < tile.head_dim; i += 2, key += kAttentionChunk) {
    if (next_offset != nullptr) {
      const int64_t t = i / 2 % kLineRounds * kFetches;
#pragma GCC unroll 4
      for (int64_t j = 0; j < kFetches; ++j) {
        _mm_prefetch(reinterpret_cast<const char*>(keys + next_offset[t + j] + i / 2 / kLineRounds * 64), _MM_HINT_T0);
      }
    }
    __m512i pairs[kTokenVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kTokenVectors; ++v) pairs[v] = _mm512_load_si512(key + 16 * v);
#pragma GCC unroll 6
    for (int n = 0; n < N; ++n) {
      const __m512 q = _mm512_set1_ps(query[n * stride + i]);
#pragma GCC unroll 4
      for (int v = 0; v < kTokenVectors; ++v) acc[n][v] = _mm512_fmadd_ps(q, EvenF32(pairs[v]), acc[n][v]);
    }
#pragma GCC unroll 6
    for (int n = 0; n < N; ++n) {
      const __m512 q = _mm512_set1_ps(query[n * stride + i + 1]);
#pragma GCC unroll 4
      for (int v = 0; v < kTokenVectors; ++v) acc[n][v] = _mm512_fmadd_ps(q, OddF32(pairs[v]), acc[n][v]);
    }
  }
  float* score = tile.score + first_query * kAttentionChunk;
#pragma GCC unroll 6
  for (int n = 0; n < N; ++n) {
#pragma GCC unroll 4
    for (int v = 0; v < kTokenVectors; ++v) _mm512_store_ps(score + n * kAttentionChunk + 16 * v, acc[n][v]);
  }
}

// Rows of bf16 values, and where to find the next chunk's rows meanwhile (null: nowhere).
struct ValueRows {
  const uint8_t* rows;
  const int64_t* offset;
  const uint8_t* fetch;
  const int64_t* next_offset;
};

// sum <- sum * correction + sum over tokens [begin, end) of weight * value, for N queries and V vectors of 32 dims, lanes over dims.
template <int N, int V, int kElementBytes>
void AddValuesOf(const AttentionTile& tile, int64_t query, int64_t dim, const ValueRows& values, int64_t begin, int64_t end) {
  const __mmask16 last = FirstLanes((tile.head_dim - dim) / 2 - 16 * (V - 1));
  const float* weight = tile.score + query * kAttentionChunk;
  __m512 acc[N][2 * V] = {};
  for (int64_t t = begin; t < end; ++t) {
    const uint8_t* value = values.rows + values.offset[t] + 2 * dim;
    if (values.next_offset != nullptr) {
#pragma GCC unroll 2
      for (int line = 0; line < (V * 32 * kElementBytes + 63) / 64; ++line) {
        _mm_prefetch(reinterpret_cast<const char*>(values.fetch + values.next_offset[t] + dim * kElementBytes + 64 * line), _MM_HINT_T0);
      }
    }
    __m512 x[2 * V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      const __m512i pairs = v == V - 1 ? _mm512_maskz_loadu_epi32(last, value + 64 * v) : _mm512_loadu_si512(value + 64 * v);
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
  float* sum = tile.state + query * tile.state_stride + dim;
#pragma GCC unroll 6
  for (int n = 0; n < N; ++n) {
    const __m512 correction = _mm512_set1_ps(tile.correction[query + n]);
#pragma GCC unroll 4
    for (int v = 0; v < 2 * V; ++v) {
      float* place = sum + n * tile.state_stride + 16 * v;
      _mm512_store_ps(place, _mm512_fmadd_ps(_mm512_load_ps(place), correction, acc[n][v]));
    }
  }
}

template <int N, int kElementBytes>
void AddValuesOfQueries(const AttentionTile& tile, int64_t query, const ValueRows& values, int64_t begin, int64_t end) {
  int64_t dim = 0;
  for (; dim + 32 < tile.head_dim; dim += 64) AddValuesOf<N, 2, kElementBytes>(tile, query, dim, values, begin, end);
  if (dim < tile.head_dim) AddValuesOf<N, 1, kElementBytes>(tile, query, dim, values, begin, end);
}

template <typename Format> struct Avx512Lanes : Avx512State {
  static constexpr int kElementBytes = KvElementBytes(Format::kDtype);
  static constexpr bool kScaled = KvScaleBytes(Format::kDtype) != 0;

  static void Begin(const AttentionParams& p, const AttentionTile& tile) {
    const __m512 scale = _mm512_set1_ps(p.scale * kLog2E);
    for (int64_t q = 0; q < tile.num_rows * tile.group; ++q) {
      const float* in = QueryOf(p, tile, q);
      float* out = tile.query + q * tile.query_stride();
      for (int64_t i = 0; i < tile.head_dim; i += 16) {
        _mm512_store_ps(out + i, _mm512_mul_ps(_mm512_maskz_loadu_ps(FirstLanes(tile.head_dim - i), in + i), scale));
      }
    }
  }

  // key[i][t] <- bf16 pair (2 i, 2 i + 1) of token t; values of one byte are converted once for all queries.
  static void LoadChunk(const AttentionTile& tile, const uint8_t* keys, const uint8_t* values, const int64_t* offset) {
    const int64_t num_pairs = tile.head_dim / 2;
    for (int64_t t = 0; t < kAttentionChunk; t += 16) {
      for (int64_t pair = 0; pair < num_pairs; pair += 16) {
        __m512i row[16];
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) {
          row[i] = Format::Load(keys + offset[t + i] + 2 * pair * kElementBytes, tile.head_dim - 2 * pair);
        }
        TransposeDwords(row, tile.key + pair * kAttentionChunk + t, kAttentionChunk, num_pairs - pair);
      }
    }
    if (kElementBytes == 2) return;
    for (int64_t t = 0; t < kAttentionChunk; ++t) {
      uint8_t* out = tile.value + t * 2 * tile.query_stride();
      for (int64_t i = 0; i < tile.head_dim; i += 32) {
        _mm512_store_si512(out + 2 * i, Format::Load(values + offset[t] + i * kElementBytes, tile.head_dim - i));
      }
    }
  }

  static void Scores(const AttentionTile& tile, int64_t query, int64_t query_end, const uint8_t* keys, const int64_t* next_offset) {
    for (int64_t count; query < query_end; query += count) {
      count = QueriesTogether(query_end - query, kQueriesTogether);
      switch (count) {
        case 6: ScoreQueries<6, kElementBytes>(tile, query, keys, next_offset); break;
        case 5: ScoreQueries<5, kElementBytes>(tile, query, keys, next_offset); break;
        case 4: ScoreQueries<4, kElementBytes>(tile, query, keys, next_offset); break;
        case 3: ScoreQueries<3, kElementBytes>(tile, query, keys, next_offset); break;
        case 2: ScoreQueries<2, kElementBytes>(tile, query, keys, next_offset); break;
        default: ScoreQueries<1, kElementBytes>(tile, query, keys, next_offset); break;
      }
      next_offset = nullptr;  // once is enough
    }
  }

  static void Softmax(const AttentionTile& tile, int64_t query, int64_t query_end, int64_t begin, int64_t end) {
    SoftmaxOf<kScaled>(tile, query, query_end, MasksOf(begin, end), [&](int64_t q, const TokenMasks&, __m512* s) {
#pragma GCC unroll 4
      for (int v = 0; v < kTokenVectors; ++v) {
        if (kScaled) s[v] = _mm512_mul_ps(s[v], _mm512_load_ps(tile.value_scale + 16 * v));
        _mm512_store_ps(tile.score + q * kAttentionChunk + 16 * v, s[v]);
      }
    });
  }

  static void AddValues(const AttentionTile& tile, int64_t query, int64_t query_end, const uint8_t* values, const int64_t* offset,
                        const int64_t* next_offset, int64_t begin, int64_t end) {
    int64_t converted[kAttentionChunk];
    if (kElementBytes == 1) {
      for (int64_t t = 0; t < kAttentionChunk; ++t) converted[t] = t * 2 * tile.query_stride();
    }
    ValueRows rows{kElementBytes == 1 ? tile.value : values, kElementBytes == 1 ? converted : offset, values, next_offset};
    for (int64_t count; query < query_end; query += count) {
      count = QueriesTogether(query_end - query, kQueriesTogether);
      switch (count) {
        case 6: AddValuesOfQueries<6, kElementBytes>(tile, query, rows, begin, end); break;
        case 5: AddValuesOfQueries<5, kElementBytes>(tile, query, rows, begin, end); break;
        case 4: AddValuesOfQueries<4, kElementBytes>(tile, query, rows, begin, end); break;
        case 3: AddValuesOfQueries<3, kElementBytes>(tile, query, rows, begin, end); break;
        case 2: AddValuesOfQueries<2, kElementBytes>(tile, query, rows, begin, end); break;
        default: AddValuesOfQueries<1, kElementBytes>(tile, query, rows, begin, end); break;
      }
      rows.next_offset = nullptr;  // once is enough
    }
  }

  // Sums lie, per 32 dims, even ones first.
  static void Write(const AttentionTile& tile, float* state, uint16_t* out) {
    const __m512 total = _mm512_set1_ps(TotalOf(state, tile.state_stride));
    for (int64_t dim = 0; dim < tile.head_dim; dim += 32) {
      const __m512i even = _mm512_srli_epi32(RoundToBf16High(_mm512_div_ps(_mm512_load_ps(state + dim), total)), 16);
      const __m512i odd = _mm512_and_si512(RoundToBf16High(_mm512_div_ps(_mm512_load_ps(state + dim + 16), total)),
                                           _mm512_set1_epi32(static_cast<int>(0xFFFF0000u)));
      _mm512_mask_storeu_epi32(out + dim, FirstLanes((tile.head_dim - dim) / 2), _mm512_or_si512(even, odd));
    }
  }
};

}  // namespace
}  // namespace pith
