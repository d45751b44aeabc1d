// The walk over rows, heads, partitions and chunks that the vector attention kernels share; the arithmetic is each instruction set's own.
// Internal linkage: every including kernel has its own copy, compiled for its own instruction set.
//
// A tile is up to kAttentionTileRows rows of one KV head with all the query heads of its group: `queries` = rows x group, row-major. Per
// chunk of kAttentionChunk tokens the keys are transposed once for the tile, then every query goes through scores, softmax and weighted
// sum. Why rows are invariant: a query's score, weight and sum chains run over head_dim, then over the chunk's tokens, in ascending order,
// one chain per lane, whatever queries share the registers; tokens outside the row's own range [begin, end) are never added (0 * NaN would
// reach the row, and -0 + 0 would change a sign), or added with weight 0 to sums of a chunk that begin and end as +0, and only
// while every value of the chunk is finite, which leaves the same bits (PackValues).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention.h"

namespace pith {
namespace {

constexpr int64_t kTotalLanes = 16;  // the sum of weights is kept per lane and reduced at the end of a partition

struct AttentionTile {
  int64_t kv_head, group, head_dim;
  int64_t state_stride;  // floats between states; the sums of a state are padded with whole vectors
  int64_t row, num_rows;
  uint32_t* key;        // the chunk's keys by dimension, the kernel's own layout
  uint8_t* value;       // the chunk's values where the kernel converts them
  float* key_scale;     // [kAttentionChunk] int8, fp8
  float* value_scale;   // [kAttentionChunk]
  float* score;         // [queries, kAttentionChunk]: scores, then weights
  float* query;         // [queries, padded head_dim]
  float* total;         // [queries, kTotalLanes]
  float* max;           // [queries]
  float* correction;    // [queries] what the sums so far are multiplied with in this chunk: e or 2 to the old max - new max
  float* query_scale;   // [queries] kernels with integer queries
  float* weight_scale;  // [queries] kernels with integer weights
  float* state;         // [queries, state_stride] of the partition at work; sums in the kernel's own order of dimensions
  float* merged;        // [queries, state_stride] of the partitions before

  int64_t query_stride() const { return state_stride - 16; }
};

// Of a state: behind the sums.
inline float& MaxOf(float* state, int64_t stride) { return state[stride - 16]; }
inline float& TotalOf(float* state, int64_t stride) { return state[stride - 15]; }

inline int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t Larger(int64_t a, int64_t b) { return a > b ? a : b; }

inline int64_t FirstToken(const AttentionParams& p, int64_t row) { return AttentionFirstToken(p.first_position + row, p.window); }

// Carves the scratch; everything read with whole vectors lies 64-byte aligned.
inline AttentionTile CarveScratch(const AttentionParams& p) {
  AttentionTile tile{};
  tile.group = p.num_heads / p.num_kv_heads;
  tile.head_dim = p.head_dim;
  tile.state_stride = AttentionStateFloats(p.head_dim);
  const int64_t queries = kAttentionTileRows * tile.group;
  float* next = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(p.scratch) + 63) & ~static_cast<uintptr_t>(63));
  const auto take = [&next](int64_t floats) {
    float* taken = next;
    next += floats;
    return taken;
  };
  tile.key = reinterpret_cast<uint32_t*>(take(tile.query_stride() / 2 * kAttentionChunk));
  tile.value = reinterpret_cast<uint8_t*>(take(tile.query_stride() / 2 * kAttentionChunk));
  tile.key_scale = take(kAttentionChunk);
  tile.value_scale = take(kAttentionChunk);
  tile.score = take(queries * kAttentionChunk);
  tile.query = take(queries * tile.query_stride());
  tile.state = take(queries * tile.state_stride);
  tile.merged = take(queries * tile.state_stride);
  tile.total = take(queries * kTotalLanes);
  tile.max = take(queries);
  tile.correction = take(queries);
  tile.query_scale = take(queries);
  tile.weight_scale = take(queries);
  return tile;
}

