#include "kernels/cpu/gemm_prepack.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/float_types.h"
#include "kernels/cpu/gemm_layout.h"
#include "kernels/quantize_activation.h"

namespace pith {
namespace {

// Units of kI8 scales must be found by a shift.
const char* CanPrepackScales(const GemmProblem& problem) {
  if (problem.scale != GemmScale::kI8) return nullptr;
  if (problem.unit_size < 1 || problem.k % problem.unit_size != 0) return "unit_size does not divide k";
  const int64_t ratio = problem.unit_size / problem.group_size;
  if (ratio * problem.group_size != problem.unit_size || (ratio & (ratio - 1)) != 0) return "unit_size / group_size is no power of two";
  return nullptr;
}

const char* CanPrepackQuantized(const GemmProblem& problem) {
  if (problem.n < 1 || problem.k < 1) return "empty matrix";
  if (problem.group_size < 1 || problem.k % problem.group_size != 0) return "group_size does not divide k";
  if (const char* reason = CanPrepackScales(problem)) return reason;
  if (problem.group_size % 2 != 0) return "group_size is odd";
  if (problem.has_min && problem.has_zero_point) return "zero points and mins together";
  if ((problem.has_min || problem.has_zero_point) && problem.k / problem.group_size > kMaxOffsetGroups) {
    return "more than 4096 groups with zero points or mins";
  }
  return nullptr;
}

// Integer rows: what the layout needs, then whether the largest sum of a step fits int32.
const char* CanPrepackInteger(const GemmProblem& problem, int64_t unit_k) {
  if (problem.n < 1 || problem.k < 1) return "empty matrix";
  if (problem.group_size < 1 || problem.k % problem.group_size != 0) return "group_size does not divide k";
  if (problem.activation_group < 1 || problem.k % problem.activation_group != 0) return "activation group does not divide k";
  if (const char* reason = CanPrepackScales(problem)) return reason;
  const int64_t step = problem.step();
  if (problem.group_size % step != 0 || problem.activation_group % step != 0) return "neither group divides the other";
  if (step % unit_k != 0) return unit_k == kI4UnitK ? "group_size % 8 != 0" : "group_size % 4 != 0";
  if (problem.has_min && problem.has_zero_point) return "zero points and mins together";
  const int64_t limit = static_cast<int64_t>(problem.activation == GemmActivation::kInt16 ? kInt16ActivationLimit : kInt8ActivationLimit);
  const int64_t largest_code = (int64_t{1} << problem.bits) - 1;
  if (step > std::numeric_limits<int32_t>::max() / ((limit + 1) * largest_code)) return "a step's int32 sum could overflow";
  if (problem.activation == GemmActivation::kInt16 && step > kMaxInt16Step) return "a step of int16 activations exceeds 256";
  return nullptr;
}

// The integer that, times the unit, is the scale.
int8_t ScaleCode(float scale, float unit) {
  if (unit != 0.0f) return static_cast<int8_t>(std::lrint(scale / unit));
  return std::signbit(scale) == std::signbit(unit) ? 0 : -1;  // a zero, of the scale's sign
}

// Element [g][column] of the scales or mins of a panel. `unit`: kI8 only.
void StoreScale(const PanelLayout& layout, uint8_t* scales, int64_t g, int64_t column, float value, const float* unit) {
  const int64_t index = g * kGemmPanel + column;
  uint16_t bits = 0;
  switch (layout.scale) {
    case GemmScale::kF32: std::memcpy(scales + 4 * index, &value, 4); return;
    case GemmScale::kF16: bits = ToFloat16(value).bits; break;
    case GemmScale::kBf16: bits = ToBfloat16(value).bits; break;
    case GemmScale::kI8:
      bits = ToFloat16(*unit).bits;
      scales[index] = static_cast<uint8_t>(ScaleCode(value, *unit));
      std::memcpy(scales + UnitOffset(layout, g) + 2 * column, &bits, 2);
      return;
  }
  std::memcpy(scales + 2 * index, &bits, 2);
}

// Scales and zero points or mins of the columns [column, column + columns) of one panel.
void PrepackGroups(const GemmPrepackParams& params, const PanelLayout& layout, int64_t column, int64_t columns, uint8_t* panel) {
  const bool has_units = layout.scale == GemmScale::kI8;
  const int64_t units = has_units ? params.problem.k / params.problem.unit_size : 0;
  for (int64_t j = 0; j < columns; ++j) {
    const int64_t row = (column + j) * layout.groups;
    for (int64_t g = 0; g < layout.groups; ++g) {
      const int64_t unit = (column + j) * units + (g >> layout.unit_shift);
      StoreScale(layout, panel, g, j, params.scale[row + g], has_units ? params.scale_unit + unit : nullptr);
      if (layout.offset == GroupOffset::kMin) {
        StoreScale(layout, panel + layout.offset_begin, g, j, params.min[row + g], has_units ? params.min_unit + unit : nullptr);
      }
      if (layout.offset == GroupOffset::kZeroPoint) panel[layout.offset_begin + g * kGemmPanel + j] = params.zero_point[row + g];
    }
  }
}

void PackW8Group(const uint8_t* code, const PanelLayout& layout, int64_t j, uint8_t* out) {
  for (int64_t k = 0; k < layout.group_size; k += 2) {
    uint8_t* unit = out + k / 2 * kW8UnitBytes + 2 * j;
    unit[0] = static_cast<uint8_t>(code[k] - layout.center);
    unit[1] = static_cast<uint8_t>(code[k + 1] - layout.center);
  }
}

uint32_t PackW4Unit(const uint8_t* code, int64_t count, int64_t center) {
  uint32_t nibbles = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t position = i / 2 + (i & 1) * 4;
    nibbles |= (static_cast<uint32_t>(code[i] - center) & 15u) << (4 * position);
  }
  return nibbles;
}

void PackW4Group(const uint8_t* code, const PanelLayout& layout, int64_t j, uint8_t* out) {
  const int64_t full = layout.group_size / kW4UnitK;
  for (int64_t u = 0; u < full; ++u) {
    const uint32_t nibbles = PackW4Unit(code + u * kW4UnitK, kW4UnitK, layout.center);
    std::memcpy(out + u * kW4UnitBytes + 4 * j, &nibbles, 4);
  }
  if (full * kW4UnitK < layout.group_size) {
    const uint32_t nibbles = PackW4Unit(code + full * kW4UnitK, layout.group_size - full * kW4UnitK, layout.center);
    std::memcpy(out + full * kW4UnitBytes + 4 * j, &nibbles, 4);
  }
}

void PackI8Group(const uint8_t* code, const PanelLayout& layout, int64_t j, uint8_t* out) {
  for (int64_t k = 0; k < layout.group_size; k += kI8UnitK) std::memcpy(out + k / kI8UnitK * kIntegerUnitBytes + 4 * j, code + k, 4);
}

void PackI4Group(const uint8_t* code, const PanelLayout& layout, int64_t j, uint8_t* out) {
  for (int64_t k = 0; k < layout.group_size; k += kI4UnitK) {
    uint32_t low, high;
    std::memcpy(&low, code + k, 4);
    std::memcpy(&high, code + k + 4, 4);
    const uint32_t lane = low | high << 4;
    std::memcpy(out + k / kI4UnitK * kIntegerUnitBytes + 4 * j, &lane, 4);
  }
}

template <typename PackGroup> void PrepackQuantized(const GemmPrepackParams& params, const PanelLayout& layout, PackGroup pack_group) {
  const GemmProblem& problem = params.problem;
  for (int64_t p = params.panel_begin; p < params.panel_end; ++p) {
    uint8_t* panel = params.out + p * layout.panel_bytes;
    const int64_t column = p * kGemmPanel;
    const int64_t columns = problem.n - column < kGemmPanel ? problem.n - column : kGemmPanel;
    PrepackGroups(params, layout, column, columns, panel);
    for (int64_t j = 0; j < columns; ++j) {
      const uint8_t* code = params.code + (column + j) * problem.k;
      for (int64_t g = 0; g < layout.groups; ++g) {
        pack_group(code + g * layout.group_size, layout, j, panel + layout.code_begin + g * layout.group_bytes);
      }
    }
  }
}

// code(group_codes, column, i): code i of a group in a column, as prepacked by the functions above, in [0, 2^bits), or its value.
template <typename Code> void ReadQuantizedRow(const PanelLayout& layout, const uint8_t* weight, int64_t n, Code code, float* out) {
  const uint8_t* panel = weight + n / kGemmPanel * layout.panel_bytes;
  const int64_t column = n % kGemmPanel;
  for (int64_t g = 0; g < layout.groups; ++g, out += layout.group_size) {
    const float scale = ReadScale(layout, panel, g, column);
    const uint8_t* codes = panel + layout.code_begin + g * layout.group_bytes;
    if (layout.offset == GroupOffset::kMin) {
      const float min = ReadScale(layout, panel + layout.offset_begin, g, column);
      for (int64_t i = 0; i < layout.group_size; ++i) out[i] = scale * static_cast<float>(code(codes, column, i)) - min;
    } else {
      const float zero = static_cast<float>(layout.offset == GroupOffset::kZeroPoint ? panel[layout.offset_begin + g * kGemmPanel + column]
                                                                                     : layout.center);
      for (int64_t i = 0; i < layout.group_size; ++i) out[i] = scale * (static_cast<float>(code(codes, column, i)) - zero);
    }
  }
}

}  // namespace

