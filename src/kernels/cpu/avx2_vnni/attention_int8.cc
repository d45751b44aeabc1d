// Attention over an int8 cache in integers: vpdpbusd for queries x keys and for weights x values. The arithmetic is that of
// avx512_vnni/attention_int8_lanes.h: queries and weights in two planes of 8 bits, exact integer sums; softmax and state are those of AVX2.
#include "kernels/attention.h"
#include "kernels/cpu/attention_int8_planes.h"
#include "kernels/cpu/avx2/attention_lanes.h"
#include "kernels/cpu/avx2_vnni/dot_product.h"

namespace pith {
namespace {

constexpr int kIntegerQueries = 3;               // 3 queries x 2 planes x 2 accumulators, 2 operands, a broadcast: 15 of 16 registers
constexpr int64_t kPanelDims = 32;               // values are interleaved by so many dims, in two halves of
constexpr int64_t kHalfBytes = kQuads * 2 * 32;  // two vectors per quad of tokens

inline __m256i BroadcastFour(const void* in) {
  int32_t four;
  __builtin_memcpy(&four, in, 4);
  return _mm256_set1_epi32(four);
}

// The first `count` (1 or more) of 32 bytes, a multiple of 4; zeros behind them.
inline __m256i LoadBytes(const uint8_t* in, int64_t count) {
  return count >= 32 ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in))
                     : _mm256_maskload_epi32(reinterpret_cast<const int*>(in), FirstLanes(count / 4));
}

// Scores of N queries with V * 8 tokens from token t, lanes over tokens. Meanwhile every cache line of these tokens' successors is fetched.
template <int N, int V>
void ScoreInIntegers(const AttentionTile& tile, int64_t first_query, int64_t t, const uint8_t* keys, const int64_t* next_offset) {
  __m256i acc[N][2][V];
  const int8_t* plane[N][2];
#pragma GCC unroll 3
  for (int n = 0; n < N; ++n) {
    const QueryPlanes query = PlanesOf(tile, first_query + n);
#pragma GCC unroll 2
    for (int part = 0; part < 2; ++part) {
      plane[n][part] = query.plane[part];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[n][part][v] = _mm256_set1_epi32(query.start[part]);
    }
  }
  const uint32_t* key = tile.key + t;
  for (int64_t i = 0; i < tile.head_dim; i += 4, key += kAttentionChunk) {
    if (next_offset != nullptr) {  // 16 rounds fetch one cache line of each token
      const int64_t* token = next_offset + t + i / 4 % 16 * (V / 2);
#pragma GCC unroll 2
      for (int j = 0; j < V / 2; ++j) _mm_prefetch(reinterpret_cast<const char*>(keys + token[j] + i / 64 * 64), _MM_HINT_T0);
    }
    __m256i k[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) k[v] = _mm256_load_si256(reinterpret_cast<const __m256i*>(key + 8 * v));
#pragma GCC unroll 3
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 2
      for (int part = 0; part < 2; ++part) {
        const __m256i q = BroadcastFour(plane[n][part] + i);
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) AddProducts(acc[n][part][v], k[v], q);
      }
    }
  }
#pragma GCC unroll 3
  for (int n = 0; n < N; ++n) {
    const __m256 scale = _mm256_set1_ps(tile.query_scale[first_query + n]);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {  // exact sums below 2^24 for head_dim up to 1024
      const __m256 dot = _mm256_fmadd_ps(_mm256_cvtepi32_ps(acc[n][0][v]), _mm256_set1_ps(256.0f), _mm256_cvtepi32_ps(acc[n][1][v]));
      _mm256_store_ps(tile.score + (first_query + n) * kAttentionChunk + t + 8 * v, _mm256_mul_ps(dot, scale));
    }
  }
}

