// Many rows by AMX tiles: 16 rows x 16 columns of int32 per tile, 64 k per instruction (tdpbsud: s8 activations, u8 weights).
//
// Sums of a step are exact whoever makes them, so tiles give the bits of the vector rows, and rows that do not fill a tile go through
// those. A block of weights is the one of gemm_integer_driver.h: 4 k of 16 columns in 64 bytes are one row of a weight tile.
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

constexpr int64_t kTilePanels = 2;       // weight tiles side by side
constexpr int64_t kTiledRowBlock = 192;  // rows that share a decoded chunk of weights
constexpr int64_t kSumInts = 16 * 16;    // of one tile

// k per tile instruction, or 0 where a step does not consist of whole ones.
int64_t TileK(const Job& job) { return job.step % 64 == 0 ? 64 : job.step % 32 == 0 ? 32 : 0; }

// Rows that two activation tiles hold: the two planes of 16 rows, or one plane of 32.
template <int kPlanes> constexpr int64_t kRowsTogether = kPlanes == 2 ? kTileRows : 2 * kTileRows;

// Folds the sums of step `s` into the totals. ints [activation tile][weight tile][16][16].
template <int kPlanes> void FinishTiles(const Tile& tile, int64_t s, const int32_t* ints) {
  using Lanes = IntegerLanes;
  constexpr int R = 4;
  const Job& job = *tile.job;
  for (int64_t p = 0; p < kTilePanels; ++p) {
    for (int64_t r = 0; r < kRowsTogether<kPlanes>; r += R) {
      Lanes::Sum<kPlanes> sum[R];
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i) {
        sum[i] = Lanes::Start<kPlanes>(StartOfStep(job, tile.row + r + i, s));
        for (int plane = 0; plane < kPlanes; ++plane) {
          const int64_t activation_tile = kPlanes == 2 ? plane : (r + i) / kTileRows;
          const int32_t* row = ints + (activation_tile * kTilePanels + p) * kSumInts + (r + i) % kTileRows * 16;
          sum[i].plane[plane] = _mm512_add_epi32(sum[i].plane[plane], Lanes::LoadInt(row));
        }
      }
      FinishStep<Lanes, kPlanes, R>(job, tile.panel + p * job.layout.panel_bytes, tile.row + r, s, sum,
                                    tile.total + (r * kTilePanels + p) * kGemmPanel, kTilePanels * kGemmPanel);
    }
  }
}

// kRowsTogether rows of a chunk. `ints` keeps the sums of a step that the chunk cuts.
template <int kPlanes> void MultiplyTiles(const Tile& tile, int64_t tile_k, int32_t* ints) {
  const Job& job = *tile.job;
  const IntegerActivation& activation = job.params->integer;
  const int64_t stride = activation.stride, first = tile.row * stride;
  const int8_t* upper = activation.high + first;
  const int8_t* lower = kPlanes == 2 ? activation.low + first : upper + kTileRows * stride;
  const uint8_t* weights = tile.weights;
  for (int64_t k = tile.k_begin; k < tile.k_end;) {
    const int64_t s = k / job.step, step_end = (s + 1) * job.step, end = Min(step_end, tile.k_end);
    if (k == s * job.step) {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    } else {
      _tile_loadd(0, ints, 64);
      _tile_loadd(1, ints + kSumInts, 64);
      _tile_loadd(2, ints + 2 * kSumInts, 64);
      _tile_loadd(3, ints + 3 * kSumInts, 64);
    }
    for (; k < end; k += tile_k, weights += tile_k / 4 * tile.weights_step) {
      _tile_loadd(6, weights, tile.weights_step);
      _tile_loadd(4, upper + k, stride);
      _tile_dpbsud(0, 4, 6);
      _tile_loadd(7, weights + tile.weights_stride, tile.weights_step);
      _tile_dpbsud(1, 4, 7);
      _tile_loadd(5, lower + k, stride);
      _tile_dpbsud(2, 5, 6);
      _tile_dpbsud(3, 5, 7);
    }
    _tile_stored(0, ints, 64);
    _tile_stored(1, ints + kSumInts, 64);
    _tile_stored(2, ints + 2 * kSumInts, 64);
    _tile_stored(3, ints + 3 * kSumInts, 64);
    if (end == step_end) FinishTiles<kPlanes>(tile, s, ints);
  }
}

// Two panels for the rows [row_begin, row_end).
template <typename Format, int kPlanes>
void ComputeTiled(const Job& job, int64_t row_begin, int64_t row_end, int64_t panel, int64_t tile_k, uint8_t* scratch) {
  constexpr int64_t kRows = kRowsTogether<kPlanes>, kRest = IntegerLanes::kTileRows<kPlanes>;
  alignas(64) float total[kTiledRowBlock * kTilePanels * kGemmPanel];
  alignas(64) int32_t ints[kTiledRowBlock / kRows * 4 * kSumInts], parked[kRows * kTilePanels * kGemmPanel];
  const int64_t rows = row_end - row_begin;
  for (int64_t i = 0; i < rows * kTilePanels * kGemmPanel; ++i) total[i] = 0;
  Tile tile = {.job = &job, .panel = job.params->weight + panel * job.layout.panel_bytes};
  for (int64_t k = 0; k < job.params->problem.k; k = tile.k_end) {
    SetChunk<IntegerLanes, Format, kTilePanels>(job, k, tile, scratch);
    int64_t r = 0;
    for (; r + kRows <= rows; r += kRows) {
      tile.row = row_begin + r;
      tile.total = total + r * kTilePanels * kGemmPanel;
      MultiplyTiles<kPlanes>(tile, tile_k,
                             ints + (job.step > ChunkK(job) ? r / kRows * 4 * kSumInts : 0));  // whole steps: one that stays in L1
    }
    for (int64_t begin = r; r < rows; r += kRest) {
      tile.row = row_begin + r;
      tile.total = total + r * kTilePanels * kGemmPanel;
      tile.parked = parked + (r - begin) * kTilePanels * kGemmPanel;
      DispatchTile<IntegerLanes, kPlanes, kRest, kTilePanels>(tile, Min(kRest, rows - r));
    }
  }
  StorePanels<kTilePanels>(job, row_begin, rows, panel, total);
}

// GemmKernelEntry::run of an AMX row: enough rows by tiles, fewer by the vector loops.
template <typename Format, int kPlanes> void RunTiledGemm(const GemmParams& params) {
  const Job job = MakeJob<Format>(params);
  const int64_t tile_k = TileK(job);
  if (params.m < kRowsTogether<kPlanes> || tile_k == 0) return RunJob<IntegerLanes, Format, kPlanes>(job);
  alignas(64) uint8_t scratch[Format::kUnitK == 4 ? 64 : kChunkK / 4 * kTilePanels * kIntegerUnitBytes];
  Configure(tile_k);
  const int64_t blocks = (params.m + kTiledRowBlock - 1) / kTiledRowBlock;
  const int64_t tiled_end = params.panel_begin + (params.panel_end - params.panel_begin) / kTilePanels * kTilePanels;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t begin = b * params.m / blocks, end = (b + 1) * params.m / blocks;
    for (int64_t panel = params.panel_begin; panel < tiled_end; panel += kTilePanels) {
      ComputeTiled<Format, kPlanes>(job, begin, end, panel, tile_k, scratch);
    }
  }
  _tile_release();
  if (tiled_end == params.panel_end) return;
  GemmParams last = params;  // an odd panel
  last.panel_begin = tiled_end;
  RunJob<IntegerLanes, Format, kPlanes>(MakeJob<Format>(last));
}

}  // namespace
}  // namespace pith
