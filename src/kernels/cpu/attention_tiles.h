// The walk over rows, heads and chunks that the vector attention kernels share; the arithmetic is each instruction set's own.
// Internal linkage: every including kernel has its own copy, compiled for its own instruction set.
//
// A tile is up to kTileRows rows of one KV head with all the query heads of its group: `queries` = rows x group, row-major. Per chunk of
// kAttentionChunk tokens the keys are transposed once for the tile, then every query goes through scores, softmax and weighted sum.
// Why rows are invariant: a query's score, weight and sum chains run over head_dim, then over the chunk's tokens, in ascending order, one
// chain per lane, whatever queries share the registers; tokens outside the row's own range [begin, end) are never added, not even with
// weight 0 (0 * NaN would reach the row, and -0 + 0 would change a sign).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention.h"

namespace pith {
namespace {

constexpr int64_t kTileRows = 16;    // AttentionScratchFloats counts on it
constexpr int64_t kTotalLanes = 16;  // the sum of weights is kept per lane and reduced at the end

struct AttentionTile {
  int64_t kv_head, group, head_dim;
  int64_t sum_stride;  // head_dim rounded up to whole vectors
  int64_t row, num_rows;
  uint32_t* key;      // [head_dim / 2, kAttentionChunk]: bf16 pairs (i, i + 1) of every token of the chunk
  float* score;       // [queries, kAttentionChunk]: scores, then weights
  float* sum;         // [queries, sum_stride] weighted values; per vector the even dims, then the odd ones
  float* total;       // [queries, kTotalLanes]
  float* query;       // [queries, head_dim], times scale
  float* max;         // [queries]
  float* correction;  // [queries] exp(old max - new max) of this chunk
};

inline int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t Larger(int64_t a, int64_t b) { return a > b ? a : b; }

inline int64_t FirstToken(const AttentionParams& p, int64_t row) {
  return p.window > 0 ? Larger(p.first_position + row + 1 - p.window, 0) : 0;
}

// Carves the scratch; everything read with whole vectors lies 64-byte aligned.
inline AttentionTile CarveScratch(const AttentionParams& p, int64_t dims_per_vector) {
  AttentionTile tile{};
  tile.group = p.num_heads / p.num_kv_heads;
  tile.head_dim = p.head_dim;
  tile.sum_stride = (p.head_dim + dims_per_vector - 1) / dims_per_vector * dims_per_vector;
  const int64_t queries = kTileRows * tile.group;
  float* next = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(p.scratch) + 63) & ~static_cast<uintptr_t>(63));
  tile.key = reinterpret_cast<uint32_t*>(next);
  next += p.head_dim / 2 * kAttentionChunk;
  tile.score = next;
  next += queries * kAttentionChunk;
  tile.sum = next;
  next += queries * tile.sum_stride;
  tile.total = next;
  next += queries * kTotalLanes;
  tile.query = next;
  next += queries * p.head_dim;
  tile.max = next;
  tile.correction = next + queries;
  return tile;
}

// Where the tokens of a chunk lie: element offsets from the head's first key (and value). The tile needs the tokens in [begin, end), at
// least one of them in this chunk; the others get the offset of a neighbour, so that every offset may be read (their scores are masked).
inline void LocateTokens(const AttentionParams& p, int64_t chunk, int64_t begin, int64_t end, int64_t* offset) {
  const int64_t first = Larger(begin - chunk, 0);
  const int64_t last = Smaller(end - chunk, kAttentionChunk) - 1;
  int64_t block = (chunk + first) / p.block_size;
  int64_t slot = (chunk + first) % p.block_size;
  for (int64_t t = first; t <= last; ++t) {
    offset[t] = p.block_table[block] * p.block_stride + slot * p.head_dim;
    if (++slot == p.block_size) {
      slot = 0;
      ++block;
    }
  }
  for (int64_t t = 0; t < first; ++t) offset[t] = offset[first];
  for (int64_t t = last + 1; t < kAttentionChunk; ++t) offset[t] = offset[last];
}

// How many of `left` queries go together when at most `most` can: as even as possible (7 of at most 6 are 4 and 3, not 6 and 1).
inline int64_t QueriesTogether(int64_t left, int64_t most) {
  const int64_t parts = (left + most - 1) / most;
  return (left + parts - 1) / parts;
}

// One chunk for the rows of the tile that see any of it. Meanwhile the keys and values at next_offset are fetched: blocks lie anywhere, so
// the hardware cannot guess where a sequence goes on.
template <typename Lanes>
void AttendChunk(const AttentionParams& p, const AttentionTile& tile, int64_t chunk, const int64_t* offset, const int64_t* next_offset) {
  const uint16_t* keys = p.key_cache + tile.kv_head * p.head_stride;
  const uint16_t* values = p.value_cache + tile.kv_head * p.head_stride;
  Lanes::TransposeKeys(tile, keys, offset);
  // Rows see [first, position]: both ends grow with the row, so the rows that see the chunk are consecutive.
  int64_t row = Larger(0, chunk - (p.first_position + tile.row));
  int64_t last_row = tile.num_rows;
  while (last_row > row && FirstToken(p, tile.row + last_row - 1) >= chunk + kAttentionChunk) --last_row;
  Lanes::Scores(tile, row * tile.group, last_row * tile.group, keys, next_offset);
  while (row < last_row) {
    const int64_t begin = Larger(FirstToken(p, tile.row + row) - chunk, 0);
    const int64_t end = Smaller(p.first_position + tile.row + row + 1 - chunk, kAttentionChunk);
    int64_t next = row + 1;  // rows with the same range go together
    while (next < last_row && Larger(FirstToken(p, tile.row + next) - chunk, 0) == begin &&
           Smaller(p.first_position + tile.row + next + 1 - chunk, kAttentionChunk) == end) {
      ++next;
    }
    Lanes::Softmax(tile, row * tile.group, next * tile.group, begin, end);
    Lanes::AddValues(tile, row * tile.group, next * tile.group, values, offset, next_offset, begin, end);
    row = next;
  }
}

template <typename Lanes> void AttendTiles(const AttentionParams& p) {
  AttentionTile tile = CarveScratch(p, Lanes::kDimsPerVector);
  int64_t offset[2][kAttentionChunk];  // of this chunk's tokens and of the next one's
  for (tile.kv_head = p.kv_head_begin; tile.kv_head < p.kv_head_end; ++tile.kv_head) {
    for (tile.row = p.row_begin; tile.row < p.row_end; tile.row += kTileRows) {
      tile.num_rows = Smaller(kTileRows, p.row_end - tile.row);
      Lanes::Begin(p, tile);
      const int64_t begin = FirstToken(p, tile.row);
      const int64_t end = p.first_position + tile.row + tile.num_rows;
      int64_t chunk = begin / kAttentionChunk * kAttentionChunk;
      LocateTokens(p, chunk, begin, end, offset[0]);
      for (int current = 0; chunk < end; chunk += kAttentionChunk, current ^= 1) {
        const int next = chunk + kAttentionChunk < end ? current ^ 1 : current;
        if (next != current) LocateTokens(p, chunk + kAttentionChunk, begin, end, offset[next]);
        AttendChunk<Lanes>(p, tile, chunk, offset[current], offset[next]);
      }
      Lanes::Finish(p, tile);
    }
  }
}

}  // namespace
}  // namespace pith
