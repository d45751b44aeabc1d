// The loops of the AMX rows that multiply bf16, written once: 16 rows x 16 columns of f32 per tile, 32 k per instruction (tdpbf16ps).
// Layouts: gemm_layout.h, whose units of 2 k and 16 columns are the rows of a weight tile, as they lie (dense) or once decoded (e4m3).
//
// Arithmetic, the same for every m, tile and panel range. Per instruction, k ascending, every step fused and subnormal numbers zero:
//   even = sum of the products of k, k + 2, ... k + 30;  odd = that of k + 1, k + 3, ...;  sum = sum + (even + odd)
// Dense weights are one group; the sum of a group of codes ends with total = fma(sum, scale, total). Then the activations' scale, bias and
// residual.
//
// Include in one translation unit of this folder per format only: everything is in an anonymous namespace.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/amx/tile_config.h"
#include "kernels/cpu/avx512/fp8.h"
#include "kernels/cpu/avx512_vnni/gemm_lanes.h"
#include "kernels/cpu/gemm_layout.h"
#include "kernels/cpu/gemm_prefetch.h"

namespace pith {
namespace {

constexpr int64_t kTileK = 32, kTileRowBytes = 64, kWeightTileBytes = 1024;
constexpr int64_t kChunkK = 512;         // of dense weights that stay in the level-1 cache while rows pass
constexpr int64_t kDecodedChunkK = 256;  // of codes, decoded
constexpr int64_t kStreamedRows = 32;    // up to here weights are used once, and a dense panel is one chunk
constexpr int64_t kMaxTiledK = kPackedBytes / (2 * kTileRows);

struct DenseTiles {
  static constexpr bool kInPlace = true;
  static constexpr PanelLayout Layout(const GemmProblem& problem) { return DenseLayout(problem); }
};

struct F8Tiles {
  static constexpr bool kInPlace = false;
  static constexpr PanelLayout Layout(const GemmProblem& problem) { return F8Layout(problem); }
};

struct Block {
  const GemmParams* params;
  PanelLayout layout;
  TileRange tiles;
  char* packed;      // [tile][k / 32][row][32] bf16
  float* sums;       // per pair of tiles [activation tile][panel][row][16]
  float* totals;     // the same of all groups so far; codes only
  uint8_t* decoded;  // [panel][kDecodedChunkK / 2][16 columns][2 k] bf16; codes only
};

// Weights of kPanels panels that lie within one group.
struct Chunk {
  const uint8_t* panel;    // the first one
  const uint8_t* weights;  // bf16 units at k_begin
  int64_t weights_stride;  // bytes from a panel's units to the next panel's
  int64_t k_begin, k_end;
  bool opens_group, closes_group;
};

void PackActivations(const Block& block) {
  const GemmParams& params = *block.params;
  const int64_t row_bytes = 2 * params.problem.k;
  for (int64_t t = 0; t < block.tiles.count; ++t) {
    for (int64_t r = 0; r < block.tiles.rows; ++r) {
      PackRow(params.activation + (block.tiles.RowOf(t) + r) * params.activation_stride, row_bytes, kTileRowBytes,
              block.tiles.rows * kTileRowBytes, block.packed + t * block.tiles.rows * row_bytes + r * kTileRowBytes);
    }
  }
}

// Four k of each panel at a time: the codes of a cache line.
template <int kPanels> void DecodeChunk(const Block& block, const Chunk& chunk) {
  constexpr int64_t kPanelBytes = kDecodedChunkK / 2 * 64;
  int64_t position = block.layout.code_begin + chunk.k_begin / kW8UnitK * kW8UnitBytes;
  uint8_t* out = block.decoded;
  for (int64_t k = chunk.k_begin; k < chunk.k_end; k += 4, position += 64, out += 128) {
    PrefetchAhead<kPanels>(block.layout, chunk.panel, position);
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) {
      const uint8_t* codes = chunk.panel + p * block.layout.panel_bytes + position;
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        _mm512_store_si512(out + p * kPanelBytes + 64 * half, Bf16FromE4m3(_mm512_cvtepu8_epi16(Lanes::Load256(codes + 32 * half))));
      }
    }
  }
}