// head_dim floats: query q of the tile.
inline const float* QueryOf(const AttentionParams& p, const AttentionTile& tile, int64_t q) {
  return p.query + (tile.row + q / tile.group) * p.query_stride + (tile.kv_head * tile.group + q % tile.group) * tile.head_dim;
}

// Where the tokens of a chunk lie: byte offsets of their elements and of their scales from the head's first key (and value).
struct ChunkTokens {
  int64_t offset[kAttentionChunk];
  int64_t scale_offset[kAttentionChunk];
};

// Locates the tokens of every block that holds one in [begin, end), at least one of them in this chunk; the others get the place of a
// neighbour, so that every offset may be read (their scores are masked).
inline void LocateTokens(const AttentionParams& p, int64_t element_bytes, int64_t chunk, int64_t begin, int64_t end, ChunkTokens* tokens) {
  int64_t first = Larger(begin - chunk, 0);
  int64_t last = Smaller(end - chunk, kAttentionChunk) - 1;
  first = Larger(first - (chunk + first) % p.block_size, 0);
  last = Smaller(last + p.block_size - 1 - (chunk + last) % p.block_size, kAttentionChunk - 1);
  const int64_t token_bytes = p.head_dim * element_bytes, scales = p.block_size * token_bytes;
  int64_t block = (chunk + first) / p.block_size;
  int64_t slot = (chunk + first) % p.block_size;
  for (int64_t t = first; t <= last; ++t) {
    const int64_t place = p.block_table[block] * p.block_stride;
    tokens->offset[t] = place + slot * token_bytes;
    tokens->scale_offset[t] = place + scales + slot * 4;
    if (++slot == p.block_size) {
      slot = 0;
      ++block;
    }
  }
  for (int64_t t = 0; t < first; ++t) tokens->offset[t] = tokens->offset[first], tokens->scale_offset[t] = tokens->scale_offset[first];
  for (int64_t t = last + 1; t < kAttentionChunk; ++t) {
    tokens->offset[t] = tokens->offset[last];
    tokens->scale_offset[t] = tokens->scale_offset[last];
  }
}

// The scales of a chunk in order. Those of 16 aligned tokens of one block lie side by side; where a block is not read at all, the copies
// are those of one neighbouring token (see LocateTokens), and nothing beyond its block may be read.
inline void LoadScales(const AttentionParams& p, const uint8_t* head, const ChunkTokens& tokens, float* scale) {
  for (int64_t t = 0; t < kAttentionChunk; t += 16) {
    const int64_t first = tokens.scale_offset[t];
    if (p.block_size % 16 == 0 && tokens.scale_offset[t + 15] == first + 60) {
      __builtin_memcpy(scale + t, head + first, 64);
    } else {
      for (int64_t i = t; i < t + 16; ++i) __builtin_memcpy(scale + i, head + tokens.scale_offset[i], 4);
    }
  }
}

// The hardware does not follow from the elements of a block to its scales.
inline void PrefetchScales(const AttentionParams& p, int64_t kv_head, const ChunkTokens& tokens) {
  for (int64_t t = 0; t < kAttentionChunk; t += 16) {
    __builtin_prefetch(p.key_cache + kv_head * p.head_stride + tokens.scale_offset[t]);
    __builtin_prefetch(p.value_cache + kv_head * p.head_stride + tokens.scale_offset[t]);
  }
}

// How many of `left` queries go together when at most `most` can: as even as possible (7 of at most 6 are 4 and 3, not 6 and 1).
inline int64_t QueriesTogether(int64_t left, int64_t most) {
  const int64_t parts = (left + most - 1) / most;
  return (left + parts - 1) / parts;
}

struct RowRange {
  int64_t begin, end;
};

