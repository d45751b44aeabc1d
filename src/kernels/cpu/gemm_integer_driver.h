// The loops of the integer GEMM rows, written once: an ISA folder supplies its registers (`IntegerLanes`, in its gemm_integer_lanes.h).
//
// Arithmetic, the same for every instruction set, m, tile and panel range. Steps s of k ascending (a step is the smaller of the two
// group sizes), q the activation's integer, sum_q its sum over the step, g and a the weight group and the activation group of the step:
//   value = float(sum_k q (code - zero))        exact in int32; zero = 2^(bits-1), the zero point, or 0 where there are mins
//   total = fma(value * activation_scale[a], weight_scale[g], total)
//   min:    total = fma(-(float(sum_q) * activation_scale[a]), min[g], total)
// then r = total (+ bias), out = r or out + r. Because the sums are exact, accumulators may be split and parked at will.
//
// Shape of the loops: up to kDirectRows rows decode weights in registers, once for all rows, panel after panel (one stream of memory).
// More rows go in blocks of up to kRowBlock: a chunk of k of a few panels is decoded to a scratch buffer that stays in L1 (bytes need no
// decoding and are read in place), then every tile of rows multiplies with it.
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

constexpr int64_t kRowBlock = 96;
constexpr int64_t kChunkK = 256;  // of decoded weights; a multiple of every int16 step's unit, and at least one such step

// Everything of a call that tiles share.
struct Job {
  const GemmParams* params;
  PanelLayout layout;
  int64_t step, steps;
  int64_t steps_per_group, steps_per_scale;  // weight group, activation group
  int64_t groups_of_scale;                   // activation scales of a row

  PITH_ALWAYS_INLINE uint32_t center() const { return static_cast<uint32_t>(layout.center); }
};

// The weight group and the activation group that a step lies in.
struct StepGroups {
  int64_t weight, scale;
};
PITH_ALWAYS_INLINE StepGroups GroupsOf(const Job& job, int64_t s) {  // mostly one step to a group: no division
  return {.weight = job.steps_per_group == 1 ? s : s / job.steps_per_group,
          .scale = job.steps_per_scale == 1 ? s : s / job.steps_per_scale};
}

// One tile: rows [row, row + R) of the call, P neighbouring panels.
struct Tile {
  const Job* job;
  const uint8_t* panel;              // the first one
  const uint8_t* weights = nullptr;  // codes at k_begin as bytes, 64 bytes per 4 k of a panel
  int64_t weights_step = 0;          // bytes from there to the next 4 k
  int64_t weights_stride = 0;        // bytes from a panel to the next
  int64_t row = 0;
  int64_t k_begin = 0, k_end = 0;
  int32_t* parked = nullptr;  // [R][P][16] sums of a step that the chunk cuts
  float* total = nullptr;     // [R][P][16]
};

// The activations of R rows of a tile, four k at a time. One pointer for three rows: the others are a stride or two away, which is a form
// of address the CPU has, so that eight rows of two planes do not run out of registers.
template <typename Lanes, int kPlanes, int R> struct Rows {
  static constexpr int kBases = (R + 2) / 3;
  const int8_t* base[kPlanes][kBases];
  int64_t stride;

  PITH_ALWAYS_INLINE Rows(const Job& job, int64_t row, int64_t k) : stride(job.params->integer.stride) {
    const IntegerActivation& activation = job.params->integer;
#pragma GCC unroll 4
    for (int b = 0; b < kBases; ++b) {
      base[0][b] = activation.high + (row + 3 * b) * stride + k;
      if constexpr (kPlanes == 2) base[1][b] = activation.low + (row + 3 * b) * stride + k;
    }
  }
  PITH_ALWAYS_INLINE auto Broadcast(int r, int64_t offset) const {
    return Lanes::template Broadcast<kPlanes>(base[0][r / 3] + (r % 3) * stride + offset,
                                              base[kPlanes - 1][r / 3] + (r % 3) * stride + offset);
  }
  PITH_ALWAYS_INLINE void Advance(int64_t k) {
#pragma GCC unroll 4
    for (int b = 0; b < kBases; ++b) {
      base[0][b] += k;
      if constexpr (kPlanes == 2) base[1][b] += k;
    }
  }
};

