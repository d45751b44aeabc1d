// The shapes of the eight tile registers that the AMX rows use.
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

}  // namespace
}  // namespace pith