// Activation tiles first and, with kActs == 2, first + 1 (or the last one again), times the chunk.
template <typename Format, int kActs, int kPanels> void MultiplyTiles(const Block& block, const Chunk& chunk, int64_t first, float* sums) {
  const int64_t tile_bytes = block.tiles.rows * kTileRowBytes, stride = block.params->problem.k / kTileK * tile_bytes;
  const char* upper = block.packed + first * stride + chunk.k_begin / kTileK * tile_bytes;
  const char* lower = upper + (Min(first + 1, block.tiles.count - 1) - first) * stride;
  const uint8_t* weights = chunk.weights;
  if (chunk.opens_group) {
    ZeroSums<kActs, kPanels>();
  } else {
    LoadSums<kActs, kPanels>(sums);
  }
  for (int64_t k = chunk.k_begin; k < chunk.k_end; k += kTileK, weights += kWeightTileBytes, upper += tile_bytes, lower += tile_bytes) {
    if (Format::kInPlace && first == 0) PrefetchTile<kPanels>(block.layout, chunk.panel, weights - chunk.panel, 16);
    _tile_loadd(6, weights, 64);
    _tile_loadd(4, upper, kTileRowBytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kPanels == 2) {
      _tile_loadd(7, weights + chunk.weights_stride, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kActs == 2) {
      _tile_loadd(5, lower, kTileRowBytes);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (kPanels == 2) _tile_dpbf16ps(3, 5, 7);
    }
  }
  StoreSums<kActs, kPanels>(sums);
}

// Folds the sums of a finished group of codes into the totals.
template <int kActs, int kPanels> void FinishGroup(const Block& block, const Chunk& chunk, const float* sums, float* totals) {
  const int64_t g = chunk.k_begin / block.layout.group_size;
  for (int p = 0; p < kPanels; ++p) {
    const __m512 scale = LoadGroupValue<Lanes>(chunk.panel + p * block.layout.panel_bytes, block.layout, g);
    for (int a = 0; a < kActs; ++a) {
      const int64_t tile = (2 * a + p) * kTileSums;
      for (int64_t r = 0; r < block.tiles.rows; ++r) {
        float* total = totals + tile + 16 * r;
        _mm512_store_ps(total, _mm512_fmadd_ps(_mm512_load_ps(sums + tile + 16 * r), scale, _mm512_load_ps(total)));
      }
    }
  }
}

template <typename Format, int kActs, int kPanels> void ComputePanels(const Block& block, int64_t panel) {
  const GemmParams& params = *block.params;
  const PanelLayout& layout = block.layout;
  const int64_t units = (block.tiles.count + kActs - 1) / kActs, k = params.problem.k;
  const int64_t chunk_k = !Format::kInPlace ? kDecodedChunkK : params.m <= kStreamedRows ? k : kChunkK;
  Chunk chunk = {.panel = params.weight + panel * layout.panel_bytes};
  PrefetchScales<kPanels>(layout, chunk.panel);
  if (!Format::kInPlace) __builtin_memset(block.totals, 0, static_cast<size_t>(units * kUnitSums) * sizeof(float));
  for (; chunk.k_begin < k; chunk.k_begin = chunk.k_end) {
    const int64_t group_end = (chunk.k_begin / layout.group_size + 1) * layout.group_size;
    chunk.k_end = Min(chunk.k_begin + chunk_k, group_end);
    chunk.opens_group = chunk.k_begin % layout.group_size == 0;
    chunk.closes_group = chunk.k_end == group_end;
    if constexpr (Format::kInPlace) {
      chunk.weights = chunk.panel + chunk.k_begin / kTileK * kWeightTileBytes;
      chunk.weights_stride = layout.panel_bytes;
    } else {
      DecodeChunk<kPanels>(block, chunk);
      chunk.weights = block.decoded;
      chunk.weights_stride = kDecodedChunkK / 2 * 64;
    }
    for (int64_t u = 0; u < units; ++u) {
      MultiplyTiles<Format, kActs, kPanels>(block, chunk, u * kActs, block.sums + u * kUnitSums);
      if (!Format::kInPlace && chunk.closes_group) {
        FinishGroup<kActs, kPanels>(block, chunk, block.sums + u * kUnitSums, block.totals + u * kUnitSums);
      }
    }
  }
  const float* results = Format::kInPlace ? block.sums : block.totals;
  StoreTiles<kPanels>(params, block.tiles, panel, [&](int64_t t, int64_t r, int64_t p) {
    return results + t / kActs * kUnitSums + (t % kActs * 2 + p) * kTileSums + r * 16;
  });
}

template <typename Format, int kActs> void ComputeBlock(const Block& block) {
  int64_t panel = block.params->panel_begin;
  for (; panel + 2 <= block.params->panel_end; panel += 2) ComputePanels<Format, kActs, 2>(block, panel);
  if (panel < block.params->panel_end) ComputePanels<Format, kActs, 1>(block, panel);
}

// Every row by tiles.
template <typename Format> void RunTiles(const GemmParams& params) {
  constexpr int64_t kSums = kTiledRowBlock / kTileRows * kUnitSums;
  alignas(64) char packed[kPackedBytes];
  alignas(64) float sums[kSums];
  alignas(64) float totals[Format::kInPlace ? 1 : kSums];
  alignas(64) uint8_t decoded[Format::kInPlace ? 1 : kDecodedChunkK / 2 * 64 * 2];
  Configure(kTileRowBytes, Min(params.m, kTileRows));
  ForTileRanges(params.m, 2 * params.problem.k, [&](const TileRange& range) {
    const Block block = {.params = &params,
                         .layout = Format::Layout(params.problem),
                         .tiles = range,
                         .packed = packed,
                         .sums = sums,
                         .totals = totals,
                         .decoded = decoded};
    PackActivations(block);
    range.count == 1 ? ComputeBlock<Format, 1>(block) : ComputeBlock<Format, 2>(block);
  });
  _tile_release();
}

// nullptr, or why tiles cannot hold the k of a problem.
inline const char* CanTile(const GemmProblem& problem) {
  if (problem.k % kTileK != 0) return "k % 32 != 0";
  if (problem.k > kMaxTiledK) return "k exceeds 32768";
  return nullptr;
}

}  // namespace
}  // namespace pith
