// Integer GEMM by AMX tiles: 16 rows x 16 columns of int32 per tile, 64 k per instruction (tdpbsud: s8 activations, u8 weights).
//
// Sums of a step are exact whoever makes them, so tiles give the bits of the vector rows. A chunk of weights is the one of
// gemm_integer_driver.h: 4 k of 16 columns in 64 bytes are one row of a weight tile.
// While the tile unit multiplies, the vector unit applies scales to the sums of the unit of work before.
//
// Include in one translation unit only.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/amx/tile_config.h"
#include "kernels/cpu/avx512_vnni/gemm_integer_lanes.h"

namespace pith {
namespace {

constexpr int64_t kInPlaceChunkK = 1024;  // weights that need no decoding

// k per tile instruction, or 0 where a step does not consist of whole ones.
int64_t TileK(const Job& job) { return job.step % 64 == 0 ? 64 : job.step % 32 == 0 ? 32 : 0; }

// Measured: with fewer rows the vector loops are as fast.
template <typename Format, int kPlanes> int64_t FewestTiledRows(int64_t tile_k) {
  if (Format::kUnitK == 4 || tile_k == 64) return kPlanes == 2 ? 7 : 9;
  return kPlanes == 2 ? 11 : 17;
}

// Tiles of activations that share a decoded chunk of weights, packed so that a tile load reads lines that follow each other:
// [tile][k / tile_k][plane][row][tile_k].
struct Block {
  const Job* job;
  TileRange tiles;
  int64_t tile_k;
  int8_t* packed;  // kPackedBytes
  float* total;    // [tiles][16][panels][16]
};

template <int kPlanes> void PackActivations(const Block& block) {
  const IntegerActivation& activation = block.job->params->integer;
  const int64_t k = block.job->params->problem.k, tile_bytes = block.tiles.rows * block.tile_k;
  for (int64_t t = 0; t < block.tiles.count; ++t) {
    for (int64_t r = 0; r < block.tiles.rows; ++r) {
      const int64_t in = (block.tiles.RowOf(t) + r) * activation.stride;
      int8_t* out = block.packed + (t * block.tiles.rows * k * kPlanes + r * block.tile_k);
      PackRow(activation.high + in, k, block.tile_k, kPlanes * tile_bytes, out);
      if constexpr (kPlanes == 2) PackRow(activation.low + in, k, block.tile_k, kPlanes * tile_bytes, out + tile_bytes);
    }
  }
}

// Folds the sums of step `s` of one activation tile into its totals, which step 0 begins. `upper` [panels][16][16], with two planes `lower`
// too.
template <int kPlanes, int kPanels, GroupOffset kOffset>
void FinishTile(const Block& block, int64_t t, const Tile& tile, int64_t s, const int32_t* upper, const int32_t* lower) {
  using Lanes = IntegerLanes;
  const Job& job = *block.job;
  const PanelLayout& layout = job.layout;
  const StepGroups groups = GroupsOf(job, s);
  const int64_t row = block.tiles.RowOf(t), rows = block.tiles.rows;
  const int64_t scale_stride = job.groups_of_scale, sum_stride = job.steps;
  const auto center = static_cast<uint32_t>(job.center());
  const float* activation_scale = job.params->integer.scale + row * scale_stride + groups.scale;
  const int32_t* activation_sum = job.params->integer.sum + row * sum_stride + s;
  Lanes::Float scale[kPanels], min[kPanels];
  Lanes::Int zero[kPanels];
#pragma GCC unroll 2
  for (int p = 0; p < kPanels; ++p) {
    const uint8_t* panel = tile.panel + p * layout.panel_bytes;
    scale[p] = Lanes::LoadScale(panel, layout, groups.weight);
    if constexpr (kOffset == GroupOffset::kMin) min[p] = Lanes::LoadScale(panel + layout.offset_begin, layout, groups.weight);
    if constexpr (kOffset == GroupOffset::kZeroPoint) zero[p] = Lanes::LoadU8(panel + layout.offset_begin + groups.weight * kGemmPanel);
  }
  const __mmask16 begun = s == 0 ? 0 : 0xFFFF;
  float* total = block.total + t * kTileRows * kPanels * kGemmPanel;
  for (int64_t r = 0; r < rows; ++r, total += kPanels * kGemmPanel, upper += 16, lower += kPlanes == 2 ? 16 : 0) {
    const float a = *activation_scale;
    const int32_t sum = *activation_sum;
    activation_scale += scale_stride;
    activation_sum += sum_stride;
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) {
      Lanes::Int value = Lanes::LoadInt(upper + p * kTileSums);
      if constexpr (kPlanes == 2) value = _mm512_add_epi32(_mm512_slli_epi32(value, 8), Lanes::LoadInt(lower + p * kTileSums));
      if constexpr (kOffset == GroupOffset::kNone) {
        value = _mm512_sub_epi32(value, _mm512_set1_epi32(static_cast<int32_t>(static_cast<uint32_t>(sum) * center)));
      }
      if constexpr (kOffset == GroupOffset::kZeroPoint) value = Lanes::SubtractProduct(value, zero[p], sum);
      const Lanes::Float before = _mm512_maskz_load_ps(begun, total + p * kGemmPanel);
      Lanes::Float result = Lanes::Fma(Lanes::Multiply(Lanes::ToFloat(value), Lanes::Set(a)), scale[p], before);
      if constexpr (kOffset == GroupOffset::kMin) result = Lanes::Fma(Lanes::Set(-(static_cast<float>(sum) * a)), min[p], result);
      Lanes::Store(total + p * kGemmPanel, result);
    }
  }
}

// The sums of a unit of work that wait for their scales: `first` is its first activation tile.
struct Waiting {
  const int32_t* ints = nullptr;
  int64_t first = 0, step = 0;
};

template <int kPlanes, int kActs, int kPanels, GroupOffset kOffset>
PITH_ALWAYS_INLINE void Finish(const Block& block, const Tile& tile, Waiting* waiting) {
  if (waiting->ints == nullptr) return;
  const int32_t* ints = waiting->ints;
  waiting->ints = nullptr;
  FinishTile<kPlanes, kPanels, kOffset>(block, waiting->first, tile, waiting->step, ints, ints + 2 * kTileSums);
  if constexpr (kPlanes == 1 && kActs == 2) {
    if (waiting->first + 1 == block.tiles.count) return;  // the second tile repeats the first
    FinishTile<kPlanes, kPanels, kOffset>(block, waiting->first + 1, tile, waiting->step, ints + 2 * kTileSums, nullptr);
  }
}

// Activation tile `first`, or two, times the chunk of weights at `tile`. `ints`: two buffers in turn, or where the chunk cuts steps, one
// of this unit that keeps their sums.
template <int kPlanes, int kActs, int kPanels, GroupOffset kOffset, bool kInPlace>
void MultiplyTiles(const Block& block, const Tile& tile, int64_t first, int32_t* ints, bool cut, Waiting* waiting) {
  const Job& job = *block.job;
  const int64_t tile_k = block.tile_k, tile_bytes = block.tiles.rows * tile_k, row_bytes = job.params->problem.k * kPlanes;
  const int8_t* upper = block.packed + block.tiles.rows * (first * row_bytes + tile.k_begin * kPlanes);
  const int8_t* lower = kPlanes == 2 ? upper + tile_bytes
                                     : upper + (Min(first + 1, block.tiles.count - 1) - first) * block.tiles.rows * row_bytes;
  const uint8_t* weights = tile.weights;
  for (int64_t k = tile.k_begin; k < tile.k_end;) {
    const int64_t s = k / job.step, step_end = (s + 1) * job.step, end = Min(step_end, tile.k_end);
    int32_t* sums = cut || waiting->ints != ints ? ints : ints + kUnitSums;
    if (k == s * job.step) {
      ZeroSums<kActs, kPanels>();
    } else {
      LoadSums<kActs, kPanels>(sums);
    }
    for (; k < end; k += tile_k, weights += tile_k / 4 * tile.weights_step, upper += kPlanes * tile_bytes, lower += kPlanes * tile_bytes) {
      if (kInPlace && first == 0) PrefetchTile<kPanels>(job.layout, tile.panel, weights - tile.panel, tile_k / 4);
      _tile_loadd(6, weights, tile.weights_step);
      _tile_loadd(4, upper, tile_k);
      _tile_dpbsud(0, 4, 6);
      if constexpr (kPanels == 2) {
        _tile_loadd(7, weights + tile.weights_stride, tile.weights_step);
        _tile_dpbsud(1, 4, 7);
      }
      if constexpr (kActs == 2) {
        _tile_loadd(5, lower, tile_k);
        _tile_dpbsud(2, 5, 6);
        if constexpr (kPanels == 2) _tile_dpbsud(3, 5, 7);
      }
    }
    Finish<kPlanes, kActs, kPanels, kOffset>(block, tile, waiting);
    StoreSums<kActs, kPanels>(sums);
    if (end == step_end) *waiting = {.ints = sums, .first = first, .step = s};
  }
}

// kPanels panels for the rows of the block.
template <typename Format, int kPlanes, int kActs, int kPanels, GroupOffset kOffset>
void ComputeTiled(const Block& block, int64_t panel, uint8_t* scratch) {
  constexpr bool kInPlace = Format::kUnitK == 4;
  constexpr int64_t kTilesTogether = kPlanes == 1 ? kActs : 1;
  const Job& job = *block.job;
  alignas(64) int32_t ints[kTiledRowBlock / kTileRows * kUnitSums];
  Tile tile = {.job = &job, .panel = job.params->weight + panel * job.layout.panel_bytes};
  const int64_t chunk = kInPlace ? ChunkK(job, kInPlaceChunkK) : ChunkK(job, kChunkK);
  const bool cut = job.step > chunk;
  if (kInPlace) PrefetchScales<kPanels>(job.layout, tile.panel);
  Waiting waiting;
  for (int64_t k = 0; k < job.params->problem.k; k = tile.k_end) {
    SetChunk<IntegerLanes, Format, kPanels>(job, k, chunk, tile, scratch);
    for (int64_t t = 0; t < block.tiles.count; t += kTilesTogether) {
      int32_t* unit = ints + (cut ? t / kTilesTogether * kUnitSums : 0);
      MultiplyTiles<kPlanes, kActs, kPanels, kOffset, kInPlace>(block, tile, t, unit, cut, &waiting);
    }
  }
  Finish<kPlanes, kActs, kPanels, kOffset>(block, tile, &waiting);
  StoreTiles<kPanels>(*job.params, block.tiles, panel,
                      [&](int64_t t, int64_t r, int64_t p) { return block.total + ((t * kTileRows + r) * kPanels + p) * kGemmPanel; });
}

template <typename Format, int kPlanes, int kActs, int kPanels> void DispatchOffset(const Block& block, int64_t panel, uint8_t* scratch) {
  switch (block.job->layout.offset) {
    case GroupOffset::kNone: return ComputeTiled<Format, kPlanes, kActs, kPanels, GroupOffset::kNone>(block, panel, scratch);
    case GroupOffset::kZeroPoint: return ComputeTiled<Format, kPlanes, kActs, kPanels, GroupOffset::kZeroPoint>(block, panel, scratch);
    case GroupOffset::kMin: return ComputeTiled<Format, kPlanes, kActs, kPanels, GroupOffset::kMin>(block, panel, scratch);
  }
}

template <typename Format, int kPlanes, int kPanels> void DispatchTiles(const Block& block, int64_t panel, uint8_t* scratch) {
  if constexpr (kPlanes == 1) {
    if (block.tiles.count == 1) return DispatchOffset<Format, kPlanes, 1, kPanels>(block, panel, scratch);
  }
  DispatchOffset<Format, kPlanes, 2, kPanels>(block, panel, scratch);
}

// GemmKernelEntry::run of an AMX row: by tiles, or a few rows by the vector loops.
template <typename Format, int kPlanes> void RunTiledGemm(const GemmParams& params) {
  const Job job = MakeJob<Format>(params);
  const int64_t tile_k = TileK(job);
  if (tile_k == 0 || params.m < FewestTiledRows<Format, kPlanes>(tile_k) || params.problem.k * kPlanes * kTileRows > kPackedBytes) {
    return RunJob<IntegerLanes, Format, kPlanes>(job);
  }
  alignas(64) uint8_t scratch[Format::kUnitK == 4 ? 64 : kChunkK / 4 * 2 * kIntegerUnitBytes];
  alignas(64) float total[kTiledRowBlock * 2 * kGemmPanel];
  alignas(64) int8_t packed[kPackedBytes];
  Configure(tile_k, Min(params.m, kTileRows));
  ForTileRanges(params.m, params.problem.k * kPlanes, [&](const TileRange& range) {
    const Block block = {.job = &job, .tiles = range, .tile_k = tile_k, .packed = packed, .total = total};
    PackActivations<kPlanes>(block);
    int64_t panel = params.panel_begin;
    for (; panel + 2 <= params.panel_end; panel += 2) DispatchTiles<Format, kPlanes, 2>(block, panel, scratch);
    for (; panel < params.panel_end; ++panel) DispatchTiles<Format, kPlanes, 1>(block, panel, scratch);
  });
  _tile_release();
}

}  // namespace
}  // namespace pith