float ReadScale(const PanelLayout& layout, const uint8_t* scales, int64_t g, int64_t column) {
  const int64_t index = g * kGemmPanel + column;
  if (layout.scale == GemmScale::kF32) {
    float value;
    std::memcpy(&value, scales + 4 * index, 4);
    return value;
  }
  const bool has_unit = layout.scale == GemmScale::kI8;
  uint16_t bits;
  std::memcpy(&bits, scales + (has_unit ? UnitOffset(layout, g) + 2 * column : 2 * index), 2);
  if (layout.scale == GemmScale::kBf16) return ToFloat(bfloat16{bits});
  const float value = ToFloat(float16{bits});
  return has_unit ? static_cast<float>(static_cast<int8_t>(scales[index])) * value : value;
}

const char* CanPrepackDense(const GemmProblem& problem) {
  if (problem.n < 1 || problem.k < 1) return "empty matrix";
  if (problem.bits != 16) return "bits != 16";
  return nullptr;
}

const char* CanPrepackW8(const GemmProblem& problem) {
  if (problem.bits < 5 || problem.bits > 8) return "bits outside 5..8";
  return CanPrepackQuantized(problem);
}

const char* CanPrepackW4(const GemmProblem& problem) {
  if (problem.bits < 2 || problem.bits > 4) return "bits outside 2..4";
  return CanPrepackQuantized(problem);
}

