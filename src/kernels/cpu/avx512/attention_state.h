// The running state of attention and its softmax in AVX-512, shared by the kernels that multiply in f32 and in integers.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/avx512/vector_math.h"

namespace pith {
namespace {

constexpr int64_t kTokenVectors = kAttentionChunk / 16;

// Lanes of the chunk's tokens in [begin, end).
struct TokenMasks {
  __mmask16 of[kTokenVectors];
};
inline TokenMasks MasksOf(int64_t begin, int64_t end) {
  TokenMasks masks;
  for (int v = 0; v < kTokenVectors; ++v) {
    masks.of[v] = static_cast<__mmask16>(FirstLanes(end - 16 * v) & ~FirstLanes(begin - 16 * v));
  }
  return masks;
}

// Scores are exponents of 2: queries are multiplied by this too.
constexpr float kLog2E = 0x1.715476p+0f;

// The largest lane of each of four vectors.
inline __m128 MaxOfEach(const __m512 x[4]) {
  const __m512 pair0 = _mm512_max_ps(_mm512_unpacklo_ps(x[0], x[1]), _mm512_unpackhi_ps(x[0], x[1]));
  const __m512 pair1 = _mm512_max_ps(_mm512_unpacklo_ps(x[2], x[3]), _mm512_unpackhi_ps(x[2], x[3]));
  const __m512d low = _mm512_unpacklo_pd(_mm512_castps_pd(pair0), _mm512_castps_pd(pair1));
  const __m512d high = _mm512_unpackhi_pd(_mm512_castps_pd(pair0), _mm512_castps_pd(pair1));
  const __m512 all = _mm512_max_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high));
  const __m256 half = _mm256_max_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
  return _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

template <bool kScaled> inline __m512 LoadScore(const AttentionTile& tile, int64_t query, int v) {
  const __m512 score = _mm512_load_ps(tile.score + query * kAttentionChunk + 16 * v);
  return kScaled ? _mm512_mul_ps(score, _mm512_load_ps(tile.key_scale + 16 * v)) : score;
}

// tile.correction[query] <- the largest score of the chunk, for the moment; four queries at a time.
template <bool kScaled> inline void FindMaxima(const AttentionTile& tile, int64_t query, int64_t query_end, const TokenMasks& masks) {
  const __m512 least = _mm512_set1_ps(-__builtin_inff());
  for (; query < query_end; query += 4) {
    __m512 largest[4];
#pragma GCC unroll 4
    for (int n = 0; n < 4; ++n) {
      const int64_t q = Smaller(query + n, query_end - 1);
      __m512 s[kTokenVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kTokenVectors; ++v) s[v] = _mm512_mask_mov_ps(least, masks.of[v], LoadScore<kScaled>(tile, q, v));
      largest[n] = _mm512_max_ps(_mm512_max_ps(s[0], s[1]), _mm512_max_ps(s[2], s[3]));
    }
    _mm_mask_storeu_ps(tile.correction + query, static_cast<__mmask8>(FirstLanes(query_end - query)), MaxOfEach(largest));
  }
}

// Scores of queries become weights 2^(score - max), 0 outside of the masks; the running maxima, corrections and totals follow. The weights
// of one query after the other, kTokenVectors vectors, go to consume(query, masks, weights), which may store them over the scores.
template <bool kScaled, typename Consume>
inline void SoftmaxOf(const AttentionTile& tile, int64_t query, int64_t query_end, const TokenMasks& masks, Consume consume) {
  FindMaxima<kScaled>(tile, query, query_end, masks);
  for (int64_t q = query; q < query_end; q += 16) {
    const __mmask16 lanes = FirstLanes(query_end - q);
    const __m512 old_max = _mm512_maskz_loadu_ps(lanes, tile.max + q);
    const __m512 new_max = _mm512_max_ps(_mm512_maskz_loadu_ps(lanes, tile.correction + q), old_max);
    _mm512_mask_storeu_ps(tile.correction + q, lanes, Exp2(_mm512_sub_ps(old_max, new_max)));
    _mm512_mask_storeu_ps(tile.max + q, lanes, new_max);
  }
  for (; query < query_end; ++query) {
    const __m512 max = _mm512_set1_ps(tile.max[query]);
    __m512 s[kTokenVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kTokenVectors; ++v) {
      s[v] = _mm512_maskz_mov_ps(masks.of[v], Exp2(_mm512_sub_ps(LoadScore<kScaled>(tile, query, v), max)));
    }
    const __m512 added = _mm512_add_ps(_mm512_add_ps(s[0], s[1]), _mm512_add_ps(s[2], s[3]));
    float* total = tile.total + query * kTotalLanes;
    _mm512_store_ps(total, _mm512_fmadd_ps(_mm512_load_ps(total), _mm512_set1_ps(tile.correction[query]), added));
    consume(query, masks, s);
  }
}

struct Avx512State : RangesApart {
  static void Open(const AttentionTile& tile, int64_t query, int64_t query_end) {
    for (; query < query_end; ++query) {
      float* sum = tile.state + query * tile.state_stride;
      for (int64_t i = 0; i < tile.state_stride; i += 16) _mm512_store_ps(sum + i, _mm512_setzero_ps());
      _mm512_store_ps(tile.total + query * kTotalLanes, _mm512_setzero_ps());
      tile.max[query] = -__builtin_inff();
    }
  }

  static void Close(const AttentionTile& tile, int64_t query, int64_t query_end) {
    for (; query < query_end; ++query) {
      float* state = tile.state + query * tile.state_stride;
      MaxOf(state, tile.state_stride) = tile.max[query];
      TotalOf(state, tile.state_stride) = ReduceAdd(_mm512_load_ps(tile.total + query * kTotalLanes));
    }
  }

  static void Merge(const AttentionTile& tile, float* into, const float* state, bool first) {
    if (first) {
      for (int64_t i = 0; i < tile.state_stride; i += 16) _mm512_store_ps(into + i, _mm512_load_ps(state + i));
      return;
    }
    const float old_max = into[tile.state_stride - 16], other_max = state[tile.state_stride - 16];
    const float max = other_max > old_max ? other_max : old_max;
    const __m512 kept = Exp2(_mm512_set1_ps(old_max - max)), added = Exp2(_mm512_set1_ps(other_max - max));
    for (int64_t i = 0; i < tile.state_stride; i += 16) {
      _mm512_store_ps(into + i, _mm512_fmadd_ps(_mm512_load_ps(state + i), added, _mm512_mul_ps(_mm512_load_ps(into + i), kept)));
    }
    MaxOf(into, tile.state_stride) = max;
  }
};

}  // namespace
}  // namespace pith
