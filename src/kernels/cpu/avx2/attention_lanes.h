// Attention in f32 FMA: keys and values become bf16 pairs as they are read (Format), then f32. Include in one kernel per format.
//
// A Format says how one of the cache's formats is stored: kDtype, and Load: 16 elements, or 8 and zeros where a head ends after 8, as bf16
// bits. Int8 and fp8 codes are exact in bf16; their scales go to the scores and to the weights.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/avx2/vector_math.h"

namespace pith {
namespace {

constexpr int kQueriesTogether = 5;  // 5 x 2 accumulators, 2 operands, 2 pairs, a broadcast: 15 of 16 registers

// key[i][t..t+7] <- the bf16 pairs i..i+7 of 8 tokens: an 8 x 8 transposition of dwords, from rows to columns.
inline void TransposePairs(const __m256i row[8], uint32_t* key, int64_t num_pairs) {
  __m256i a[8], b[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_epi32(row[i], row[i + 1]);
    a[i + 1] = _mm256_unpackhi_epi32(row[i], row[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    b[i] = _mm256_unpacklo_epi64(a[i], a[i + 2]);
    b[i + 1] = _mm256_unpackhi_epi64(a[i], a[i + 2]);
    b[i + 2] = _mm256_unpacklo_epi64(a[i + 1], a[i + 3]);
    b[i + 3] = _mm256_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    a[c] = _mm256_permute2x128_si256(b[c], b[4 + c], 0x20);
    a[4 + c] = _mm256_permute2x128_si256(b[c], b[4 + c], 0x31);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    if (i < num_pairs) _mm256_store_si256(reinterpret_cast<__m256i*>(key + i * kAttentionChunk), a[i]);
  }
}

// Scores of N queries with 16 tokens from token t, lanes over tokens. Meanwhile every cache line of these tokens' successors is fetched.
template <int N, int kElementBytes>
void ScoreQueries(const AttentionTile& tile, int64_t first_query, int64_t t, const uint8_t* keys, const int64_t* next_offset) {
  constexpr int64_t kLineRounds = 32 / kElementBytes;  // rounds per cache line of elements
  const float* query = tile.query + first_query * tile.query_stride();
  const int64_t stride = tile.query_stride();
  const uint32_t* key = tile.key + t;
  __m256 acc[N][2] = {};
  for (int64_t i = 0; i < tile.head_dim; i += 2, key += kAttentionChunk) {
    if (next_offset != nullptr) {
      const int64_t token = t + i / 2 % 16;
      _mm_prefetch(reinterpret_cast<const char*>(keys + next_offset[token] + i / 2 / kLineRounds * 64), _MM_HINT_T0);
    }
    const __m256i pairs0 = _mm256_load_si256(reinterpret_cast<const __m256i*>(key));
    const __m256i pairs1 = _mm256_load_si256(reinterpret_cast<const __m256i*>(key + 8));
    const __m256 even[2] = {EvenF32(pairs0), EvenF32(pairs1)};
#pragma GCC unroll 5
    for (int n = 0; n < N; ++n) {
      const __m256 q = _mm256_broadcast_ss(query + n * stride + i);
      acc[n][0] = _mm256_fmadd_ps(q, even[0], acc[n][0]);
      acc[n][1] = _mm256_fmadd_ps(q, even[1], acc[n][1]);
    }
    const __m256 odd[2] = {OddF32(pairs0), OddF32(pairs1)};
#pragma GCC unroll 5
    for (int n = 0; n < N; ++n) {
      const __m256 q = _mm256_broadcast_ss(query + n * stride + i + 1);
      acc[n][0] = _mm256_fmadd_ps(q, odd[0], acc[n][0]);
      acc[n][1] = _mm256_fmadd_ps(q, odd[1], acc[n][1]);
    }
  }
  float* score = tile.score + first_query * kAttentionChunk + t;
#pragma GCC unroll 5
  for (int n = 0; n < N; ++n) {
    _mm256_store_ps(score + n * kAttentionChunk, acc[n][0]);
    _mm256_store_ps(score + n * kAttentionChunk + 8, acc[n][1]);
  }
}

// Rows of values in the cache (bf16) or converted, and where to find the next chunk's rows meanwhile (null: nowhere).
struct ValueRows {
  const uint8_t* rows;
  const int64_t* offset;
  const uint8_t* fetch;
  const int64_t* next_offset;
  int64_t fetch_dims;  // dims per cache line
};

// 16 bf16, or 8 and zeros where a head ends after 8.
inline __m256i LoadPairs(const uint8_t* in, int64_t left) {
  return left >= 16 ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in))
                    : _mm256_zextsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in)));
}