// sum <- sum * correction + weight_scale * sum over the quads of weight * value, for N queries and half a panel of dims: 16 of the state
// from `place` on, lanes over dims in the order of InterleaveValues. Weights outside of a row's tokens are 0. Meanwhile lines at `fetch`
// plus the next chunk's offsets are fetched (null: nothing).
template <int N>
void AddValuesInIntegers(const AttentionTile& tile, int64_t query, int64_t place, int64_t quad, int64_t quad_end, const uint8_t* fetch,
                         const int64_t* next_offset) {
  __m256i acc[N][2][2] = {};
  const auto* weights = reinterpret_cast<const uint8_t*>(tile.score + query * kAttentionChunk);
  const uint8_t* half = tile.value + place / 16 * kHalfBytes;
  for (; quad < quad_end; ++quad) {
    if (next_offset != nullptr) {
#pragma GCC unroll 4
      for (int64_t j = 0; j < 4; ++j) _mm_prefetch(reinterpret_cast<const char*>(fetch + next_offset[4 * quad + j]), _MM_HINT_T0);
    }
    const auto* values = reinterpret_cast<const __m256i*>(half + quad * 64);
    const __m256i x[2] = {_mm256_load_si256(values), _mm256_load_si256(values + 1)};
#pragma GCC unroll 3
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 2
      for (int part = 0; part < 2; ++part) {
        const __m256i w = BroadcastFour(weights + n * 4 * kAttentionChunk + part * kAttentionChunk + 4 * quad);
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) AddProducts(acc[n][part][v], w, x[v]);
      }
    }
  }
#pragma GCC unroll 3
  for (int n = 0; n < N; ++n) {
    const __m256 correction = _mm256_set1_ps(tile.correction[query + n]), scale = _mm256_set1_ps(tile.weight_scale[query + n]);
    float* sum = tile.state + (query + n) * tile.state_stride + place;
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {  // 64 * 255 * 127 * 257 < 2^30
      const __m256 added = _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_slli_epi32(acc[n][0][v], 8), acc[n][1][v]));
      _mm256_store_ps(sum + 8 * v, _mm256_fmadd_ps(added, scale, _mm256_mul_ps(_mm256_load_ps(sum + 8 * v), correction)));
    }
  }
}

// 32 numbers of at most 255 as bytes, in order.
inline void StoreCodes(uint8_t* out, __m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i bytes = _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));  // per 128 bits: 4 of a, b, c, d
  _mm256_store_si256(reinterpret_cast<__m256i*>(out), _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
}

// Weights of a query times value scales, those of tokens in [begin, end), to its planes, over its scores: high plane, then low plane, a
// byte per token.
inline void QuantizeWeights(const AttentionTile& tile, int64_t query, int64_t begin, int64_t end) {
  float* score = tile.score + query * kAttentionChunk;
  __m256 w[8];
  __m256 nan = _mm256_setzero_ps(), max = _mm256_setzero_ps();
#pragma GCC unroll 8
  for (int v = 0; v < 8; ++v) {
    const __m256i mask = _mm256_andnot_si256(FirstLanes(Larger(begin - 8 * v, 0)), FirstLanes(Larger(end - 8 * v, 0)));
    w[v] = _mm256_and_ps(_mm256_castsi256_ps(mask), _mm256_load_ps(score + 8 * v));
    nan = _mm256_or_ps(nan, _mm256_cmp_ps(w[v], w[v], _CMP_UNORD_Q));
    max = _mm256_max_ps(max, w[v]);
  }
  const float largest = ReduceMax(max);
  const FixedPoint fixed = FixedPointOfWeights(largest, _mm256_movemask_ps(nan) != 0);
  tile.weight_scale[query] = fixed.scale;
  const __m256 steps = _mm256_set1_ps(fixed.steps);
  auto* plane = reinterpret_cast<uint8_t*>(score);
  __m256i code[8];
#pragma GCC unroll 8
  for (int v = 0; v < 8; ++v) code[v] = _mm256_cvtps_epi32(_mm256_mul_ps(w[v], steps));
#pragma GCC unroll 2
  for (int v = 0; v < 8; v += 4) {
    const __m256i low = _mm256_set1_epi32(255);
    StoreCodes(plane + 8 * v, _mm256_srli_epi32(code[v], 8), _mm256_srli_epi32(code[v + 1], 8), _mm256_srli_epi32(code[v + 2], 8),
               _mm256_srli_epi32(code[v + 3], 8));
    StoreCodes(plane + kAttentionChunk + 8 * v, _mm256_and_si256(code[v], low), _mm256_and_si256(code[v + 1], low),
               _mm256_and_si256(code[v + 2], low), _mm256_and_si256(code[v + 3], low));
  }
}

