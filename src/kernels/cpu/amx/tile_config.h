// The shapes of the eight tile registers that the AMX rows use, and rows of activations as tiles.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace pith {
namespace {

constexpr int64_t kTileRows = 16;

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Tiles 0..3: sums of two activation tiles (4, 5), of `rows` rows each, times two weight tiles (6, 7).
void Configure(int64_t tile_k, int64_t rows) {
  TileConfig config;
  for (int t = 0; t < 8; ++t) {
    const bool activation = t == 4 || t == 5, weight = t >= 6;
    config.rows[t] = static_cast<uint8_t>(weight ? tile_k / 4 : rows);
    config.row_bytes[t] = static_cast<uint16_t>(activation ? tile_k : 64);
  }
  _tile_loadconfig(&config);
}

// Activation tiles that share a block of weights, of a call with `m` rows. Tiles are always full: the last one is moved back until it
// ends with the rows, and rows that two tiles hold are computed in both and stored once.
struct TileRange {
  int64_t m, begin, count, rows;  // `rows` of each tile: 16, or all when the call has fewer

  // The first row of tile t of the range, and the first that no tile before it holds.
  int64_t RowOf(int64_t t) const { return NewRowOf(t) < m - rows ? NewRowOf(t) : m - rows; }
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

}  // namespace
}  // namespace pith
