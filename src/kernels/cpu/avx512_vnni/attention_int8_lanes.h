// Attention over an int8 cache in integers: vpdpbusd for queries x keys and for weights x values.
//
// Queries become 16-bit fixed point per row and head, weights (times the values' scales) 16-bit fixed point per row, head and chunk
// (cpu/attention_int8_planes.h), so that nothing is rounded to 8 bits but what the cache holds. Integer sums are exact in any order.
#pragma once

#include <immintrin.h>

#include "kernels/attention.h"
#include "kernels/cpu/attention_int8_planes.h"
#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/avx512/attention_state.h"
#include "kernels/cpu/avx512/transpose.h"
#include "kernels/cpu/avx512/vector_math.h"

namespace pith {
namespace {

constexpr int kQueriesTogether = 3;  // 3 queries x 2 planes x 4 accumulators, 4 operands, a broadcast: 29 of 32 registers

// acc += four products of unsigned and signed bytes per dword. The intrinsic makes GCC 12 copy and spill its accumulators.
inline void AddProducts(__m512i& acc, __m512i unsigned_bytes, __m512i signed_bytes) {
  asm("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(unsigned_bytes), "v"(signed_bytes));
}

// A score from the sums of its planes: exact below 2^24, for head_dim up to 1024.
inline __m512 ScoreOf(__m512i high, __m512i low, __m512 scale) {
  return _mm512_mul_ps(_mm512_fmadd_ps(_mm512_cvtepi32_ps(high), _mm512_set1_ps(256.0f), _mm512_cvtepi32_ps(low)), scale);
}

// sum <- sum * correction + weight_scale * (256 high + low), 16 dims of a query. 64 * 255 * 127 * 257 < 2^30.
inline void AddToSum(const AttentionTile& tile, int64_t query, __m512i high, __m512i low, float* sum) {
  const __m512 added = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(high, 8), low));
  const __m512 kept = _mm512_mul_ps(_mm512_load_ps(sum), _mm512_set1_ps(tile.correction[query]));
  _mm512_store_ps(sum, _mm512_fmadd_ps(added, _mm512_set1_ps(tile.weight_scale[query]), kept));
}

// Scores of N queries with the chunk's 64 tokens, lanes over tokens. Meanwhile the next chunk's keys are fetched.
template <int N> void ScoreQueries(const AttentionTile& tile, int64_t first_query, const uint8_t* keys, const int64_t* next_offset) {
  __m512i acc[N][2][kTokenVectors];
  const int8_t* plane[N][2];
#pragma GCC unroll 3
  for (int n = 0; n < N; ++n) {
    const QueryPlanes query = PlanesOf(tile, first_query + n);
#pragma GCC unroll 2
    for (int part = 0; part < 2; ++part) {
      plane[n][part] = query.plane[part];
#pragma GCC unroll 4
      for (int v = 0; v < kTokenVectors; ++v) acc[n][part][v] = _mm512_set1_epi32(query.start[part]);
    }
  }
  const uint32_t* key = tile.key;
  for (int64_t i = 0; i < tile.head_dim; i += 4, key += kAttentionChunk) {
    if (next_offset != nullptr) {  // 16 rounds fetch one cache line of each of the 64 tokens
      const int64_t t = i / 4 % 16 * 4;
#pragma GCC unroll 4
      for (int64_t j = 0; j < 4; ++j) _mm_prefetch(reinterpret_cast<const char*>(keys + next_offset[t + j] + i / 64 * 64), _MM_HINT_T0);
    }
    __m512i k[kTokenVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kTokenVectors; ++v) k[v] = _mm512_load_si512(key + 16 * v);
#pragma GCC unroll 3
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 2
      for (int part = 0; part < 2; ++part) {
        int32_t four;
        __builtin_memcpy(&four, plane[n][part] + i, 4);
        const __m512i q = _mm512_set1_epi32(four);
#pragma GCC unroll 4
        for (int v = 0; v < kTokenVectors; ++v) AddProducts(acc[n][part][v], k[v], q);
      }
    }
  }
#pragma GCC unroll 3
  for (int n = 0; n < N; ++n) {
    const __m512 scale = _mm512_set1_ps(tile.query_scale[first_query + n]);
#pragma GCC unroll 4
    for (int v = 0; v < kTokenVectors; ++v) {
      _mm512_store_ps(tile.score + (first_query + n) * kAttentionChunk + 16 * v, ScoreOf(acc[n][0][v], acc[n][1][v], scale));
    }
  }
}

