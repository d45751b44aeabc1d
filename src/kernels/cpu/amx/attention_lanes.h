// Attention by AMX: queries x keys and weights x values as tiles of tdpbf16ps, 16 queries at a time. Include in one kernel per format.
//
// Keys and values are exact in bf16 (Format: avx512/attention_formats.h). Queries, times the softmax scale, and weights, times the values'
// scales, are each the sum of two bf16 numbers that are multiplied one after the other, lower part first:
//   x = high + low + e,  |e| <= 2^-18 |x|
// Softmax and the running sums stay in f32 vectors. Subnormal operands and results of tdpbf16ps count as zero.
//
// Why rows are invariant: a row of a tile does not depend on the others, and a token with weight 0 adds a zero of either sign, which leaves
// no trace while its value is finite: the sums of a chunk begin with +0, and a sum that the tile unit flushed to -0 becomes +0 in the end.
// Chunks where a value is not finite are packed anew for every range of tokens, the others zeroed. (The lower part of a weight is 0 at
// times, so an infinite value may give NaN.)
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/amx/attention_queries.h"
#include "kernels/cpu/amx/tile_config.h"
#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/avx512/attention_formats.h"
#include "kernels/cpu/avx512/attention_state.h"
#include "kernels/cpu/avx512/transpose.h"
#include "kernels/cpu/avx512/vector_math.h"

namespace pith {
namespace {

constexpr int64_t kTileDepth = 32;     // what one instruction sums over: dimensions of keys, tokens of values
constexpr int64_t kTilesTogether = 4;  // of sums: tokens of scores, dimensions of values

// 32 numbers as two bf16 parts.
inline void Split(__m512 first, __m512 second, void* high, void* low) {
  const auto parts = [](__m512 a, __m512 b) { return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b, a)); };
  const __m512i upper = parts(first, second);
  _mm512_store_si512(high, upper);
  _mm512_store_si512(low, parts(_mm512_sub_ps(first, F32FromBf16(_mm512_castsi512_si256(upper))),
                                _mm512_sub_ps(second, F32FromBf16(_mm512_extracti64x4_epi64(upper, 1)))));
}

// Tile kSum of sums += the left operand (tile 4) times the right one. The intrinsics take literals.
template <int kSum> PITH_ALWAYS_INLINE void MultiplyTile(const void* right, int64_t stride) {
  if constexpr (kSum % 2 == 0) {
    _tile_loadd(6, right, stride);
  } else {
    _tile_loadd(7, right, stride);
  }
  if constexpr (kSum == 0) {
    _tile_dpbf16ps(0, 4, 6);
  } else if constexpr (kSum == 1) {
    _tile_dpbf16ps(1, 4, 7);
  } else if constexpr (kSum == 2) {
    _tile_dpbf16ps(2, 4, 6);
  } else {
    _tile_dpbf16ps(3, 4, 7);
  }
}