// The rows of the tile that see any of the tokens [begin, end). Rows see [first, position] and both ends grow with the row, so they are
// consecutive.
inline RowRange RowsSeeing(const AttentionParams& p, const AttentionTile& tile, int64_t begin, int64_t end) {
  RowRange rows{Larger(0, begin - (p.first_position + tile.row)), tile.num_rows};
  while (rows.end > rows.begin && FirstToken(p, tile.row + rows.end - 1) >= end) --rows.end;
  return rows;
}

// PackValues brings a chunk's values into the form that AddValues reads, tokens outside of [begin, end) as zeros. True: AddValues may run
// once for all rows, the weights of what they do not see being 0; false: once per range. RangesApart: for kernels that need no such form.
struct RangesApart {
  static bool PackValues(const AttentionTile&, const uint8_t*, const int64_t*, int64_t, int64_t) { return false; }
};

// One chunk for the rows of the tile that see any of it. Meanwhile the keys and values of `next` are fetched (null: none): blocks lie
// anywhere, so the hardware cannot guess where a sequence goes on.
template <typename Lanes>
void AttendChunk(const AttentionParams& p, const AttentionTile& tile, int64_t chunk, const ChunkTokens& tokens, const ChunkTokens* next) {
  const uint8_t* keys = p.key_cache + tile.kv_head * p.head_stride;
  const uint8_t* values = p.value_cache + tile.kv_head * p.head_stride;
  if (Lanes::kScaled) {
    LoadScales(p, keys, tokens, tile.key_scale);
    LoadScales(p, values, tokens, tile.value_scale);
    if (next != nullptr) PrefetchScales(p, tile.kv_head, *next);
  }
  const int64_t* next_offset = next != nullptr ? next->offset : nullptr;
  Lanes::LoadChunk(tile, keys, values, tokens.offset);
  const int64_t first = Larger(FirstToken(p, tile.row) - chunk, 0);
  const int64_t last = Smaller(p.first_position + tile.row + tile.num_rows - chunk, kAttentionChunk);
  const bool together = Lanes::PackValues(tile, values, tokens.offset, first, last);
  const RowRange rows = RowsSeeing(p, tile, chunk, chunk + kAttentionChunk);
  Lanes::Scores(tile, rows.begin * tile.group, rows.end * tile.group, keys, next_offset);
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t begin = Larger(FirstToken(p, tile.row + row) - chunk, 0);
    const int64_t end = Smaller(p.first_position + tile.row + row + 1 - chunk, kAttentionChunk);
    int64_t after = row + 1;  // rows with the same range go together
    while (after < rows.end && Larger(FirstToken(p, tile.row + after) - chunk, 0) == begin &&
           Smaller(p.first_position + tile.row + after + 1 - chunk, kAttentionChunk) == end) {
      ++after;
    }
    Lanes::Softmax(tile, row * tile.group, after * tile.group, begin, end);
    if (!together) {
      Lanes::PackValues(tile, values, tokens.offset, begin, end);
      Lanes::AddValues(tile, row * tile.group, after * tile.group, values, tokens.offset, next_offset, begin, end);
    }
    row = after;
  }
  if (together) {
    Lanes::AddValues(tile, rows.begin * tile.group, rows.end * tile.group, values, tokens.offset, next_offset, first, last);
  }
}

// The state of a partition becomes part of what the row has seen. By position, never by value, so that every caller does the same.
template <typename Lanes> void MergePartition(const AttentionParams& p, const AttentionTile& tile, int64_t partition, const float* states) {
  const RowRange rows = RowsSeeing(p, tile, partition * kAttentionPartition, (partition + 1) * kAttentionPartition);
  for (int64_t q = rows.begin * tile.group; q < rows.end * tile.group; ++q) {
    const bool first = FirstToken(p, tile.row + q / tile.group) / kAttentionPartition == partition;
    Lanes::Merge(tile, tile.merged + q * tile.state_stride, states + q * tile.state_stride, first);
  }
}