// sum <- sum * correction + sum over tokens [begin, end) of weight * value, for N queries and 16 dims, lanes over dims.
template <int N>
void AddValuesOf(const AttentionTile& tile, int64_t query, int64_t dim, const ValueRows& values, int64_t begin, int64_t end) {
  const int64_t left = tile.head_dim - dim;
  const float* weight = tile.score + query * kAttentionChunk;
  const bool fetch = values.next_offset != nullptr && dim % values.fetch_dims == 0;
  const uint8_t* line = values.fetch + dim * (64 / values.fetch_dims);
  __m256 acc[N][2] = {};
  for (int64_t t = begin; t < end; ++t) {
    if (fetch) _mm_prefetch(reinterpret_cast<const char*>(line + values.next_offset[t]), _MM_HINT_T0);
    const __m256i pairs = LoadPairs(values.rows + values.offset[t] + 2 * dim, left);
    const __m256 even = EvenF32(pairs);
    const __m256 odd = OddF32(pairs);
#pragma GCC unroll 5
    for (int n = 0; n < N; ++n) {
      const __m256 w = _mm256_broadcast_ss(weight + n * kAttentionChunk + t);
      acc[n][0] = _mm256_fmadd_ps(w, even, acc[n][0]);
      acc[n][1] = _mm256_fmadd_ps(w, odd, acc[n][1]);
    }
  }
  float* sum = tile.state + query * tile.state_stride + dim;
#pragma GCC unroll 5
  for (int n = 0; n < N; ++n) {
    const __m256 correction = _mm256_broadcast_ss(tile.correction + query + n);
    float* place = sum + n * tile.state_stride;
    _mm256_store_ps(place, _mm256_fmadd_ps(_mm256_load_ps(place), correction, acc[n][0]));
    _mm256_store_ps(place + 8, _mm256_fmadd_ps(_mm256_load_ps(place + 8), correction, acc[n][1]));
  }
}