// Folds the finished sums of step `s` of one panel into the totals of R rows, `total_stride` floats apart.
template <typename Lanes, int kPlanes, int R>
PITH_ALWAYS_INLINE void FinishStep(const Job& job, const uint8_t* panel, int64_t row, int64_t s,
                                   typename Lanes::template Sum<kPlanes> (&sum)[R], float* total, int64_t total_stride) {
  using Float = typename Lanes::Float;
  const PanelLayout& layout = job.layout;
  const IntegerActivation& activation = job.params->integer;
  const auto [g, a_group] = GroupsOf(job, s);
  const Float scale = Lanes::LoadScale(panel, layout, g);
  const float* activation_scale = activation.scale + row * job.groups_of_scale + a_group;
  const int32_t* activation_sum = activation.sum + row * job.steps + s;
  if (layout.offset == GroupOffset::kMin) {
    const Float min = Lanes::LoadScale(panel + layout.offset_begin, layout, g);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const float a = activation_scale[r * job.groups_of_scale];
      const Float value = Lanes::Multiply(Lanes::ToFloat(Lanes::Value(sum[r])), Lanes::Set(a));
      const Float shift = Lanes::Set(-(static_cast<float>(activation_sum[r * job.steps]) * a));
      float* out = total + r * total_stride;
      Lanes::Store(out, Lanes::Fma(shift, min, Lanes::Fma(value, scale, Lanes::Load(out))));
    }
    return;
  }
  typename Lanes::Int zero;
  const bool zero_points = layout.offset == GroupOffset::kZeroPoint;
  if (zero_points) zero = Lanes::LoadU8(panel + layout.offset_begin + g * kGemmPanel);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    typename Lanes::Int value = Lanes::Value(sum[r]);
    if (zero_points) value = Lanes::SubtractProduct(value, zero, activation_sum[r * job.steps]);
    const Float scaled = Lanes::Multiply(Lanes::ToFloat(value), Lanes::Set(activation_scale[r * job.groups_of_scale]));
    float* out = total + r * total_stride;
    Lanes::Store(out, Lanes::Fma(scaled, scale, Lanes::Load(out)));
  }
}

// What a step's sum starts from, so that it ends as sum q (code - 2^(bits-1)) where there is neither zero point nor min.
PITH_ALWAYS_INLINE int32_t StartOfStep(const Job& job, int64_t row, int64_t s) {
  if (job.layout.offset != GroupOffset::kNone) return 0;
  const uint32_t sum = static_cast<uint32_t>(job.params->integer.sum[row * job.steps + s]);
  return static_cast<int32_t>(0u - sum * job.center());
}

// Writes rows [row, row + rows) of P panels from their totals [rows][P][16].
template <int P> void StorePanels(const Job& job, int64_t row, int64_t rows, int64_t panel, const float* total) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int p = 0; p < P; ++p) StorePanel(*job.params, row + r, panel + p, total + (r * P + p) * kGemmPanel);
  }
}

// ---- Few rows: weights decoded in registers.

// Units of step `s` of P panels times R rows. Units of two registers get two chains of sums where few rows would leave multipliers waiting.
template <typename Lanes, typename Format, int kPlanes, int R, int P>
PITH_ALWAYS_INLINE void DirectStep(const Job& job, const uint8_t* panel, int64_t row, int64_t s, float* total) {
  constexpr int kChains = Format::kUnitK == 8 && R * P * Lanes::template kSums<kPlanes> <= Lanes::kChainSums ? 2 : 1;
  using Sum = typename Lanes::template Sum<kPlanes>;
  Sum sum[P][kChains][R];
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      sum[p][0][r] = Lanes::template Start<kPlanes>(StartOfStep(job, row + r, s));
      if constexpr (kChains == 2) sum[p][1][r] = Lanes::template Start<kPlanes>(0);
    }
  }
  Rows<Lanes, kPlanes, R> rows(job, row, s * job.step);
  const uint8_t* code = panel + job.layout.code_begin + s * job.step / Format::kUnitK * kIntegerUnitBytes;
  const int64_t units = job.step / Format::kUnitK;
  const int64_t panel_bytes = job.layout.panel_bytes;
  for (int64_t u = 0; u < units; ++u, code += kIntegerUnitBytes, rows.Advance(Format::kUnitK)) {
    typename Lanes::Weights weights[P][Format::kUnitK / 4];
    PrefetchAhead<P>(job.layout, panel, code - panel);
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) Format::template Decode<Lanes>(code + p * panel_bytes, weights[p]);
#pragma GCC unroll 2
    for (int t = 0; t < Format::kUnitK / 4; ++t) {
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const auto multiplicand = rows.Broadcast(r, 4 * t);
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) {
          Lanes::Accumulate(sum[p][t % kChains][r], weights[p][t], multiplicand);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p) {
    if constexpr (kChains == 2) {
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) sum[p][0][r] = Lanes::Add(sum[p][0][r], sum[p][1][r]);
    }
    FinishStep<Lanes, kPlanes, R>(job, panel + p * panel_bytes, row, s, sum[p][0], total + p * kGemmPanel, P * kGemmPanel);
  }
}