// The largest and the sum of 8 dwords.
inline uint32_t LargestOf(__m256i x) {
  alignas(32) uint32_t lanes[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), x);
  uint32_t largest = 0;
  for (const uint32_t lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}
inline int32_t SumOf(__m256i x) {
  alignas(32) int32_t lanes[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), x);
  int32_t sum = 0;
  for (const int32_t lane : lanes) sum += lane;
  return sum;
}

// One query times the softmax scale to its planes. A query that is not finite has scale NaN, so all its scores are.
inline void QuantizeQuery(const AttentionTile& tile, int64_t query, const float* in, float factor) {
  const QueryPlanes out = PlanesOf(tile, query);
  __m256i largest_bits = _mm256_setzero_si256();
  for (int64_t i = 0; i < tile.head_dim; i += 8) {
    const __m256i bits = _mm256_castps_si256(_mm256_loadu_ps(in + i));
    largest_bits = _mm256_max_epu32(largest_bits, _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFFFF)));
  }
  const uint32_t bits = LargestOf(largest_bits);
  const FixedPoint fixed = FixedPointOfQuery(bits, factor);
  tile.query_scale[query] = fixed.scale;
  const bool finite = bits < 0x7F800000;
  const __m256 steps = _mm256_set1_ps(fixed.steps);
  __m256i sum[2] = {};
  for (int64_t i = 0; i < tile.head_dim; i += 8) {
    const __m256 x = finite ? _mm256_loadu_ps(in + i) : _mm256_setzero_ps();
    const __m256i code = _mm256_cvtps_epi32(_mm256_mul_ps(x, steps));
    const __m256i high = _mm256_srai_epi32(_mm256_add_epi32(code, _mm256_set1_epi32(128)), 8);
    const __m256i low = _mm256_sub_epi32(code, _mm256_slli_epi32(high, 8));
    StoreBytes(out.plane[0] + i, 8, high);
    StoreBytes(out.plane[1] + i, 8, low);
    sum[0] = _mm256_add_epi32(sum[0], high);
    sum[1] = _mm256_add_epi32(sum[1], low);
  }
  for (int part = 0; part < 2; ++part) out.start[part] = -128 * SumOf(sum[part]);
}

// Four tokens' values side by side, as vpdpbusd adds them: vector v, 128-bit lane l, dword e holds dim 16 l + 4 v + e of tokens 0 .. 3.
// Vectors 0 and 1 go to the first half of a panel, 2 and 3 to the second.
inline void InterleaveValues(const __m256i token[4], uint8_t* out) {
  const __m256i low01 = _mm256_unpacklo_epi8(token[0], token[1]), high01 = _mm256_unpackhi_epi8(token[0], token[1]);
  const __m256i low23 = _mm256_unpacklo_epi8(token[2], token[3]), high23 = _mm256_unpackhi_epi8(token[2], token[3]);
  auto* first = reinterpret_cast<__m256i*>(out);
  auto* second = reinterpret_cast<__m256i*>(out + kHalfBytes);
  _mm256_store_si256(first, _mm256_unpacklo_epi16(low01, low23));
  _mm256_store_si256(first + 1, _mm256_unpackhi_epi16(low01, low23));
  _mm256_store_si256(second, _mm256_unpacklo_epi16(high01, high23));
  _mm256_store_si256(second + 1, _mm256_unpackhi_epi16(high01, high23));
}

struct Int8Cache {
  static constexpr KvDtype kDtype = KvDtype::kInt8;
};

struct VnniLanes : Avx2Lanes<Int8Cache> {
  static void Begin(const AttentionParams& p, const AttentionTile& tile) {
    for (int64_t q = 0; q < tile.num_rows * tile.group; ++q) QuantizeQuery(tile, q, QueryOf(p, tile, q), p.scale);
  }