const char* CanPrepackF8(const GemmProblem& problem) {
  if (problem.bits != 8) return "bits != 8";
  if (problem.has_zero_point || problem.has_min) return "fp8 weights with zero points or mins";
  return CanPrepackQuantized(problem);
}

const char* CanPrepackI8(const GemmProblem& problem) {
  if (problem.bits < 5 || problem.bits > 8) return "bits outside 5..8";
  return CanPrepackInteger(problem, kI8UnitK);
}

const char* CanPrepackI4(const GemmProblem& problem) {
  if (problem.bits < 2 || problem.bits > 4) return "bits outside 2..4";
  return CanPrepackInteger(problem, kI4UnitK);
}

size_t DensePrepackBytes(const GemmProblem& problem) { return NumPanels(problem.n) * DenseLayout(problem).panel_bytes; }
size_t W8PrepackBytes(const GemmProblem& problem) { return NumPanels(problem.n) * W8Layout(problem).panel_bytes; }
size_t W4PrepackBytes(const GemmProblem& problem) { return NumPanels(problem.n) * W4Layout(problem).panel_bytes; }
size_t F8PrepackBytes(const GemmProblem& problem) { return NumPanels(problem.n) * F8Layout(problem).panel_bytes; }
size_t I8PrepackBytes(const GemmProblem& problem) { return NumPanels(problem.n) * I8Layout(problem).panel_bytes; }
size_t I4PrepackBytes(const GemmProblem& problem) { return NumPanels(problem.n) * I4Layout(problem).panel_bytes; }