// A function of its own, so that every shape gets its own register allocation.
template <typename Lanes, typename Format, int kPlanes, int R, int P>
__attribute__((noinline)) void ComputeDirect(const Job& job, int64_t row, int64_t panel) {
  alignas(64) float total[R * P * kGemmPanel] = {};
  const uint8_t* begin = job.params->weight + panel * job.layout.panel_bytes;
  PrefetchScales<P>(job.layout, begin);
  float* sums = total;
  asm volatile("" : "+r"(sums) : : "memory");  // totals stay in memory: registers are for the sums of a step
  for (int64_t s = 0; s < job.steps; ++s) DirectStep<Lanes, Format, kPlanes, R, P>(job, begin, row, s, sums);
  StorePanels<P>(job, row, R, panel, total);
}

template <typename Lanes, typename Format, int kPlanes, int R>
void DispatchDirect(const Job& job, int64_t row, int64_t rows, int64_t panel, int64_t panels) {
  if constexpr (R > 1) {
    if (rows < R) return DispatchDirect<Lanes, Format, kPlanes, R - 1>(job, row, rows, panel, panels);
  }
  constexpr int P = Lanes::DirectPanels(R * Lanes::template kSums<kPlanes>);
  if constexpr (P > 1) {
    if (panels == P) return ComputeDirect<Lanes, Format, kPlanes, R, P>(job, row, panel);
  }
  for (int64_t p = 0; p < panels; ++p) ComputeDirect<Lanes, Format, kPlanes, R, 1>(job, row, panel + p);
}

// All rows, a few panels at a time: rows beyond the first kDirectRows find the panels in cache.
template <typename Lanes, typename Format, int kPlanes> void RunDirect(const Job& job) {
  const GemmParams& params = *job.params;
  constexpr int64_t kRows = Lanes::template kDirectRows<kPlanes>;
  const int64_t passes = (params.m + kRows - 1) / kRows;
  const int64_t rows = (params.m + passes - 1) / passes;
  const int64_t together = Lanes::DirectPanels(static_cast<int>(rows) * Lanes::template kSums<kPlanes>);
  for (int64_t panel = params.panel_begin; panel < params.panel_end; panel += together) {
    const int64_t panels = Min(together, params.panel_end - panel);
    for (int64_t pass = 0; pass < passes; ++pass) {
      const int64_t begin = pass * params.m / passes, end = (pass + 1) * params.m / passes;
      DispatchDirect<Lanes, Format, kPlanes, Lanes::template kDirectRows<kPlanes>>(job, begin, end - begin, panel, panels);
    }
  }
}

// ---- Many rows: weights decoded to scratch, or read where they lie.

