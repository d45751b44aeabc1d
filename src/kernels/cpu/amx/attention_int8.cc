// Attention over an int8 cache in integers, by tiles: the planes, layouts and bits of avx512_vnni/attention_int8_lanes.h. Integer sums are
// exact in any order, so a tile of rows with few queries, which tiles would not help, takes the vector loops.
#include "kernels/cpu/amx/attention_queries.h"
#include "kernels/cpu/avx512_vnni/attention_int8_lanes.h"

namespace pith {
namespace {

constexpr int64_t kFewestTiledQueries = 12;
constexpr int64_t kStrideBytes = 4 * kAttentionChunk;  // between rows of keys, of quads of values and of scores

struct AmxInt8Lanes : VnniLanes {
  static bool Tiled(const AttentionTile& tile) { return tile.num_rows * tile.group >= kFewestTiledQueries; }

  static void Begin(const AttentionParams& p, const AttentionTile& tile) {
    VnniLanes::Begin(p, tile);
    if (Tiled(tile)) Configure(4 * kTileRows, TileOf(tile, 0).rows);
  }

  // Codes are finite, so weights of 0 leave no trace.
  static bool PackValues(const AttentionTile& tile, const uint8_t*, const int64_t*, int64_t, int64_t) { return Tiled(tile); }

  static void Scores(const AttentionTile& tile, int64_t query, int64_t query_end, const uint8_t* keys, const int64_t* next_offset) {
    if (!Tiled(tile)) return VnniLanes::Scores(tile, query, query_end, keys, next_offset);
    NextChunk next(tile, keys, next_offset, kElementBytes, (tile.head_dim + 63) / 64 * 4);
    alignas(64) int32_t sums[kUnitSums];
    for (QueryTile queries; query < query_end; query = queries.end()) {
      queries = TileOf(tile, query);
      for (int v = 0; v < kTokenVectors; v += 2) {
        MultiplyKeys(tile, queries.first, tile.key + 16 * v, sums, next);
        for (int64_t q = query; q < Smaller(queries.end(), query_end); ++q) StoreScores(tile, q, v, sums + (q - queries.first) * 16);
      }
    }
  }

  static void AddValues(const AttentionTile& tile, int64_t query, int64_t query_end, const uint8_t* values, const int64_t* offset,
                        const int64_t* next_offset, int64_t begin, int64_t end) {
    if (!Tiled(tile)) return VnniLanes::AddValues(tile, query, query_end, values, offset, next_offset, begin, end);
    NextChunk next(tile, values, next_offset, kElementBytes, (tile.head_dim + 63) / 64 * 4);
    alignas(64) int32_t sums[kUnitSums];
    for (QueryTile queries; query < query_end; query = queries.end()) {
      queries = TileOf(tile, query);
      for (int64_t dim = 0; dim < tile.query_stride(); dim += 32) {  // by pairs of the four vectors that hold 64 dims
        const uint8_t* panel = tile.value + dim / 64 * kQuads * 256 + dim % 64 * 4;
        MultiplyValues(tile, queries.first, panel, sums, next);
        for (int64_t q = query; q < Smaller(queries.end(), query_end); ++q) AddToState(tile, q, dim, sums + (q - queries.first) * 16);
      }
    }
  }

 private:
  // sums [plane][pair][16 queries][16] <- the queries' planes times the keys of 32 tokens.
  static void MultiplyKeys(const AttentionTile& tile, int64_t query, const uint32_t* key, int32_t* sums, NextChunk& next) {
    const int64_t stride = 4 * tile.query_stride();
    const QueryPlanes planes = PlanesOf(tile, query);
    ZeroSums<2, 2>();
    for (int64_t i = 0; i < tile.head_dim; i += 64, key += 16 * kAttentionChunk) {
      _tile_loadd(6, key, kStrideBytes);
      _tile_loadd(4, planes.plane[0] + i, stride);
      _tile_dpbsud(0, 4, 6);
      next.Fetch();
      _tile_loadd(7, key + 16, kStrideBytes);
      _tile_dpbsud(1, 4, 7);
      _tile_loadd(5, planes.plane[1] + i, stride);
      _tile_dpbsud(2, 5, 6);
      next.Fetch();
      _tile_dpbsud(3, 5, 7);
    }
    StoreSums<2, 2>(sums);
  }

  static void StoreScores(const AttentionTile& tile, int64_t query, int v, const int32_t* sums) {
    const QueryPlanes planes = PlanesOf(tile, query);
    const __m512i high_start = _mm512_set1_epi32(planes.start[0]), low_start = _mm512_set1_epi32(planes.start[1]);
    const __m512 scale = _mm512_set1_ps(tile.query_scale[query]);
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const __m512i high = _mm512_add_epi32(_mm512_load_si512(sums + i * kTileSums), high_start);
      const __m512i low = _mm512_add_epi32(_mm512_load_si512(sums + (2 + i) * kTileSums), low_start);
      _mm512_store_ps(tile.score + query * kAttentionChunk + 16 * (v + i), ScoreOf(high, low, scale));
    }
  }

  // sums [plane][pair][16 queries][16] <- the weights' planes times the values of the chunk.
  static void MultiplyValues(const AttentionTile& tile, int64_t query, const uint8_t* panel, int32_t* sums, NextChunk& next) {
    const auto* weights = reinterpret_cast<const uint8_t*>(tile.score + query * kAttentionChunk);
    ZeroSums<2, 2>();
    _tile_loadd(6, panel, kStrideBytes);
    _tile_loadd(4, weights, kStrideBytes);
    _tile_dpbusd(0, 4, 6);
    next.Fetch();
    _tile_loadd(7, panel + 64, kStrideBytes);
    _tile_dpbusd(1, 4, 7);
    _tile_loadd(5, weights + kAttentionChunk, kStrideBytes);
    _tile_dpbusd(2, 5, 6);
    next.Fetch();
    _tile_dpbusd(3, 5, 7);
    StoreSums<2, 2>(sums);
  }

  static void AddToState(const AttentionTile& tile, int64_t query, int64_t dim, const int32_t* sums) {
    float* state = tile.state + query * tile.state_stride + dim;
    for (int i = 0; i < 2; ++i) {
      AddToSum(tile, query, _mm512_load_si512(sums + i * kTileSums), _mm512_load_si512(sums + (2 + i) * kTileSums), state + 16 * i);
    }
  }
};

}  // namespace

void attention_f32_int8_bf16__amx(const AttentionParams& p) {
  AttendTiles<AmxInt8Lanes>(p);
  _tile_release();
}
void attention_combine_f32_int8_bf16__amx(const AttentionParams& p) { CombineTile<AmxInt8Lanes>(p); }

}  // namespace pith