// sum <- sum * correction + weight_scale * sum over the chunk's tokens of weight * value, for N queries and 64 dims from `dim`, lanes over
// dims in the order of InterleaveValues. Weights outside of a row's tokens are 0. Meanwhile the next chunk's values are fetched.
template <int N>
void AddValuesOf(const AttentionTile& tile, int64_t query, int64_t dim, int64_t quad, int64_t quad_end, const uint8_t* values,
                 const int64_t* next_offset) {
  __m512i acc[N][2][4] = {};
  const auto* weights = reinterpret_cast<const uint8_t*>(tile.score + query * kAttentionChunk);
  for (; quad < quad_end; ++quad) {
    if (next_offset != nullptr) {
#pragma GCC unroll 4
      for (int64_t j = 0; j < 4; ++j) _mm_prefetch(reinterpret_cast<const char*>(values + next_offset[4 * quad + j] + dim), _MM_HINT_T0);
    }
    const uint8_t* panel = tile.value + (dim / 64 * kQuads + quad) * 256;
    __m512i x[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) x[v] = _mm512_load_si512(panel + 64 * v);
#pragma GCC unroll 3
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 2
      for (int part = 0; part < 2; ++part) {
        int32_t four;
        __builtin_memcpy(&four, weights + n * 4 * kAttentionChunk + part * kAttentionChunk + 4 * quad, 4);
        const __m512i w = _mm512_set1_epi32(four);
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) AddProducts(acc[n][part][v], w, x[v]);
      }
    }
  }
#pragma GCC unroll 3
  for (int n = 0; n < N; ++n) {
    float* sum = tile.state + (query + n) * tile.state_stride + dim;
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) AddToSum(tile, query + n, acc[n][0][v], acc[n][1][v], sum + 16 * v);
  }
}

// Weights of a query to its planes, over its scores: high plane, then low plane, a byte per token.
inline void QuantizeWeights(const AttentionTile& tile, int64_t query, const TokenMasks& masks, const __m512* weight) {
  __m512 w[kTokenVectors];
  __mmask16 nan = 0;
#pragma GCC unroll 4
  for (int v = 0; v < kTokenVectors; ++v) {
    w[v] = _mm512_maskz_mul_ps(masks.of[v], weight[v], _mm512_load_ps(tile.value_scale + 16 * v));
    nan |= _mm512_cmp_ps_mask(w[v], w[v], _CMP_UNORD_Q);
  }
  const float largest = ReduceMax(_mm512_max_ps(_mm512_max_ps(w[0], w[1]), _mm512_max_ps(w[2], w[3])));
  const FixedPoint fixed = FixedPointOfWeights(largest, nan != 0);
  tile.weight_scale[query] = fixed.scale;
  const __m512 steps = _mm512_set1_ps(fixed.steps);
  auto* plane = reinterpret_cast<uint8_t*>(tile.score + query * kAttentionChunk);
#pragma GCC unroll 4
  for (int v = 0; v < kTokenVectors; ++v) {
    const __m512i code = _mm512_cvtps_epu32(_mm512_mul_ps(w[v], steps));
    _mm_store_si128(reinterpret_cast<__m128i*>(plane + 16 * v), _mm512_cvtepi32_epi8(_mm512_srli_epi32(code, 8)));
    _mm_store_si128(reinterpret_cast<__m128i*>(plane + kAttentionChunk + 16 * v), _mm512_cvtepi32_epi8(code));
  }
}