template <typename Format> struct AmxLanes : Avx512State {
  static constexpr int kElementBytes = KvElementBytes(Format::kDtype);
  static constexpr bool kScaled = KvScaleBytes(Format::kDtype) != 0;

  // tile.query: [queries][high, low][padded head_dim] bf16.
  static void Begin(const AttentionParams& p, const AttentionTile& tile) {
    Configure(4 * kTileRows, TileOf(tile, 0).rows);
    const __m512 scale = _mm512_set1_ps(p.scale * kLog2E);
    for (int64_t q = 0; q < tile.num_rows * tile.group; ++q) {
      const float* in = QueryOf(p, tile, q);
      auto* out = reinterpret_cast<uint16_t*>(tile.query + q * tile.query_stride());
      for (int64_t i = 0; i < tile.head_dim; i += 32) {
        Split(_mm512_mul_ps(_mm512_loadu_ps(in + i), scale), _mm512_mul_ps(_mm512_loadu_ps(in + i + 16), scale), out + i,
              out + tile.query_stride() + i);
      }
    }
  }

  // key[i][t] <- bf16 pair (2 i, 2 i + 1) of token t.
  static void LoadChunk(const AttentionTile& tile, const uint8_t* keys, const uint8_t*, const int64_t* offset) {
    for (int64_t t = 0; t < kAttentionChunk; t += 16) {
      for (int64_t i = 0; i < tile.head_dim; i += 32) {
        __m512i row[16];
#pragma GCC unroll 16
        for (int j = 0; j < 16; ++j) row[j] = Format::Load(keys + offset[t + j] + i * kElementBytes, 32);
        TransposeDwords(row, tile.key + i / 2 * kAttentionChunk + t, kAttentionChunk, 16);
      }
    }
  }

  // value[tile of 16 dims][token / 2][dim] <- the values of two tokens, those outside of [begin, end) zero. Of 32 dims the first tile has
  // 0-3, 8-11, 16-19 and 24-27, the second one the others. True if all are finite.
  static bool PackValues(const AttentionTile& tile, const uint8_t* values, const int64_t* offset, int64_t begin, int64_t end) {
    const __m512i exponent = _mm512_set1_epi16(0x7F80);
    __mmask32 special = 0;
    for (int64_t t = 0; t < kAttentionChunk; t += 2) {
      for (int64_t i = 0; i < tile.head_dim; i += 32) {
        __m512i x[2] = {};
#pragma GCC unroll 2
        for (int j = 0; j < 2; ++j) {
          if (t + j >= begin && t + j < end) x[j] = Format::Load(values + offset[t + j] + i * kElementBytes, 32);
          if (!kScaled) special |= _mm512_cmpeq_epi16_mask(_mm512_and_si512(x[j], exponent), exponent);
        }
        uint8_t* out = tile.value + (i / 16 * kAttentionChunk + t) * 32;
        _mm512_store_si512(out, _mm512_unpacklo_epi16(x[0], x[1]));
        _mm512_store_si512(out + kAttentionChunk * 32, _mm512_unpackhi_epi16(x[0], x[1]));
      }
    }
    return special == 0;
  }

  static void Scores(const AttentionTile& tile, int64_t query, int64_t query_end, const uint8_t* keys, const int64_t* next_offset) {
    constexpr int64_t kStride = 4 * kAttentionChunk;
    const int64_t part_bytes = 2 * tile.query_stride();
    NextChunk next(tile, keys, next_offset, kElementBytes, 2 * tile.head_dim / kTileDepth * kTilesTogether);
    while (query < query_end) {
      const QueryTile queries = TileOf(tile, query);
      const auto* high = reinterpret_cast<const uint8_t*>(tile.query + queries.first * tile.query_stride());
      ZeroSums<2, 2>();
      for (int64_t part = 1; part >= 0; --part) {
        for (int64_t i = 0; i < tile.head_dim; i += kTileDepth) {
          const uint32_t* key = tile.key + i / 2 * kAttentionChunk;
          _tile_loadd(4, high + part * part_bytes + 2 * i, 2 * part_bytes);
          MultiplyTile<0>(key, kStride);
          next.Fetch();
          MultiplyTile<1>(key + 16, kStride);
          next.Fetch();
          MultiplyTile<2>(key + 32, kStride);
          next.Fetch();
          MultiplyTile<3>(key + 48, kStride);
          next.Fetch();
        }
      }
      float* score = tile.score + queries.first * kAttentionChunk;
      _tile_stored(0, score, kStride);
      _tile_stored(1, score + 16, kStride);
      _tile_stored(2, score + 32, kStride);
      _tile_stored(3, score + 48, kStride);
      query = queries.end();
    }
  }

  // Weights take the place of the scores: [high, low][kAttentionChunk] bf16.
  static void Softmax(const AttentionTile& tile, int64_t query, int64_t query_end, int64_t begin, int64_t end) {
    SoftmaxOf<kScaled>(tile, query, query_end, MasksOf(begin, end), [&](int64_t q, const TokenMasks& masks, __m512* s) {
#pragma GCC unroll 4
      for (int v = 0; v < kTokenVectors; ++v) {
        if (kScaled) s[v] = _mm512_maskz_mul_ps(masks.of[v], s[v], _mm512_load_ps(tile.value_scale + 16 * v));
      }
      auto* out = reinterpret_cast<uint16_t*>(tile.score + q * kAttentionChunk);
      Split(s[0], s[1], out, out + kAttentionChunk);
      Split(s[2], s[3], out + 32, out + kAttentionChunk + 32);
    });
  }

  // sum <- sum * correction + sum over tokens of weight * value.
  static void AddValues(const AttentionTile& tile, int64_t query, int64_t query_end, const uint8_t* values, const int64_t*,
                        const int64_t* next_offset, int64_t begin, int64_t end) {
    const int64_t first = begin / kTileDepth * kTileDepth;
    const int64_t depths = (end - first + kTileDepth - 1) / kTileDepth;
    NextChunk next(tile, values, next_offset, kElementBytes, 2 * tile.head_dim / 16 * depths);
    alignas(64) float added[kUnitSums];
    while (query < query_end) {
      const QueryTile queries = TileOf(tile, query);
      for (int64_t dim = 0; dim < tile.head_dim; dim += 64) {
        dim + 32 < tile.head_dim ? MultiplyValues<4>(tile, queries.first, dim, first, end, added, next)
                                 : MultiplyValues<2>(tile, queries.first, dim, first, end, added, next);
        for (int64_t q = query; q < Smaller(queries.end(), query_end); ++q) {
          const __m512 correction = _mm512_set1_ps(tile.correction[q]);
          float* sum = tile.state + q * tile.state_stride + dim;
          for (int64_t v = 0; v < Smaller(4, (tile.head_dim - dim) / 16); ++v) {
            const __m512 sums = _mm512_load_ps(added + v * kTileSums + (q - queries.first) * 16);
            const __m512 chunk = _mm512_add_ps(sums, _mm512_setzero_ps());
            _mm512_store_ps(sum + 16 * v, _mm512_fmadd_ps(_mm512_load_ps(sum + 16 * v), correction, chunk));
          }
        }
      }
      query = queries.end();
    }
  }

  static void Write(const AttentionTile& tile, float* state, uint16_t* out) {
    const __m512 total = _mm512_set1_ps(TotalOf(state, tile.state_stride));
    const __m512i lower = _mm512_set_epi32(23, 22, 21, 20, 7, 6, 5, 4, 19, 18, 17, 16, 3, 2, 1, 0);
    for (int64_t dim = 0; dim < tile.head_dim; dim += 32) {
      const __m512 even = _mm512_div_ps(_mm512_load_ps(state + dim), total), odd = _mm512_div_ps(_mm512_load_ps(state + dim + 16), total);
      const __m512i upper = _mm512_add_epi32(lower, _mm512_set1_epi32(8));
      const __m256i first = Bf16FromF32(_mm512_permutex2var_ps(even, lower, odd));
      const __m256i second = Bf16FromF32(_mm512_permutex2var_ps(even, upper, odd));
      _mm512_storeu_si512(out + dim, _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1));
    }
  }

 private:
  // added [tile of 16 dims][16 queries][16] <- the tokens [first, end) of 16 kTiles dims from `dim`.
  template <int kTiles>
  static void MultiplyValues(const AttentionTile& tile, int64_t query, int64_t dim, int64_t first, int64_t end, float* added,
                             NextChunk& next) {
    constexpr int64_t kStride = 4 * kAttentionChunk, kPart = 2 * kAttentionChunk, kTileStep = kAttentionChunk * 32;  // bytes
    const auto* high = reinterpret_cast<const uint8_t*>(tile.score + query * kAttentionChunk);
    ZeroSums<kTiles / 2, 2>();
    for (int64_t part = 1; part >= 0; --part) {
      for (int64_t t = first; t < end; t += kTileDepth) {
        const uint8_t* value = tile.value + (dim / 16 * kAttentionChunk + t) * 32;
        _tile_loadd(4, high + part * kPart + 2 * t, kStride);
        MultiplyTile<0>(value, 64);
        next.Fetch();
        MultiplyTile<1>(value + kTileStep, 64);
        next.Fetch();
        if constexpr (kTiles == 4) {
          MultiplyTile<2>(value + 2 * kTileStep, 64);
          next.Fetch();
          MultiplyTile<3>(value + 3 * kTileStep, 64);
          next.Fetch();
        }
      }
    }
    StoreSums<kTiles / 2, 2>(added);
  }
};

// OperatorEntry::attention.
template <typename Format> void Attend(const AttentionParams& p) {
  AttendTiles<AmxLanes<Format>>(p);
  _tile_release();
}

}  // namespace
}  // namespace pith