void PrepackDense(const GemmPrepackParams& params) {
  const int64_t n = params.problem.n, k = params.problem.k;
  const PanelLayout layout = DenseLayout(params.problem);
  for (int64_t column = params.panel_begin * kGemmPanel; column < params.panel_end * kGemmPanel && column < n; ++column) {
    uint8_t* out = params.out + column / kGemmPanel * layout.panel_bytes + 4 * (column % kGemmPanel);
    const uint16_t* row = params.dense + column * k;
    for (int64_t i = 0; i < k; i += 2) {
      const uint16_t pair[2] = {row[i], i + 1 < k ? row[i + 1] : uint16_t{0}};
      std::memcpy(out + i / 2 * 64, pair, 4);
    }
  }
}

void PrepackW8(const GemmPrepackParams& params) { PrepackQuantized(params, W8Layout(params.problem), PackW8Group); }
void PrepackW4(const GemmPrepackParams& params) { PrepackQuantized(params, W4Layout(params.problem), PackW4Group); }
void PrepackF8(const GemmPrepackParams& params) { PrepackQuantized(params, F8Layout(params.problem), PackW8Group); }
void PrepackI8(const GemmPrepackParams& params) { PrepackQuantized(params, I8Layout(params.problem), PackI8Group); }
void PrepackI4(const GemmPrepackParams& params) { PrepackQuantized(params, I4Layout(params.problem), PackI4Group); }

constexpr int64_t kReadAheadBytes = 4096;

void ReadDenseRow(const GemmProblem& problem, const uint8_t* weight, int64_t n, float* out) {
  const uint8_t* lane = weight + n / kGemmPanel * DenseLayout(problem).panel_bytes + 4 * (n % kGemmPanel);
  for (int64_t k = 0; k < problem.k; k += 2, lane += 64) {
    __builtin_prefetch(lane + kReadAheadBytes);  // a whole cache line for every two numbers
    uint16_t pair[2];
    std::memcpy(pair, lane, 4);
    out[k] = ToFloat(bfloat16{pair[0]});
    if (k + 1 < problem.k) out[k + 1] = ToFloat(bfloat16{pair[1]});
  }
}

void ReadW8Row(const GemmProblem& problem, const uint8_t* weight, int64_t n, float* out) {
  const int center = 1 << (problem.bits - 1);
  const auto code = [center](const uint8_t* codes, int64_t column, int64_t i) {
    return static_cast<int8_t>(codes[i / kW8UnitK * kW8UnitBytes + 2 * column + i % kW8UnitK]) + center;
  };
  ReadQuantizedRow(W8Layout(problem), weight, n, code, out);
}

void ReadW4Row(const GemmProblem& problem, const uint8_t* weight, int64_t n, float* out) {
  const int center = 1 << (problem.bits - 1);
  const auto code = [center](const uint8_t* codes, int64_t column, int64_t i) {
    const int64_t position = i % kW4UnitK / 2 + (i & 1) * 4;
    uint32_t nibbles;
    std::memcpy(&nibbles, codes + i / kW4UnitK * kW4UnitBytes + 4 * column, 4);
    const int nibble = static_cast<int>(nibbles >> (4 * position) & 15u);  // two's complement
    return (nibble < 8 ? nibble : nibble - 16) + center;
  };
  ReadQuantizedRow(W4Layout(problem), weight, n, code, out);
}

void ReadF8Row(const GemmProblem& problem, const uint8_t* weight, int64_t n, float* out) {
  const auto value = [](const uint8_t* codes, int64_t column, int64_t i) {
    return ToFloat(float8_e4m3fn{codes[i / kW8UnitK * kW8UnitBytes + 2 * column + i % kW8UnitK]});
  };
  ReadQuantizedRow(F8Layout(problem), weight, n, value, out);
}

void ReadI8Row(const GemmProblem& problem, const uint8_t* weight, int64_t n, float* out) {
  ReadQuantizedRow(I8Layout(problem), weight, n, I8Code, out);
}

void ReadI4Row(const GemmProblem& problem, const uint8_t* weight, int64_t n, float* out) {
  ReadQuantizedRow(I4Layout(problem), weight, n, I4Code, out);
}

}  // namespace pith
