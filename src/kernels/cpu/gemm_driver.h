// The loops of the vector GEMM rows, written once: an ISA folder supplies its registers (`Lanes`, in its gemm_lanes.h) and how a unit of
// each weight layout becomes planes of multiplicands (`Format`, in its gemm_<act>_<weight>.cc).
//
// Arithmetic, the same for every m, tile and panel range. Every output is one lane; per group of k, ascending:
//   acc   = 0;  acc = dot(acc, plane, activation) for every plane of the group, k ascending  (a plane is 2 k for bf16 pairs, 1 k for f32)
//   none:        total = fma(acc, scale, total)
//   zero point:  total = fma(fma(sum_a, center - zero_point, acc), scale, total)
//   min:         total = fma(sum_a, scale * center - min, fma(acc, scale, total))
// where planes hold code - center exactly (center = 2^(bits-1)) and sum_a is the group's sum of activations, in an order that depends on
// the group size alone. Dense weights are one group of k without a scale: total = acc. Then r = total (* activation scale of the row)
// (+ bias), each rounded, and out = r or out + r.
//
// Shape of the loops: up to Lanes::kDirectRows rows decode weights in registers, once for all rows. More rows go in blocks of up to
// kRowBlock: a chunk of k of a few panels is decoded to a scratch buffer that stays in L1, then every tile of rows multiplies with it.
// Accumulators live in registers inside a tile and are parked on the stack between chunks of k, so chunks never show in the result.
//
// Include in one translation unit of an ISA folder only: everything is in an anonymous namespace, compiled with that folder's flags.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/gemm_layout.h"
#include "kernels/cpu/gemm_prefetch.h"
#include "kernels/cpu/gemm_store.h"
#include "kernels/gemm.h"

namespace pith {
namespace {

constexpr int64_t kRowBlock = 64;
constexpr int64_t kMaxSums = 8 * kMaxOffsetGroups;  // sum_a of a row block: at least 8 rows at the largest number of groups

// What the tiles of a row block share.
template <typename Lanes> struct RowBlock {
  const GemmParams* params;
  PanelLayout layout;
  int64_t row_begin, rows;
  const float* sums;                      // [rows][groups]
  typename Lanes::Activation* converted;  // activations of one chunk, for ISAs that convert them
  int64_t converted_k = -1;               // the chunk it holds
};

// One tile's work: rows x panels over the chunk [k_begin, k_end).
template <typename Lanes> struct TileArgs {
  const PanelLayout* layout;
  const uint8_t* panel;                          // the first one; they lie one after the other
  const uint8_t* scratch;                        // decoded planes of the chunk, panels interleaved; or null
  const typename Lanes::Activation* activation;  // row 0, at k_begin
  int64_t activation_stride;
  int64_t k_begin, k_end;
  const float* sums;  // row 0
  float* acc;         // [rows][panels][16] parked accumulators of the current group
  float* total;       // [rows][panels][16]
};

template <typename Lanes>
PITH_ALWAYS_INLINE typename Lanes::Vec LoadGroupValue(const uint8_t* base, const PanelLayout& layout, int64_t group) {
  switch (layout.scale) {
    case GemmScale::kF16: return Lanes::LoadF16(base + group * kGemmPanel * 2);
    case GemmScale::kBf16: return Lanes::LoadBf16(base + group * kGemmPanel * 2);
    case GemmScale::kI8: return Lanes::Multiply(Lanes::LoadS8(base + group * kGemmPanel), Lanes::LoadF16(base + UnitOffset(layout, group)));
    case GemmScale::kF32: break;
  }
  return Lanes::Load(reinterpret_cast<const float*>(base + group * kGemmPanel * 4));
}

// Folds the finished accumulators of group `g` into the totals.
template <typename Lanes, int R, int P>
PITH_ALWAYS_INLINE void FinishGroup(const TileArgs<Lanes>& args, int64_t g, typename Lanes::Vec (&acc)[R][P]) {
  using Vec = typename Lanes::Vec;
  const PanelLayout& layout = *args.layout;
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p) {
    const uint8_t* panel = args.panel + p * layout.panel_bytes;
    const Vec scale = LoadGroupValue<Lanes>(panel, layout, g);
    float* total = args.total + p * kGemmPanel;
    if (layout.offset == GroupOffset::kNone) {
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r, total += P * kGemmPanel) Lanes::Store(total, Lanes::Fma(acc[r][p], scale, Lanes::Load(total)));
    } else if (layout.offset == GroupOffset::kZeroPoint) {
      const Vec zero = Lanes::LoadU8(panel + layout.offset_begin + g * kGemmPanel);
      const Vec shift = Lanes::Subtract(Lanes::Set(static_cast<float>(layout.center)), zero);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r, total += P * kGemmPanel) {
        const Vec sum = Lanes::Set(args.sums[r * layout.groups + g]);
        Lanes::Store(total, Lanes::Fma(Lanes::Fma(sum, shift, acc[r][p]), scale, Lanes::Load(total)));
      }
    } else {
      const Vec min = LoadGroupValue<Lanes>(panel + layout.offset_begin, layout, g);
      const Vec offset = Lanes::FusedMultiplySubtract(scale, Lanes::Set(static_cast<float>(layout.center)), min);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r, total += P * kGemmPanel) {
        const Vec sum = Lanes::Set(args.sums[r * layout.groups + g]);
        Lanes::Store(total, Lanes::Fma(sum, offset, Lanes::Fma(acc[r][p], scale, Lanes::Load(total))));
      }
    }
  }
}