// One query times the softmax scale to its planes. A query that is not finite has scale NaN, so all its scores are.
inline void QuantizeQuery(const AttentionTile& tile, int64_t query, const float* in, float factor) {
  const QueryPlanes out = PlanesOf(tile, query);
  __m512i largest_bits = _mm512_setzero_si512();
  for (int64_t i = 0; i < tile.head_dim; i += 16) {
    const __m512i bits = _mm512_maskz_loadu_epi32(FirstLanes(tile.head_dim - i), in + i);
    largest_bits = _mm512_max_epu32(largest_bits, _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF)));
  }
  const uint32_t bits = _mm512_reduce_max_epu32(largest_bits);
  const FixedPoint fixed = FixedPointOfQuery(bits, factor);
  tile.query_scale[query] = fixed.scale;
  const bool finite = bits < 0x7F800000;
  const __m512 steps = _mm512_set1_ps(fixed.steps);
  __m512i sum[2] = {};
  for (int64_t i = 0; i < tile.query_stride(); i += 16) {
    const __m512 x = _mm512_maskz_loadu_ps(FirstLanes(finite ? tile.head_dim - i : 0), in + i);
    const __m512i code = _mm512_cvtps_epi32(_mm512_mul_ps(x, steps));
    const __m512i high = _mm512_srai_epi32(_mm512_add_epi32(code, _mm512_set1_epi32(128)), 8);
    const __m512i low = _mm512_sub_epi32(code, _mm512_slli_epi32(high, 8));
    _mm_store_si128(reinterpret_cast<__m128i*>(out.plane[0] + i), _mm512_cvtepi32_epi8(high));
    _mm_store_si128(reinterpret_cast<__m128i*>(out.plane[1] + i), _mm512_cvtepi32_epi8(low));
    sum[0] = _mm512_add_epi32(sum[0], high);
    sum[1] = _mm512_add_epi32(sum[1], low);
  }
  for (int part = 0; part < 2; ++part) out.start[part] = -128 * _mm512_reduce_add_epi32(sum[part]);
}

// Four tokens' values side by side, as vpdpbusd adds them: vector v of `out`, 128-bit lane l, dword e holds dim 16 l + 4 v + e of tokens
// 0 .. 3.
inline void InterleaveValues(const __m512i token[4], uint8_t* out) {
  const __m512i low01 = _mm512_unpacklo_epi8(token[0], token[1]), high01 = _mm512_unpackhi_epi8(token[0], token[1]);
  const __m512i low23 = _mm512_unpacklo_epi8(token[2], token[3]), high23 = _mm512_unpackhi_epi8(token[2], token[3]);
  _mm512_store_si512(out, _mm512_unpacklo_epi16(low01, low23));
  _mm512_store_si512(out + 64, _mm512_unpackhi_epi16(low01, low23));
  _mm512_store_si512(out + 128, _mm512_unpacklo_epi16(high01, high23));
  _mm512_store_si512(out + 192, _mm512_unpackhi_epi16(high01, high23));
}

struct VnniLanes : Avx512State {
  static constexpr int kElementBytes = 1;
  static constexpr bool kScaled = true;

  static void Begin(const AttentionParams& p, const AttentionTile& tile) {
    for (int64_t q = 0; q < tile.num_rows * tile.group; ++q) QuantizeQuery(tile, q, QueryOf(p, tile, q), p.scale * kLog2E);
  }

