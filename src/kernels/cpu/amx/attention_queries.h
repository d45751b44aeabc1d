// What the AMX attention kernels of all formats share: queries as tiles, and fetching ahead.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/cpu/amx/tile_config.h"
#include "kernels/cpu/attention_tiles.h"

namespace pith {
namespace {

// Where a tile of queries begins that holds `query`: tiles are full, the last one is moved back until it ends with the queries.
struct QueryTile {
  int64_t first, rows;
  int64_t end() const { return first + rows; }
};
inline QueryTile TileOf(const AttentionTile& tile, int64_t query) {
  const int64_t queries = tile.num_rows * tile.group, rows = Smaller(kTileRows, queries);
  return {Smaller(query, queries - rows), rows};
}

// Fetches the rows of the next chunk's tokens in `steps` steps.
class NextChunk {
 public:
  NextChunk(const AttentionTile& tile, const uint8_t* rows, const int64_t* offset, int64_t element_bytes, int64_t steps)
      : rows_(rows), offset_(offset), row_bytes_(tile.head_dim * element_bytes), per_step_((kAttentionChunk + steps - 1) / steps) {
    if (offset == nullptr) token_ = kAttentionChunk;
  }

  PITH_ALWAYS_INLINE void Fetch() {
    for (const int64_t end = Smaller(token_ + per_step_, kAttentionChunk); token_ < end; ++token_) {
      const uint8_t* row = rows_ + offset_[token_];
      for (int64_t i = 0; i < row_bytes_; i += 64) _mm_prefetch(reinterpret_cast<const char*>(row + i), _MM_HINT_T0);
    }
  }

 private:
  const uint8_t* rows_;
  const int64_t* offset_;  // null: there is no next chunk
  int64_t row_bytes_, per_step_;
  int64_t token_ = 0;
};

}  // namespace
}  // namespace pith