// Multiplies `count` planes of a decoded unit of panel `p` with every row.
template <typename Lanes, typename Format, int R, int P>
PITH_ALWAYS_INLINE void MultiplyUnit(typename Format::Unit unit, int count, int p, const typename Lanes::Activation* activation,
                                     int64_t stride, typename Lanes::Vec (&acc)[R][P]) {
  // Broadcasts come from memory again for every panel: kept in registers for the next one they would push out accumulators.
  if constexpr (R * (Format::kUnitK / Lanes::kPlaneK) > 8) asm volatile("" : "+r"(activation));
#pragma GCC unroll 8
  for (int t = 0; t < count; ++t) {
    const typename Lanes::Plane plane = Format::Decode(unit, t);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) acc[r][p] = Lanes::Dot(acc[r][p], plane, activation + r * stride + t * Lanes::kPlaneK);
  }
}

// Weights decoded in registers: `length` k of group `g` from k on, which starts a unit.
template <typename Lanes, typename Format, int R, int P>
PITH_ALWAYS_INLINE void AccumulateCodes(const TileArgs<Lanes>& args, int64_t g, int64_t k, int64_t length,
                                        typename Lanes::Vec (&acc)[R][P]) {
  const int64_t position = args.layout->code_begin + g * args.layout->group_bytes +
                           (k - g * args.layout->group_size) / Format::kUnitK * Format::kUnitBytes;
  const typename Lanes::Activation* activation = args.activation + (k - args.k_begin);
  const int64_t stride = args.activation_stride;
  const uint8_t* code = args.panel + position;
  const int64_t panel_bytes = args.layout->panel_bytes;
  const int64_t units = length / Format::kUnitK;
#pragma GCC unroll 2
  for (int64_t u = 0; u < units; ++u, activation += Format::kUnitK, code += Format::kUnitBytes) {
    PrefetchAhead<P>(*args.layout, args.panel, code - args.panel);
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      MultiplyUnit<Lanes, Format, R, P>(Format::Load(code + p * panel_bytes), Format::kUnitK / Lanes::kPlaneK, p, activation, stride, acc);
    }
  }
  const int64_t rest = length - units * Format::kUnitK;
  if (rest == 0) return;
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p) {
    const typename Format::Unit unit = Format::Load(code + p * panel_bytes);
    if (rest >= Lanes::kPlaneK) {
      MultiplyUnit<Lanes, Format, R, P>(unit, static_cast<int>(rest / Lanes::kPlaneK), p, activation, stride, acc);
    } else if constexpr (Format::kDense && Lanes::kPlaneK == 2) {  // odd k: one where a plane has two
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) acc[r][p] = Lanes::DotLast(acc[r][p], Format::Decode(unit, 0), activation + r * stride);
    }
  }
}

