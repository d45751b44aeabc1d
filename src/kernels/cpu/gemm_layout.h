// Prepacked weight layouts, shared by every vector ISA. Scalar rows share those for integer activations (i8, i4); those for bf16 and fp8
// activations have their own, plainer ones.
// A matrix is a sequence of panels of kGemmPanel = 16 output columns; the last one is padded with zero codes and zero scales.
//
// Dense bf16 panel: ceil(k/2) units of 64 bytes. A unit holds k and k+1 of the 16 columns, column-major: c0 k0, c0 k1, c1 k0, ...: one
// register of 32-bit lanes, a lane per column. An odd k is padded with a zero weight.
//
// Quantized panel, padded to 64 bytes at both bars:
//   scale [groups][16] of GemmScale type, then zero_point [groups][16] u8 or min [groups][16] of GemmScale type
//   (kI8: [groups][16] s8, then their units [k / unit_size][16] f16)
//   | codes: per group ceil(group_size / unit_k) units
//   w8 unit: 32 bytes, 2 k: c0 k0, c0 k1, c1 k0, ... as int8, code - 2^(bits-1).
//   f8 unit: the same with e4m3 bits.
//   w4 unit: 64 bytes, 8 k: a 32-bit lane per column; nibbles from the lowest: k0 k2 k4 k6 k1 k3 k5 k7, each code - 2^(bits-1)
//            in two's complement.
//            (Each 16-bit half yields, nibble by nibble, the even or the odd members of the four k pairs.)
// For integer activations codes stay unsigned, as stored, and four k of a column share a 32-bit lane:
//   i8 unit: 64 bytes, 4 k: lane c holds codes k0 k1 k2 k3 of column c, one in each byte.
//   i4 unit: 64 bytes, 8 k: byte j of lane c holds code k_j in the low nibble and code k_(4+j) in the high one.
// Units of a group that group_size does not fill are padded and never multiplied.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm.h"

namespace pith {

enum class GroupOffset : int32_t { kNone = 0, kZeroPoint = 1, kMin = 2 };

struct PanelLayout {
  int64_t groups = 1;  // dense: 1 group of k
  int64_t group_size = 0;
  int64_t center = 0;  // 2^(bits-1): what was subtracted from the codes; f8: 0
  GemmScale scale = GemmScale::kF32;
  GroupOffset offset = GroupOffset::kNone;
  int64_t unit_shift = 0;    // kI8: a unit has 2^unit_shift groups
  int64_t group_bytes = 0;   // codes of one group
  int64_t offset_begin = 0;  // byte offset of zero points or mins in the panel
  int64_t code_begin = 0;    // byte offset of the codes
  int64_t panel_bytes = 0;
};

// Largest number of groups of a matrix with zero points or mins: kernels keep a sum of activations for each on the stack.
constexpr int64_t kMaxOffsetGroups = 4096;

static constexpr int64_t RoundUp(int64_t x, int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }
static constexpr int64_t NumPanels(int64_t n) { return (n + kGemmPanel - 1) / kGemmPanel; }
// All scales, or all mins, of a panel.
static constexpr int64_t ScalesBytes(const GemmProblem& problem) {
  const int64_t scales = problem.k / problem.group_size * kGemmPanel;
  switch (problem.scale) {
    case GemmScale::kF32: return 4 * scales;
    case GemmScale::kF16:
    case GemmScale::kBf16: return 2 * scales;
    case GemmScale::kI8: return scales + problem.k / problem.unit_size * kGemmPanel * 2;
  }
  return 0;
}

static constexpr PanelLayout DenseLayout(const GemmProblem& problem) {
  PanelLayout layout;
  layout.group_size = problem.k;
  layout.group_bytes = layout.panel_bytes = (problem.k + 1) / 2 * 64;
  return layout;
}

static constexpr PanelLayout QuantizedLayout(const GemmProblem& problem, int64_t unit_k, int64_t unit_bytes) {
  PanelLayout layout;
  layout.groups = problem.k / problem.group_size;
  layout.group_size = problem.group_size;
  layout.center = int64_t{1} << (problem.bits - 1);
  layout.scale = problem.scale;
  layout.offset = problem.has_min ? GroupOffset::kMin : problem.has_zero_point ? GroupOffset::kZeroPoint : GroupOffset::kNone;
  layout.group_bytes = RoundUp(problem.group_size, unit_k) / unit_k * unit_bytes;
  for (int64_t size = problem.group_size; size < problem.unit_size; size *= 2) ++layout.unit_shift;
  layout.offset_begin = ScalesBytes(problem);
  const int64_t offset_bytes = problem.has_min ? ScalesBytes(problem) : problem.has_zero_point ? layout.groups * kGemmPanel : 0;
  layout.code_begin = RoundUp(layout.offset_begin + offset_bytes, 64);
  layout.panel_bytes = RoundUp(layout.code_begin + layout.groups * layout.group_bytes, 64);
  return layout;
}

// kI8: where the units of a group's scales lie, in bytes from the first scale.
static constexpr int64_t UnitOffset(const PanelLayout& layout, int64_t group) {
  return (layout.groups + 2 * (group >> layout.unit_shift)) * kGemmPanel;
}

// Largest step of int16 activations: a chunk of k that kernels decode holds whole steps.
constexpr int64_t kMaxInt16Step = 256;

// 16 lanes of four one-byte codes.
constexpr int64_t kI8UnitK = 4, kI4UnitK = 8, kIntegerUnitBytes = 64;
static constexpr PanelLayout I8Layout(const GemmProblem& problem) { return QuantizedLayout(problem, kI8UnitK, kIntegerUnitBytes); }
static constexpr PanelLayout I4Layout(const GemmProblem& problem) { return QuantizedLayout(problem, kI4UnitK, kIntegerUnitBytes); }

// Code i of a column, from where its units start.
static constexpr int I8Code(const uint8_t* units, int64_t column, int64_t i) {
  return units[i / kI8UnitK * kIntegerUnitBytes + 4 * column + i % kI8UnitK];
}
static constexpr int I4Code(const uint8_t* units, int64_t column, int64_t i) {
  const uint8_t both = units[i / kI4UnitK * kIntegerUnitBytes + 4 * column + i % 4];
  return i % kI4UnitK < 4 ? both & 15 : both >> 4;
}

constexpr int64_t kW8UnitK = 2, kW8UnitBytes = 32;
constexpr int64_t kW4UnitK = 8, kW4UnitBytes = 64;
static constexpr PanelLayout W8Layout(const GemmProblem& problem) { return QuantizedLayout(problem, kW8UnitK, kW8UnitBytes); }
static constexpr PanelLayout W4Layout(const GemmProblem& problem) { return QuantizedLayout(problem, kW4UnitK, kW4UnitBytes); }
static constexpr PanelLayout F8Layout(const GemmProblem& problem) {
  PanelLayout layout = W8Layout(problem);
  layout.center = 0;
  return layout;
}

}  // namespace pith
