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

// Scores of a query become weights exp(score - max) in s, 0 outside of the masks; the running maximum and total follow.
template <bool kScaled> inline void SoftmaxOf(const AttentionTile& tile, int64_t query, const TokenMasks& masks, __m512* s) {
  const float* score = tile.score + query * kAttentionChunk;
#pragma GCC unroll 4
  for (int v = 0; v < kTokenVectors; ++v) {
    __m512 x = _mm512_load_ps(score + 16 * v);
    if (kScaled) x = _mm512_mul_ps(x, _mm512_load_ps(tile.key_scale + 16 * v));
    s[v] = _mm512_mask_mov_ps(_mm512_set1_ps(-__builtin_inff()), masks.of[v], x);
  }
  const float chunk_max = ReduceMax(_mm512_max_ps(_mm512_max_ps(s[0], s[1]), _mm512_max_ps(s[2], s[3])));
  const float old_max = tile.max[query];
  const float new_max = chunk_max > old_max ? chunk_max : old_max;
  const __m512 max = _mm512_set1_ps(new_max);
#pragma GCC unroll 4
  for (int v = 0; v < kTokenVectors; ++v) s[v] = Exp(_mm512_sub_ps(s[v], max));
  const __m512 correction = Exp(_mm512_sub_ps(_mm512_set1_ps(old_max), max));
  const __m512 added = _mm512_add_ps(_mm512_add_ps(s[0], s[1]), _mm512_add_ps(s[2], s[3]));
  float* total = tile.total + query * kTotalLanes;
  _mm512_store_ps(total, _mm512_fmadd_ps(_mm512_load_ps(total), correction, added));
  tile.correction[query] = _mm512_cvtss_f32(correction);
  tile.max[query] = new_max;
}

struct Avx512State {
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
    const __m512 kept = Exp(_mm512_set1_ps(old_max - max)), added = Exp(_mm512_set1_ps(other_max - max));
    for (int64_t i = 0; i < tile.state_stride; i += 16) {
      _mm512_store_ps(into + i, _mm512_fmadd_ps(_mm512_load_ps(state + i), added, _mm512_mul_ps(_mm512_load_ps(into + i), kept)));
    }
    MaxOf(into, tile.state_stride) = max;
  }
};

}  // namespace
}  // namespace pith