// Weights decoded before: `length` k from k on, in planes that fill completely.
template <typename Lanes, int R, int P>
PITH_ALWAYS_INLINE void AccumulateScratch(const TileArgs<Lanes>& args, int64_t k, int64_t length, typename Lanes::Vec (&acc)[R][P]) {
  const typename Lanes::Activation* activation = args.activation + (k - args.k_begin);
  const int64_t stride = args.activation_stride;
  const uint8_t* plane_bytes = args.scratch + (k - args.k_begin) / Lanes::kPlaneK * P * Lanes::kPlaneBytes;
#pragma GCC unroll 2
  for (int64_t i = 0; i < length; i += Lanes::kPlaneK, activation += Lanes::kPlaneK, plane_bytes += P * Lanes::kPlaneBytes) {
    typename Lanes::Plane plane[P];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) plane[p] = Lanes::LoadPlane(plane_bytes + p * Lanes::kPlaneBytes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) acc[r][p] = Lanes::Dot(acc[r][p], plane[p], activation + r * stride);
    }
  }
}

// A function of its own, so that every shape gets its own register allocation.
template <typename Lanes, typename Format, bool kFromScratch, int R, int P>
__attribute__((noinline)) void MultiplyTile(const TileArgs<Lanes>& args) {
  typename Lanes::Vec acc[R][P];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) acc[r][p] = Lanes::Load(args.acc + (r * P + p) * kGemmPanel);
  }
  const int64_t group_size = args.layout->group_size;
  int64_t g = args.k_begin / group_size;
  for (int64_t k = args.k_begin; k < args.k_end;) {
    const int64_t group_end = (g + 1) * group_size;
    const int64_t end = Min(group_end, args.k_end);
    if constexpr (kFromScratch) {
      AccumulateScratch<Lanes, R, P>(args, k, end - k, acc);
    } else {
      AccumulateCodes<Lanes, Format, R, P>(args, g, k, end - k, acc);
    }
    if constexpr (!Format::kDense) {
      if (end == group_end) {
        FinishGroup<Lanes, R, P>(args, g, acc);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
          for (int p = 0; p < P; ++p) acc[r][p] = Lanes::Zero();
        }
      }
    }
    k = end;
    ++g;
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) Lanes::Store(args.acc + (r * P + p) * kGemmPanel, acc[r][p]);
  }
}

// The end of the chunk of k that starts at k: whole groups, or a part of one larger group that ends with a unit.
template <typename Format> PITH_ALWAYS_INLINE int64_t ChunkEnd(const PanelLayout& layout, int64_t k_size, int64_t k, int64_t chunk) {
  if (layout.group_size <= chunk) return Min(k + chunk / layout.group_size * layout.group_size, k_size);
  const int64_t group_end = (k / layout.group_size + 1) * layout.group_size;
  return Min(k + chunk / Format::kUnitK * Format::kUnitK, group_end);
}

// Points args at the activations of [k_begin, k_end), converted when the ISA wants them so.
template <typename Lanes>
PITH_ALWAYS_INLINE void SetActivations(RowBlock<Lanes>* block, int64_t k_begin, int64_t k_end, TileArgs<Lanes>* args) {
  const GemmParams& params = *block->params;
  const uint16_t* activation = params.activation + block->row_begin * params.activation_stride + k_begin;
  args->k_begin = k_begin;
  args->k_end = k_end;
  if constexpr (!Lanes::kConvertsActivations) {
    args->activation = activation;
    args->activation_stride = params.activation_stride;
  } else {
    const int64_t length = k_end - k_begin;
    if (block->converted_k != k_begin) {
      for (int64_t r = 0; r < block->rows; ++r)
        Lanes::Convert(activation + r * params.activation_stride, length, block->converted + r * length);
      block->converted_k = k_begin;
    }
    args->activation = block->converted;
    args->activation_stride = length;
  }
}