template <typename Lanes, int kPlanes, int R, int P> __attribute__((noinline)) void MultiplyTile(const Tile& tile) {
  using Sum = typename Lanes::template Sum<kPlanes>;
  const Job& job = *tile.job;
  Rows<Lanes, kPlanes, R> rows(job, tile.row, tile.k_begin);
  const uint8_t* weights = tile.weights;
  for (int64_t k = tile.k_begin; k < tile.k_end;) {
    const int64_t s = k / job.step, step_end = (s + 1) * job.step;
    const int64_t end = Min(step_end, tile.k_end);
    Sum sum[P][R];
    const bool resumes = k != s * job.step;
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Sum start = Lanes::template Start<kPlanes>(resumes ? 0 : StartOfStep(job, tile.row + r, s));
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) sum[p][r] = start;
    }
    for (; k < end; k += 4, rows.Advance(4), weights += tile.weights_step) {
      typename Lanes::Weights w[P];
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) w[p] = Lanes::LoadWeights(weights + p * tile.weights_stride);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const auto multiplicand = rows.Broadcast(r, 0);
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) Lanes::Accumulate(sum[p][r], w[p], multiplicand);
      }
    }
    if (resumes || end < step_end) {  // one plane only: steps of int16 activations fit a chunk
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
          int32_t* parked = tile.parked + (r * P + p) * kGemmPanel;
          if (resumes) sum[p][r] = Lanes::AddInt(sum[p][r], Lanes::LoadInt(parked));
          if (end < step_end) Lanes::StoreInt(parked, Lanes::Value(sum[p][r]));
        }
      }
    }
    if (end == step_end) {
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        FinishStep<Lanes, kPlanes, R>(job, tile.panel + p * job.layout.panel_bytes, tile.row, s, sum[p], tile.total + p * kGemmPanel,
                                      P * kGemmPanel);
      }
    }
  }
}

template <typename Lanes, int kPlanes, int R, int P> void DispatchTile(const Tile& tile, int64_t rows) {
  if (rows == R) return MultiplyTile<Lanes, kPlanes, R, P>(tile);
  if constexpr (R > 1) DispatchTile<Lanes, kPlanes, R - 1, P>(tile, rows);
}

// Codes [k_begin, k_end) of P panels as bytes, panels interleaved unit by unit.
template <typename Lanes, typename Format, int P> void DecodeChunk(const Job& job, const Tile& tile, uint8_t* scratch) {
  const uint8_t* code = tile.panel + job.layout.code_begin + tile.k_begin / Format::kUnitK * kIntegerUnitBytes;
  if (tile.k_begin == 0) PrefetchScales<P>(job.layout, tile.panel);
  for (int64_t k = tile.k_begin; k < tile.k_end; k += Format::kUnitK, code += kIntegerUnitBytes) {
    PrefetchAhead<P>(job.layout, tile.panel, code - tile.panel);
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      typename Lanes::Weights weights[Format::kUnitK / 4];
      Format::template Decode<Lanes>(code + p * job.layout.panel_bytes, weights);
      for (int t = 0; t < Format::kUnitK / 4; ++t) Lanes::StoreWeights(scratch + (t * P + p) * kIntegerUnitBytes, weights[t]);
    }
    scratch += Format::kUnitK / 4 * P * kIntegerUnitBytes;
  }
}

// k per chunk of at most `largest`: whole steps where they fit.
PITH_ALWAYS_INLINE int64_t ChunkK(const Job& job, int64_t largest) { return job.step <= largest ? largest / job.step * job.step : largest; }

// Moves a tile to the chunk of `chunk` k that begins at `k`, with its weights as bytes: decoded to scratch, or where they lie.
template <typename Lanes, typename Format, int P> void SetChunk(const Job& job, int64_t k, int64_t chunk, Tile& tile, uint8_t* scratch) {
  tile.k_begin = k;
  tile.k_end = Min(k + chunk, job.params->problem.k);
  if constexpr (Format::kUnitK == 4) {
    tile.weights = tile.panel + job.layout.code_begin + k / 4 * kIntegerUnitBytes;
    tile.weights_step = kIntegerUnitBytes;
    tile.weights_stride = job.layout.panel_bytes;
  } else {
    DecodeChunk<Lanes, Format, P>(job, tile, scratch);
    tile.weights = scratch;
    tile.weights_step = P * kIntegerUnitBytes;
    tile.weights_stride = kIntegerUnitBytes;
  }
}

