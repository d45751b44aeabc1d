// How every vector GEMM row ends: one panel of one row is written. Everything is in an anonymous namespace, compiled with the flags of the
// folder that includes it.
#pragma once

#include <cstdint>

#include "kernels/gemm.h"

#define PITH_ALWAYS_INLINE inline __attribute__((always_inline))

namespace pith {
namespace {

PITH_ALWAYS_INLINE int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

// Writes one panel of one row: the activations' scale, the bias, then the residual.
PITH_ALWAYS_INLINE void StorePanel(const GemmParams& params, int64_t row, int64_t panel, const float* total) {
  const int64_t column = panel * kGemmPanel;
  const int64_t columns = Min(kGemmPanel, params.problem.n - column);
  float* out = params.out + row * params.out_stride + column - params.out_panel * kGemmPanel;
  const float* bias = params.bias != nullptr ? params.bias + column : nullptr;
  const float scale = params.activation_scale != nullptr ? params.activation_scale[row] : 1.0f;
  for (int64_t j = 0; j < columns; ++j) {
    float result = total[j] * scale;
    if (bias != nullptr) result += bias[j];
    out[j] = params.accumulate ? out[j] + result : result;
  }
}

}  // namespace
}  // namespace pith