template <typename Lanes, typename Format, int R, int P> PITH_ALWAYS_INLINE void ComputeDirect(RowBlock<Lanes>* block, int64_t panel) {
  const GemmParams& params = *block->params;
  alignas(64) float acc[R * P * kGemmPanel] = {}, total[R * P * kGemmPanel] = {};
  TileArgs<Lanes> args;
  args.layout = &block->layout;
  args.panel = params.weight + panel * block->layout.panel_bytes;
  args.sums = block->sums;
  args.acc = acc;
  args.total = total;
  PrefetchScales<P>(block->layout, args.panel);
  for (int64_t k = 0; k < params.problem.k;) {
    const int64_t end = ChunkEnd<Format>(block->layout, params.problem.k, k, Lanes::kDirectChunkK);
    SetActivations(block, k, end, &args);
    MultiplyTile<Lanes, Format, false, R, P>(args);
    k = end;
  }
  for (int r = 0; r < R; ++r) {
    for (int p = 0; p < P; ++p) {
      StorePanel(params, block->row_begin + r, panel + p, (Format::kDense ? acc : total) + (r * P + p) * kGemmPanel);
    }
  }
}

template <typename Lanes, typename Format, int R> void RunDirect(RowBlock<Lanes>* block) {
  constexpr int P = Lanes::DirectPanels(R);
  int64_t panel = block->params->panel_begin;
  const int64_t end = block->params->panel_end;
  for (; panel + P <= end; panel += P) ComputeDirect<Lanes, Format, R, P>(block, panel);
  if constexpr (P > 2) {
    for (; panel + 2 <= end; panel += 2) ComputeDirect<Lanes, Format, R, 2>(block, panel);
  }
  if constexpr (P > 1) {
    for (; panel < end; ++panel) ComputeDirect<Lanes, Format, R, 1>(block, panel);
  }
}

// Calls RunDirect for the block's number of rows, at most Lanes::kDirectRows.
template <typename Lanes, typename Format, int R> void DispatchDirect(RowBlock<Lanes>* block) {
  if (block->rows == R) return RunDirect<Lanes, Format, R>(block);
  if constexpr (R > 1) DispatchDirect<Lanes, Format, R - 1>(block);
}

// Decodes [k_begin, k_end) of the P panels into planes, panels interleaved. Groups start with a unit, so planes are dense in k.
template <typename Lanes, typename Format, int P> void DecodeChunk(const TileArgs<Lanes>& args, uint8_t* scratch) {
  const PanelLayout& layout = *args.layout;
  for (int64_t k = args.k_begin; k < args.k_end;) {
    const int64_t g = k / layout.group_size;
    const int64_t end = Min((g + 1) * layout.group_size, args.k_end);
    int64_t position = layout.code_begin + g * layout.group_bytes + (k - g * layout.group_size) / Format::kUnitK * Format::kUnitBytes;
    for (int64_t i = k; i < end; i += Format::kUnitK, position += Format::kUnitBytes) {
      PrefetchAhead<P>(layout, args.panel, position);
      uint8_t* planes = scratch + (i - args.k_begin) / Lanes::kPlaneK * P * Lanes::kPlaneBytes;
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        const typename Format::Unit unit = Format::Load(args.panel + p * layout.panel_bytes + position);
#pragma GCC unroll 8
        for (int t = 0; t < Format::kUnitK / Lanes::kPlaneK; ++t) {
          if (i + t * Lanes::kPlaneK >= end) break;
          Lanes::StorePlane(planes + (t * P + p) * Lanes::kPlaneBytes, Format::Decode(unit, t));
        }
      }
    }
    k = end;
  }
}

// Runs the tile of exactly `rows` rows, at most R.
template <typename Lanes, typename Format, int R, int P> void DispatchTile(const TileArgs<Lanes>& args, int64_t rows) {
  if (rows == R) return MultiplyTile<Lanes, Format, !Format::kDecodeIsLoad, R, P>(args);
  if constexpr (R > 1) DispatchTile<Lanes, Format, R - 1, P>(args, rows);
}

