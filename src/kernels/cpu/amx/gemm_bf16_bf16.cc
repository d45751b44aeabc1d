// Dense bf16 weights by AMX tiles: 16 rows x 16 columns of f32 per tile, 32 k per instruction (tdpbf16ps). Layout: gemm_layout.h, whose
// units of 2 k and 16 columns are the rows of a weight tile.
//
// Arithmetic, the same for every m, tile and panel range: the instruction adds the products of 32 k, in its own order, to the sum so far, k
// ascending; subnormal numbers count as zero, as for vdpbf16ps. Then bias and residual.
#include <immintrin.h>

#include "kernels/cpu/amx/tile_config.h"
#include "kernels/cpu/gemm_layout.h"
#include "kernels/cpu/gemm_prepack.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_bf16_bf16_f32__amx;

namespace {

constexpr int64_t kTileK = 32, kTileRowBytes = 64;
constexpr int64_t kChunkK = 512;      // of weights that stay in the level-1 cache while rows pass
constexpr int64_t kStreamedRows = 32;  // up to here weights are used once, and a panel is one chunk

struct Block {
  const GemmParams* params;
  PanelLayout layout;
  TileRange tiles;
  char* packed;  // [tile][k / 32][row][32] bf16
  float* sums;   // per pair of tiles [activation tile][panel][row][16]
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

// Activation tiles first and, with kActs == 2, first + 1 (or the last one again), times k [k_begin, k_end) of kPanels panels.
template <int kActs, int kPanels>
void MultiplyTiles(const Block& block, int64_t first, const uint8_t* panel, int64_t k_begin, int64_t k_end, float* sums) {
  const int64_t tile_bytes = block.tiles.rows * kTileRowBytes, stride = block.params->problem.k / kTileK * tile_bytes;
  const char* upper = block.packed + first * stride + k_begin / kTileK * tile_bytes;
  const char* lower = upper + (Min(first + 1, block.tiles.count - 1) - first) * stride;
  const uint8_t* weights = panel + k_begin / kTileK * 1024;
  if (k_begin == 0) {
    ZeroSums<kActs, kPanels>();
  } else {
    LoadSums<kActs, kPanels>(sums);
  }
  for (int64_t k = k_begin; k < k_end; k += kTileK, weights += 1024, upper += tile_bytes, lower += tile_bytes) {
    if (first == 0) PrefetchTile<kPanels>(block.layout, panel, weights - panel, 16);
    _tile_loadd(6, weights, 64);
    _tile_loadd(4, upper, kTileRowBytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kPanels == 2) {
      _tile_loadd(7, weights + block.layout.panel_bytes, 64);
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

template <int kActs, int kPanels> void ComputePanels(const Block& block, int64_t panel) {
  const GemmParams& params = *block.params;
  const int64_t k = params.problem.k, chunk = params.m <= kStreamedRows ? k : kChunkK;
  const uint8_t* weights = params.weight + panel * block.layout.panel_bytes;
  for (int64_t begin = 0; begin < k; begin += chunk) {
    for (int64_t t = 0; t < block.tiles.count; t += kActs) {
      MultiplyTiles<kActs, kPanels>(block, t, weights, begin, Min(begin + chunk, k), block.sums + t / kActs * kUnitSums);
    }
  }
  StoreTiles<kPanels>(params, block.tiles, panel, [&](int64_t t, int64_t r, int64_t p) {
    return block.sums + t / kActs * kUnitSums + (t % kActs * 2 + p) * kTileSums + r * 16;
  });
}

template <int kActs> void ComputeBlock(const Block& block) {
  int64_t panel = block.params->panel_begin;
  for (; panel + 2 <= block.params->panel_end; panel += 2) ComputePanels<kActs, 2>(block, panel);
  if (panel < block.params->panel_end) ComputePanels<kActs, 1>(block, panel);
}

void Run(const GemmParams& params) {
  alignas(64) char packed[kPackedBytes];
  alignas(64) float sums[kTiledRowBlock / kTileRows * kUnitSums];
  Configure(kTileRowBytes, Min(params.m, kTileRows));
  ForTileRanges(params.m, 2 * params.problem.k, [&](const TileRange& range) {
    const Block block = {.params = &params, .layout = DenseLayout(params.problem), .tiles = range, .packed = packed, .sums = sums};
    PackActivations(block);
    range.count == 1 ? ComputeBlock<1>(block) : ComputeBlock<2>(block);
  });
  _tile_release();
}

const char* CanImplement(const GemmProblem& problem) {
  if (problem.k % kTileK != 0) return "k % 32 != 0";
  if (problem.k > kPackedBytes / (2 * kTileRows)) return "k exceeds 32768";
  return CanPrepackDense(problem);
}

}  // namespace

const GemmKernelEntry gemm_bf16_bf16_f32__amx = {
    .name = "gemm_bf16_bf16_f32__amx",
    .weight = GemmWeight::kBf16,
    .activation = GemmActivation::kBf16,
    .accumulator = "f32",
    .isa = KernelIsa::kAmx,
    .can_implement = CanImplement,
    .prepack_bytes = DensePrepackBytes,
    .prepack = PrepackDense,
    .run = Run,
    .read_row = ReadDenseRow,
};

}  // namespace pith