  // key[i][t] <- dims 4 i .. 4 i + 3 of token t, plus 128; values by quads of tokens.
  static void LoadChunk(const AttentionTile& tile, const uint8_t* keys, const uint8_t* values, const int64_t* offset) {
    const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
    for (int64_t dim = 0; dim < tile.head_dim; dim += 64) {
      const __mmask16 lanes = FirstLanes((tile.head_dim - dim) / 4);
      uint32_t* key = tile.key + dim / 4 * kAttentionChunk;
      uint8_t* value = tile.value + dim / 64 * kQuads * 256;
      for (int64_t t = 0; t < kAttentionChunk; t += 16) {
        __m512i row[16];
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) row[i] = _mm512_xor_si512(_mm512_maskz_loadu_epi32(lanes, keys + offset[t + i] + dim), sign);
        TransposeDwords(row, key + t, kAttentionChunk, (tile.head_dim - dim) / 4);
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) row[i] = _mm512_maskz_loadu_epi32(lanes, values + offset[t + i] + dim);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) InterleaveValues(row + 4 * i, value + (t / 4 + i) * 256);
      }
    }
  }

  static void Scores(const AttentionTile& tile, int64_t query, int64_t query_end, const uint8_t* keys, const int64_t* next_offset) {
    for (int64_t count; query < query_end; query += count) {
      count = QueriesTogether(query_end - query, kQueriesTogether);
      switch (count) {
        case 3: ScoreQueries<3>(tile, query, keys, next_offset); break;
        case 2: ScoreQueries<2>(tile, query, keys, next_offset); break;
        default: ScoreQueries<1>(tile, query, keys, next_offset); break;
      }
      next_offset = nullptr;  // once is enough
    }
  }

  static void Softmax(const AttentionTile& tile, int64_t query, int64_t query_end, int64_t begin, int64_t end) {
    SoftmaxOf<true>(tile, query, query_end, MasksOf(begin, end),
                    [&](int64_t q, const TokenMasks& masks, const __m512* s) { QuantizeWeights(tile, q, masks, s); });
  }

  static void AddValues(const AttentionTile& tile, int64_t query, int64_t query_end, const uint8_t* values, const int64_t* /*offset*/,
                        const int64_t* next_offset, int64_t begin, int64_t end) {
    const int64_t quad = begin / 4, quad_end = (end + 3) / 4;
    for (int64_t count; query < query_end; query += count) {
      count = QueriesTogether(query_end - query, kQueriesTogether);
      for (int64_t dim = 0; dim < tile.head_dim; dim += 64) {
        switch (count) {
          case 3: AddValuesOf<3>(tile, query, dim, quad, quad_end, values, next_offset); break;
          case 2: AddValuesOf<2>(tile, query, dim, quad, quad_end, values, next_offset); break;
          default: AddValuesOf<1>(tile, query, dim, quad, quad_end, values, next_offset); break;
        }
      }
      next_offset = nullptr;  // once is enough
    }
  }

  static void Write(const AttentionTile& tile, float* state, uint16_t* out) {
    const __m512 total = _mm512_set1_ps(TotalOf(state, tile.state_stride));
    for (int64_t dim = 0; dim < tile.head_dim; dim += 64) {
      __m512 s[4];
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) s[v] = _mm512_div_ps(_mm512_load_ps(state + dim + 16 * v), total);
      const __m512 even01 = _mm512_shuffle_f32x4(s[0], s[1], 0x88), odd01 = _mm512_shuffle_f32x4(s[0], s[1], 0xDD);
      const __m512 even23 = _mm512_shuffle_f32x4(s[2], s[3], 0x88), odd23 = _mm512_shuffle_f32x4(s[2], s[3], 0xDD);
      const __m512 ordered[4] = {_mm512_shuffle_f32x4(even01, even23, 0x88), _mm512_shuffle_f32x4(odd01, odd23, 0x88),
                                 _mm512_shuffle_f32x4(even01, even23, 0xDD), _mm512_shuffle_f32x4(odd01, odd23, 0xDD)};
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        _mm256_mask_storeu_epi16(out + dim + 16 * v, FirstLanes(tile.head_dim - dim - 16 * v), Bf16FromF32(ordered[v]));
      }
    }
  }
};

}  // namespace
}  // namespace pith
