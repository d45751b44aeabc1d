// The shapes of the eight tile registers that the AMX rows use, and rows of activations as tiles.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/cpu/gemm_prefetch.h"
#include "kernels/cpu/gemm_store.h"

namespace pith {
namespace {

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileSums = 16 * 16;              // of one tile
constexpr int64_t kUnitSums = 4 * kTileSums;        // of up to two activation tiles times two panels
constexpr int64_t kTiledRowBlock = 128;             // rows that share a chunk of weights
constexpr int64_t kPackedBytes = int64_t{1} << 20;  // of activations: half of the level-2 cache

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// GCC's intrinsics that load tiles do not tell it that they read memory: what was stored must be stored by now.
PITH_ALWAYS_INLINE void FinishStores() { asm volatile("" : : : "memory"); }

// Tiles 0..3: sums of two activation tiles (4, 5), of `rows` rows each, times two weight tiles (6, 7).
void Configure(int64_t tile_k, int64_t rows) {
  TileConfig config;
  for (int t = 0; t < 8; ++t) {
    const bool activation = t == 4 || t == 5, weight = t >= 6;
    config.rows[t] = static_cast<uint8_t>(weight ? tile_k / 4 : rows);
    config.row_bytes[t] = static_cast<uint16_t>(activation ? tile_k : 64);
  }
  asm volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
}

// What belongs ahead of one weight tile of `tile_rows` lines, of kPanels panels.
template <int kPanels>
PITH_ALWAYS_INLINE void PrefetchTile(const PanelLayout& layout, const uint8_t* panel, int64_t position, int64_t tile_rows) {
  for (int64_t i = 0; i < tile_rows; ++i) PrefetchAhead<kPanels>(layout, panel, position + 64 * i);
}

// The sums of kActs activation tiles times kPanels panels, tiles 0..3, and where they lie in memory: [activation tile][panel][16][16].
template <int kActs, int kPanels> PITH_ALWAYS_INLINE void ZeroSums() {
  FinishStores();
  _tile_zero(0);
  if constexpr (kPanels == 2) _tile_zero(1);
  if constexpr (kActs == 2) _tile_zero(2);
  if constexpr (kActs == 2 && kPanels == 2) _tile_zero(3);
}

template <int kActs, int kPanels, typename Number> PITH_ALWAYS_INLINE void LoadSums(const Number* sums) {
  FinishStores();
  _tile_loadd(0, sums, 64);
  if constexpr (kPanels == 2) _tile_loadd(1, sums + kTileSums, 64);
  if constexpr (kActs == 2) _tile_loadd(2, sums + 2 * kTileSums, 64);
  if constexpr (kActs == 2 && kPanels == 2) _tile_loadd(3, sums + 3 * kTileSums, 64);
}

template <int kActs, int kPanels, typename Number> PITH_ALWAYS_INLINE void StoreSums(Number* sums) {
  _tile_stored(0, sums, 64);
  if constexpr (kPanels == 2) _tile_stored(1, sums + kTileSums, 64);
  if constexpr (kActs == 2) _tile_stored(2, sums + 2 * kTileSums, 64);
  if constexpr (kActs == 2 && kPanels == 2) _tile_stored(3, sums + 3 * kTileSums, 64);
}

// Activation tiles that share a block of weights, of a call with `m` rows. Tiles are always full: the last one is moved back until it
// ends with the rows, and rows that two tiles hold are computed in both and stored once.
struct TileRange {
  int64_t m, begin, count, rows;  // `rows` of each tile: 16, or all when the call has fewer

  // The first row of tile t of the range, and the first that no tile before it holds.
  int64_t RowOf(int64_t t) const { return Min(NewRowOf(t), m - rows); }
  int64_t NewRowOf(int64_t t) const { return kTileRows * (begin + t); }
};

// Copies `bytes` of a row, cut into tile rows of 64 or 32 bytes that lie `step` bytes apart.
inline void PackRow(const void* in, int64_t bytes, int64_t tile_row_bytes, int64_t step, void* out) {
  const char* from = static_cast<const char*>(in);
  char* to = static_cast<char*>(out);
  for (int64_t i = 0; i < bytes; i += tile_row_bytes, to += step) {
    if (tile_row_bytes == 64) {
      _mm512_storeu_si512(to, _mm512_loadu_si512(from + i));
    } else {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
    }
  }
}

// How many tiles of a call share a block, at most `largest`: nearly equal blocks of an even number of tiles.
inline int64_t TilesTogether(int64_t tiles, int64_t largest) {
  const int64_t blocks = (tiles + largest - 1) / largest;
  const int64_t even = ((tiles + blocks - 1) / blocks + 1) / 2 * 2;
  return even < largest ? even : largest;
}

// Calls body(TileRange) for blocks of the `m` rows, as many tiles together as fit into kPackedBytes at `row_bytes` a row.
template <typename Body> void ForTileRanges(int64_t m, int64_t row_bytes, Body body) {
  const int64_t tiles = (m + kTileRows - 1) / kTileRows;
  const int64_t together = TilesTogether(tiles, Min(kTiledRowBlock / kTileRows, kPackedBytes / (row_bytes * kTileRows)));
  for (int64_t begin = 0; begin < tiles; begin += together) {
    body(TileRange{.m = m, .begin = begin, .count = Min(together, tiles - begin), .rows = Min(m, kTileRows)});
  }
}

// StorePanel of whole panels, which are nearly all: the same operations in the same order, as one vector. (StorePanel with a constant
// number of columns instead, for every instruction set, made GEMM of 512 rows 13 to 30 % slower.)
PITH_ALWAYS_INLINE void StoreWholePanel(const GemmParams& params, int64_t row, int64_t panel, const float* total) {
  float* out = params.out + row * params.out_stride + (panel - params.out_panel) * kGemmPanel;
  __m512 result = _mm512_loadu_ps(total);
  if (params.activation_scale != nullptr) result = _mm512_mul_ps(result, _mm512_set1_ps(params.activation_scale[row]));
  if (params.bias != nullptr) result = _mm512_add_ps(result, _mm512_loadu_ps(params.bias + panel * kGemmPanel));
  if (params.accumulate) result = _mm512_add_ps(_mm512_loadu_ps(out), result);
  _mm512_storeu_ps(out, result);
}

// Writes kPanels panels of every row of the range, each once. totals(t, r, p): 16 floats, row r of tile t in panel p.
template <int kPanels, typename Totals>
PITH_ALWAYS_INLINE void StoreTiles(const GemmParams& params, const TileRange& tiles, int64_t panel, Totals totals) {
  const bool whole = (panel + kPanels) * kGemmPanel <= params.problem.n;
  for (int64_t t = 0; t < tiles.count; ++t) {
    for (int64_t row = tiles.NewRowOf(t); row < tiles.RowOf(t) + tiles.rows; ++row) {
#pragma GCC unroll 2
      for (int64_t p = 0; p < kPanels; ++p) {
        const float* total = totals(t, row - tiles.RowOf(t), p);
        whole ? StoreWholePanel(params, row, panel + p, total) : StorePanel(params, row, panel + p, total);
      }
    }
  }
}

}  // namespace
}  // namespace pith