// Partitions [partition_begin, partition_end) for the rows of the tile.
template <typename Lanes> void AttendRows(const AttentionParams& p, AttentionTile& tile, int64_t partition_begin, int64_t partition_end) {
  const int64_t begin = Larger(FirstToken(p, tile.row), partition_begin * kAttentionPartition);
  const int64_t end = Smaller(p.first_position + tile.row + tile.num_rows, partition_end * kAttentionPartition);
  if (begin >= end) return;
  ChunkTokens tokens[2];  // of this chunk and of the next one
  int current = 0;
  int64_t chunk = begin / kAttentionChunk * kAttentionChunk;
  LocateTokens(p, Lanes::kElementBytes, chunk, begin, end, &tokens[0]);
  for (int64_t partition = begin / kAttentionPartition; partition * kAttentionPartition < end; ++partition) {
    const int64_t partition_last = Smaller((partition + 1) * kAttentionPartition, end);
    const RowRange rows = RowsSeeing(p, tile, partition * kAttentionPartition, (partition + 1) * kAttentionPartition);
    if (p.partial != nullptr) {
      tile.state = p.partial + (partition - p.partial_begin) * tile.num_rows * tile.group * tile.state_stride;
    }
    Lanes::Open(tile, rows.begin * tile.group, rows.end * tile.group);
    for (; chunk < partition_last; chunk += kAttentionChunk, current ^= 1) {
      const bool more = chunk + kAttentionChunk < end;
      if (more) LocateTokens(p, Lanes::kElementBytes, chunk + kAttentionChunk, begin, end, &tokens[current ^ 1]);
      AttendChunk<Lanes>(p, tile, chunk, tokens[current], more ? &tokens[current ^ 1] : nullptr);
    }
    Lanes::Close(tile, rows.begin * tile.group, rows.end * tile.group);
    if (p.partial == nullptr) MergePartition<Lanes>(p, tile, partition, tile.state);
  }
}

template <typename Lanes> void WriteRows(const AttentionParams& p, const AttentionTile& tile) {
  for (int64_t q = 0; q < tile.num_rows * tile.group; ++q) {
    uint16_t* out = p.out + (tile.row + q / tile.group) * p.out_stride + (tile.kv_head * tile.group + q % tile.group) * tile.head_dim;
    Lanes::Write(tile, tile.merged + q * tile.state_stride, out);
  }
}

template <typename Lanes> void AttendTiles(const AttentionParams& p) {
  AttentionTile tile = CarveScratch(p);
  for (tile.kv_head = p.kv_head_begin; tile.kv_head < p.kv_head_end; ++tile.kv_head) {
    for (tile.row = p.row_begin; tile.row < p.row_end; tile.row += kAttentionTileRows) {
      tile.num_rows = Smaller(kAttentionTileRows, p.row_end - tile.row);
      Lanes::Begin(p, tile);
      if (p.partial != nullptr) {
        AttendRows<Lanes>(p, tile, p.partition_begin, p.partition_end);
      } else {
        AttendRows<Lanes>(p, tile, 0, AttentionPartitionEnd(p.first_position + tile.row + tile.num_rows - 1));
        WriteRows<Lanes>(p, tile);
      }
    }
  }
}

template <typename Lanes> void CombineTile(const AttentionParams& p) {
  AttentionTile tile = CarveScratch(p);
  tile.kv_head = p.kv_head_begin;
  tile.row = p.row_begin;
  tile.num_rows = p.row_end - p.row_begin;
  const int64_t end = AttentionPartitionEnd(p.first_position + p.row_end - 1);
  for (int64_t partition = FirstToken(p, tile.row) / kAttentionPartition; partition < end; ++partition) {
    const int64_t index = (partition - p.partial_begin) * tile.num_rows * tile.group;
    MergePartition<Lanes>(p, tile, partition, p.partial + index * tile.state_stride);
  }
  WriteRows<Lanes>(p, tile);
}

}  // namespace
}  // namespace pith