  // key[i][t] <- dims 4 i .. 4 i + 3 of token t, plus 128; values by quads of tokens.
  static void LoadChunk(const AttentionTile& tile, const uint8_t* keys, const uint8_t* values, const int64_t* offset) {
    const __m256i sign = _mm256_set1_epi8(static_cast<char>(0x80));
    for (int64_t dim = 0; dim < tile.head_dim; dim += kPanelDims) {
      const int64_t left = tile.head_dim - dim;
      uint32_t* key = tile.key + dim / 4 * kAttentionChunk;
      uint8_t* value = tile.value + dim / kPanelDims * 2 * kHalfBytes;
      for (int64_t t = 0; t < kAttentionChunk; t += 8) {
        __m256i row[8];
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) row[i] = _mm256_xor_si256(LoadBytes(keys + offset[t + i] + dim, left), sign);
        TransposePairs(row, key + t, left / 4);
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) row[i] = LoadBytes(values + offset[t + i] + dim, left);
        InterleaveValues(row, value + t / 4 * 64);
        InterleaveValues(row + 4, value + (t / 4 + 1) * 64);
      }
    }
  }

  static void Scores(const AttentionTile& tile, int64_t query, int64_t query_end, const uint8_t* keys, const int64_t* next_offset) {
    for (int64_t count; query < query_end; query += count) {
      count = QueriesTogether(query_end - query, kIntegerQueries);
      for (int64_t t = 0; t < kAttentionChunk; t += count == 1 ? 32 : 16) {
        switch (count) {
          case 3: ScoreInIntegers<3, 2>(tile, query, t, keys, next_offset); break;
          case 2: ScoreInIntegers<2, 2>(tile, query, t, keys, next_offset); break;
          default: ScoreInIntegers<1, 4>(tile, query, t, keys, next_offset); break;
        }
      }
      next_offset = nullptr;  // once is enough
    }
  }

  static void Softmax(const AttentionTile& tile, int64_t query, int64_t query_end, int64_t begin, int64_t end) {
    Avx2Lanes::Softmax(tile, query, query_end, begin, end);
    for (; query < query_end; ++query) QuantizeWeights(tile, query, begin, end);
  }

  static void AddValues(const AttentionTile& tile, int64_t query, int64_t query_end, const uint8_t* values, const int64_t* /*offset*/,
                        const int64_t* next_offset, int64_t begin, int64_t end) {
    const int64_t quad = begin / 4, quad_end = (end + 3) / 4;
    const int64_t padded = (tile.head_dim + kPanelDims - 1) / kPanelDims * kPanelDims;
    for (int64_t count; query < query_end; query += count) {
      count = QueriesTogether(query_end - query, kIntegerQueries);
      for (int64_t place = 0; place < padded; place += 16) {
        const int64_t* fetched = place % 64 == 0 ? next_offset : nullptr;  // a cache line holds 64 dims
        switch (count) {
          case 3: AddValuesInIntegers<3>(tile, query, place, quad, quad_end, values + place, fetched); break;
          case 2: AddValuesInIntegers<2>(tile, query, place, quad, quad_end, values + place, fetched); break;
          default: AddValuesInIntegers<1>(tile, query, place, quad, quad_end, values + place, fetched); break;
        }
      }
      next_offset = nullptr;  // once is enough
    }
  }

  static void Write(const AttentionTile& tile, float* state, uint16_t* out) {
    const __m256 total = _mm256_set1_ps(TotalOf(state, tile.state_stride));
    for (int64_t dim = 0; dim < tile.head_dim; dim += kPanelDims) {
      __m256 s[4];
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) s[v] = _mm256_div_ps(_mm256_load_ps(state + dim + 8 * v), total);
      const __m256 ordered[4] = {_mm256_permute2f128_ps(s[0], s[1], 0x20), _mm256_permute2f128_ps(s[2], s[3], 0x20),
                                 _mm256_permute2f128_ps(s[0], s[1], 0x31), _mm256_permute2f128_ps(s[2], s[3], 0x31)};
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        if (dim + 8 * v < tile.head_dim) _mm_storeu_si128(reinterpret_cast<__m128i*>(out + dim + 8 * v), Bf16FromF32(ordered[v]));
      }
    }
  }
};

}  // namespace

void attention_f32_int8_bf16__avx2_vnni(const AttentionParams& p) { AttendTiles<VnniLanes>(p); }
void attention_combine_f32_int8_bf16__avx2_vnni(const AttentionParams& p) { CombineTile<VnniLanes>(p); }

}  // namespace pith