// P panels for the rows [row_begin, row_end).
template <typename Lanes, typename Format, int kPlanes, int P>
void ComputeBlocked(const Job& job, int64_t row_begin, int64_t row_end, int64_t panel, uint8_t* scratch) {
  constexpr int R = Lanes::template kTileRows<kPlanes>;
  alignas(64) float total[kRowBlock * P * kGemmPanel];
  alignas(64) int32_t parked[kPlanes == 1 ? kRowBlock * P * kGemmPanel : 1];
  const int64_t rows = row_end - row_begin;
  for (int64_t i = 0; i < rows * P * kGemmPanel; ++i) total[i] = 0;
  Tile tile = {.job = &job, .panel = job.params->weight + panel * job.layout.panel_bytes};
  const int64_t tiles = (rows + R - 1) / R;
  for (int64_t k = 0; k < job.params->problem.k; k = tile.k_end) {
    SetChunk<Lanes, Format, P>(job, k, ChunkK(job, kChunkK), tile, scratch);
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t begin = t * rows / tiles;
      tile.row = row_begin + begin;
      tile.total = total + begin * P * kGemmPanel;
      tile.parked = parked + (kPlanes == 1 ? begin * P * kGemmPanel : 0);
      DispatchTile<Lanes, kPlanes, R, P>(tile, (t + 1) * rows / tiles - begin);
    }
  }
  StorePanels<P>(job, row_begin, rows, panel, total);
}

template <typename Lanes, typename Format, int kPlanes> void RunBlocked(const Job& job) {
  const GemmParams& params = *job.params;
  constexpr int P = Lanes::kTilePanels;
  alignas(64) uint8_t scratch[Format::kUnitK == 4 ? 64 : kChunkK / 4 * P * kIntegerUnitBytes];
  const int64_t blocks = (params.m + kRowBlock - 1) / kRowBlock;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t begin = b * params.m / blocks, end = (b + 1) * params.m / blocks;
    int64_t panel = params.panel_begin;
    for (; panel + P <= params.panel_end; panel += P) ComputeBlocked<Lanes, Format, kPlanes, P>(job, begin, end, panel, scratch);
    if constexpr (P > 1) {
      for (; panel < params.panel_end; ++panel) ComputeBlocked<Lanes, Format, kPlanes, 1>(job, begin, end, panel, scratch);
    }
  }
}

// ---- The formats.

struct I8Format {  // bytes
  static constexpr int kUnitK = 4;
  static constexpr PanelLayout Layout(const GemmProblem& problem) { return I8Layout(problem); }
  template <typename Lanes> static PITH_ALWAYS_INLINE void Decode(const uint8_t* unit, typename Lanes::Weights (&weights)[1]) {
    weights[0] = Lanes::LoadWeights(unit);
  }
};

struct I4Format {  // nibbles
  static constexpr int kUnitK = 8;
  static constexpr PanelLayout Layout(const GemmProblem& problem) { return I4Layout(problem); }
  template <typename Lanes> static PITH_ALWAYS_INLINE void Decode(const uint8_t* unit, typename Lanes::Weights (&weights)[2]) {
    const typename Lanes::Weights both = Lanes::LoadWeights(unit);
    weights[0] = Lanes::LowNibbles(both);
    weights[1] = Lanes::HighNibbles(both);
  }
};

template <typename Format> Job MakeJob(const GemmParams& params) {
  const GemmProblem& problem = params.problem;
  const int64_t step = problem.step();
  return {.params = &params,
          .layout = Format::Layout(problem),
          .step = step,
          .steps = problem.k / step,
          .steps_per_group = problem.group_size / step,
          .steps_per_scale = problem.activation_group / step,
          .groups_of_scale = problem.k / problem.activation_group};
}

template <typename Lanes, typename Format, int kPlanes> void RunJob(const Job& job) {
  if (job.params->m <= Lanes::template kDirectMax<kPlanes>) {
    RunDirect<Lanes, Format, kPlanes>(job);
  } else {
    RunBlocked<Lanes, Format, kPlanes>(job);
  }
}

// GemmKernelEntry::run of an integer row.
template <typename Lanes, typename Format, int kPlanes> void RunIntegerGemm(const GemmParams& params) {
  RunJob<Lanes, Format, kPlanes>(MakeJob<Format>(params));
}

}  // namespace
}  // namespace pith