// P panels from `panel` on, for all rows of the block.
template <typename Lanes, typename Format, int P> void ComputeBlocked(RowBlock<Lanes>* block, int64_t panel, uint8_t* scratch) {
  const GemmParams& params = *block->params;
  alignas(64) float acc[kRowBlock * P * kGemmPanel], total[kRowBlock * P * kGemmPanel];
  const int64_t state = block->rows * P * kGemmPanel;
  for (int64_t i = 0; i < state; ++i) acc[i] = total[i] = 0.0f;
  TileArgs<Lanes> args;
  args.layout = &block->layout;
  args.panel = params.weight + panel * block->layout.panel_bytes;
  args.scratch = scratch;
  PrefetchScales<P>(block->layout, args.panel);
  const int64_t tiles = (block->rows + Lanes::kTileRows - 1) / Lanes::kTileRows;
  for (int64_t k = 0; k < params.problem.k;) {
    const int64_t end = ChunkEnd<Format>(block->layout, params.problem.k, k,
                                         Format::kDecodeIsLoad ? Lanes::kDirectChunkK : Lanes::kScratchChunkK);
    SetActivations(block, k, end, &args);
    if constexpr (!Format::kDecodeIsLoad) DecodeChunk<Lanes, Format, P>(args, scratch);
    const typename Lanes::Activation* activation = args.activation;
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t row = t * block->rows / tiles, rows = (t + 1) * block->rows / tiles - row;
      args.activation = activation + row * args.activation_stride;
      args.sums = block->sums + row * block->layout.groups;
      args.acc = acc + row * P * kGemmPanel;
      args.total = total + row * P * kGemmPanel;
      DispatchTile<Lanes, Format, Lanes::kTileRows, P>(args, rows);
    }
    k = end;
  }
  for (int64_t r = 0; r < block->rows; ++r) {
    for (int64_t p = 0; p < P; ++p) {
      StorePanel(params, block->row_begin + r, panel + p, (Format::kDense ? acc : total) + (r * P + p) * kGemmPanel);
    }
  }
}

template <typename Lanes, typename Format> void RunBlocked(RowBlock<Lanes>* block) {
  constexpr int P = Lanes::kTilePanels;
  alignas(64) uint8_t scratch[Lanes::kScratchChunkK / Lanes::kPlaneK * P * Lanes::kPlaneBytes];
  int64_t panel = block->params->panel_begin;
  const int64_t end = block->params->panel_end;
  for (; panel + P <= end; panel += P) ComputeBlocked<Lanes, Format, P>(block, panel, scratch);
  if constexpr (P > 2) {
    for (; panel + 2 <= end; panel += 2) ComputeBlocked<Lanes, Format, 2>(block, panel, scratch);
  }
  if constexpr (P > 1) {
    for (; panel < end; ++panel) ComputeBlocked<Lanes, Format, 1>(block, panel, scratch);
  }
}

// Sums of the activations of every group of the block's rows.
template <typename Lanes> void ComputeSums(const RowBlock<Lanes>& block, float* sums) {
  const GemmParams& params = *block.params;
  for (int64_t r = 0; r < block.rows; ++r) {
    const uint16_t* row = params.activation + (block.row_begin + r) * params.activation_stride;
    for (int64_t g = 0; g < block.layout.groups; ++g) {
      sums[r * block.layout.groups + g] = Lanes::Sum(row + g * block.layout.group_size, block.layout.group_size);
    }
  }
}

// GemmKernelEntry::run of a row: layout of the problem, then row blocks of nearly equal size.
template <typename Lanes, typename Format> void RunGemm(const GemmParams& params) {
  alignas(64) float sums[Format::kDense ? 1 : kMaxSums];
  alignas(64) typename Lanes::Activation converted[Lanes::kConvertedSize];
  RowBlock<Lanes> block{&params, Format::Layout(params.problem), 0, 0, sums, converted};
  const bool needs_sums = block.layout.offset != GroupOffset::kNone;
  const int64_t max_rows = needs_sums ? Min(kRowBlock, kMaxSums / block.layout.groups) : kRowBlock;
  const int64_t blocks = (params.m + max_rows - 1) / max_rows;
  for (int64_t b = 0; b < blocks; ++b) {
    block.row_begin = b * params.m / blocks;
    block.rows = (b + 1) * params.m / blocks - block.row_begin;
    block.converted_k = -1;
    if (needs_sums) ComputeSums(block, sums);
    if (block.rows <= Lanes::kDirectRows) {
      DispatchDirect<Lanes, Format, Lanes::kDirectRows>(&block);
    } else {
      RunBlocked<Lanes, Format>(&block);
    }
  }
}

}  // namespace
}  // namespace pith