template <typename Format> struct Avx2Lanes : RangesApart {
  static constexpr int kElementBytes = KvElementBytes(Format::kDtype);
  static constexpr bool kScaled = KvScaleBytes(Format::kDtype) != 0;

  static void Begin(const AttentionParams& p, const AttentionTile& tile) {
    const __m256 scale = _mm256_set1_ps(p.scale);
    for (int64_t q = 0; q < tile.num_rows * tile.group; ++q) {
      const float* in = QueryOf(p, tile, q);
      float* out = tile.query + q * tile.query_stride();
      for (int64_t i = 0; i < tile.head_dim; i += 8) _mm256_store_ps(out + i, _mm256_mul_ps(_mm256_loadu_ps(in + i), scale));
    }
  }

  static void Open(const AttentionTile& tile, int64_t query, int64_t query_end) {
    for (; query < query_end; ++query) {
      float* sum = tile.state + query * tile.state_stride;
      for (int64_t i = 0; i < tile.state_stride; i += 8) _mm256_store_ps(sum + i, _mm256_setzero_ps());
      _mm256_store_ps(tile.total + query * kTotalLanes, _mm256_setzero_ps());
      tile.max[query] = -__builtin_inff();
    }
  }

  // key[i][t] <- bf16 pair (2 i, 2 i + 1) of token t; values of one byte are converted once for all queries.
  static void LoadChunk(const AttentionTile& tile, const uint8_t* keys, const uint8_t* values, const int64_t* offset) {
    const int64_t num_pairs = tile.head_dim / 2;
    for (int64_t t = 0; t < kAttentionChunk; t += 8) {
      for (int64_t pair = 0; pair < num_pairs; pair += 8) {
        __m256i row[8];
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) {
          row[i] = Format::Load(keys + offset[t + i] + 2 * pair * kElementBytes, tile.head_dim - 2 * pair);
        }
        TransposePairs(row, tile.key + pair * kAttentionChunk + t, num_pairs - pair);
      }
    }
    if (kElementBytes == 2) return;
    for (int64_t t = 0; t < kAttentionChunk; ++t) {
      uint8_t* out = tile.value + t * 2 * tile.query_stride();
      for (int64_t i = 0; i < tile.head_dim; i += 16) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(out + 2 * i), Format::Load(values + offset[t] + i, tile.head_dim - i));
      }
    }
  }

  static void Scores(const AttentionTile& tile, int64_t query, int64_t query_end, const uint8_t* keys, const int64_t* next_offset) {
    for (int64_t count; query < query_end; query += count) {
      count = QueriesTogether(query_end - query, kQueriesTogether);
      for (int64_t t = 0; t < kAttentionChunk; t += 16) {
        switch (count) {
          case 5: ScoreQueries<5, kElementBytes>(tile, query, t, keys, next_offset); break;
          case 4: ScoreQueries<4, kElementBytes>(tile, query, t, keys, next_offset); break;
          case 3: ScoreQueries<3, kElementBytes>(tile, query, t, keys, next_offset); break;
          case 2: ScoreQueries<2, kElementBytes>(tile, query, t, keys, next_offset); break;
          default: ScoreQueries<1, kElementBytes>(tile, query, t, keys, next_offset); break;
        }
      }
      next_offset = nullptr;  // once is enough
    }
  }

  // Scores of the tokens [begin, end) become weights exp(score - max), times the values' scales; the running maximum and total follow.
  static void Softmax(const AttentionTile& tile, int64_t query, int64_t query_end, int64_t begin, int64_t end) {
    const __m256 lowest = _mm256_set1_ps(-__builtin_inff());
    for (; query < query_end; ++query) {
      float* score = tile.score + query * kAttentionChunk;
      __m256 chunk_max = lowest;
      for (int64_t t = 0; t < kAttentionChunk; t += 8) {
        const __m256i mask = _mm256_andnot_si256(FirstLanes(Larger(begin - t, 0)), FirstLanes(Larger(end - t, 0)));
        __m256 s = _mm256_load_ps(score + t);
        if (kScaled) s = _mm256_mul_ps(s, _mm256_load_ps(tile.key_scale + t));
        s = _mm256_blendv_ps(lowest, s, _mm256_castsi256_ps(mask));
        _mm256_store_ps(score + t, s);
        chunk_max = _mm256_max_ps(chunk_max, s);
      }
      const float old_max = tile.max[query];
      const float reduced = ReduceMax(chunk_max);
      const float new_max = reduced > old_max ? reduced : old_max;
      const __m256 max = _mm256_set1_ps(new_max);
      __m256 added[2] = {};
#pragma GCC unroll 8
      for (int64_t t = 0; t < kAttentionChunk; t += 8) {
        const __m256 w = Exp(_mm256_sub_ps(_mm256_load_ps(score + t), max));
        _mm256_store_ps(score + t, kScaled ? _mm256_mul_ps(w, _mm256_load_ps(tile.value_scale + t)) : w);
        added[t / 8 % 2] = _mm256_add_ps(added[t / 8 % 2], w);
      }
      const __m256 correction = Exp(_mm256_sub_ps(_mm256_set1_ps(old_max), max));
      float* total = tile.total + query * kTotalLanes;
      _mm256_store_ps(total, _mm256_fmadd_ps(_mm256_load_ps(total), correction, _mm256_add_ps(added[0], added[1])));
      tile.correction[query] = _mm256_cvtss_f32(correction);
      tile.max[query] = new_max;
    }
  }

  static void AddValues(const AttentionTile& tile, int64_t query, int64_t query_end, const uint8_t* values, const int64_t* offset,
                        const int64_t* next_offset, int64_t begin, int64_t end) {
    int64_t converted[kAttentionChunk];
    ValueRows rows{values, offset, values, next_offset, 64 / kElementBytes};
    if (kElementBytes == 1) {
      for (int64_t t = 0; t < kAttentionChunk; ++t) converted[t] = t * 2 * tile.query_stride();
      rows.rows = tile.value;
      rows.offset = converted;
    }
    for (int64_t count; query < query_end; query += count) {
      count = QueriesTogether(query_end - query, kQueriesTogether);
      for (int64_t dim = 0; dim < tile.head_dim; dim += 16) {
        switch (count) {
          case 5: AddValuesOf<5>(tile, query, dim, rows, begin, end); break;
          case 4: AddValuesOf<4>(tile, query, dim, rows, begin, end); break;
          case 3: AddValuesOf<3>(tile, query, dim, rows, begin, end); break;
          case 2: AddValuesOf<2>(tile, query, dim, rows, begin, end); break;
          default: AddValuesOf<1>(tile, query, dim, rows, begin, end); break;
        }
      }
      rows.next_offset = nullptr;  // once is enough
    }
  }

  static void Close(const AttentionTile& tile, int64_t query, int64_t query_end) {
    for (; query < query_end; ++query) {
      float* state = tile.state + query * tile.state_stride;
      MaxOf(state, tile.state_stride) = tile.max[query];
      TotalOf(state, tile.state_stride) = ReduceAdd(_mm256_load_ps(tile.total + query * kTotalLanes));
    }
  }

  static void Merge(const AttentionTile& tile, float* into, const float* state, bool first) {
    if (first) {
      for (int64_t i = 0; i < tile.state_stride; i += 8) _mm256_store_ps(into + i, _mm256_load_ps(state + i));
      return;
    }
    const float old_max = into[tile.state_stride - 16], other_max = state[tile.state_stride - 16];
    const float max = other_max > old_max ? other_max : old_max;
    const __m256 kept = Exp(_mm256_set1_ps(old_max - max)), added = Exp(_mm256_set1_ps(other_max - max));
    for (int64_t i = 0; i < tile.state_stride; i += 8) {
      _mm256_store_ps(into + i, _mm256_fmadd_ps(_mm256_load_ps(state + i), added, _mm256_mul_ps(_mm256_load_ps(into + i), kept)));
    }
    MaxOf(into, tile.state_stride) = max;
  }

  // Sums lie, per 16 dims, even ones first.
  static void Write(const AttentionTile& tile, float* state, uint16_t* out) {
    const __m256 total = _mm256_set1_ps(TotalOf(state, tile.state_stride));
    for (int64_t dim = 0; dim < tile.head_dim; dim += 16) {
      const __m256i even = _mm256_srli_epi32(RoundToBf16High(_mm256_div_ps(_mm256_load_ps(state + dim), total)), 16);
      const __m256i odd = _mm256_and_si256(RoundToBf16High(_mm256_div_ps(_mm256_load_ps(state + dim + 8), total)),
                                           _mm256_set1_epi32(static_cast<int>(0xFFFF0000u)));
      const __m256i bits = _mm256_or_si256(even, odd);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + dim), _mm256_castsi256_si128(bits));
      if (tile.head_dim - dim >= 16) _mm_storeu_si128(reinterpret_cast<__m128i*>(out + dim + 8), _mm256_extracti128_si256(bits, 1));
    }
  }
};

}  // namespace
}  // namespace pith
