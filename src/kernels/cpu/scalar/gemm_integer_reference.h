// The oracle of the integer GEMM rows: the formulas of gemm_integer_driver.h, one output and one k at a time, on the same layout.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/gemm_layout.h"
#include "kernels/cpu/gemm_prepack.h"
#include "kernels/gemm.h"

namespace pith {
namespace {

struct ByteUnits {
  static PanelLayout Layout(const GemmProblem& problem) { return I8Layout(problem); }
  static int Code(const uint8_t* codes, int64_t k, int64_t column) { return I8Code(codes, column, k); }
};

struct NibbleUnits {
  static PanelLayout Layout(const GemmProblem& problem) { return I4Layout(problem); }
  static int Code(const uint8_t* codes, int64_t k, int64_t column) { return I4Code(codes, column, k); }
};

// One output before bias and residual.
template <typename Units> float IntegerProduct(const GemmParams& params, const PanelLayout& layout, int64_t row, int64_t n) {
  const GemmProblem& problem = params.problem;
  const IntegerActivation& activation = params.integer;
  const uint8_t* panel = params.weight + n / kGemmPanel * layout.panel_bytes;
  const uint8_t* codes = panel + layout.code_begin;
  const int64_t column = n % kGemmPanel, step = problem.step();
  float total = 0;
  for (int64_t s = 0; s < problem.k / step; ++s) {
    const int64_t g = s * step / problem.group_size;
    const float a = activation.scale[row * (problem.k / problem.activation_group) + s * step / problem.activation_group];
    const int32_t sum_q = activation.sum[row * (problem.k / step) + s];
    int32_t zero = static_cast<int32_t>(layout.center);
    if (layout.offset == GroupOffset::kMin) zero = 0;
    if (layout.offset == GroupOffset::kZeroPoint) zero = panel[layout.offset_begin + g * kGemmPanel + column];
    int32_t sum = 0;
    for (int64_t k = s * step; k < (s + 1) * step; ++k) {
      int32_t q = activation.high[row * activation.stride + k];
      if (activation.low != nullptr) q = 256 * q + activation.low[row * activation.stride + k];
      sum += q * (Units::Code(codes, k, column) - zero);
    }
    total = std::fma(static_cast<float>(sum) * a, ReadScale(layout, panel, g, column), total);
    if (layout.offset == GroupOffset::kMin) {
      total = std::fma(-(static_cast<float>(sum_q) * a), ReadScale(layout, panel + layout.offset_begin, g, column), total);
    }
  }
  return total;
}

template <typename Units> void RunIntegerReference(const GemmParams& params) {
  const PanelLayout layout = Units::Layout(params.problem);
  for (int64_t row = 0; row < params.m; ++row) {
    for (int64_t n = params.panel_begin * kGemmPanel; n < params.panel_end * kGemmPanel && n < params.problem.n; ++n) {
      float result = IntegerProduct<Units>(params, layout, row, n);
      if (params.bias != nullptr) result += params.bias[n];
      float* out = params.out + row * params.out_stride + n - params.out_panel * kGemmPanel;
      *out = params.accumulate ? *out + result : result;
    }
  }
}

}  // namespace
}  // namespace pith
