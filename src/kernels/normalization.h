// RMSNorm: out = x / sqrt(mean(x^2) + eps) * weight. Source: Zhang & Sennrich 2019. POD only: ISA folders include this header.
// The sum of squares of a row is accumulated in one fixed order that depends on `dim` alone.
#pragma once

#include <cstdint>

namespace pith {

struct RmsNormParams {
  const float* x = nullptr;  // [num_rows, dim], rows x_stride floats apart
  int64_t x_stride = 0;
  const float* weight = nullptr;  // [dim] (architectures that multiply by 1 + w have it folded in)
  float eps = 1e-6f;
  int64_t num_rows = 0, dim = 0;
  uint16_t* out_bf16 = nullptr;  // bf16 bits [num_rows, dim], or null
  float* out_f32 = nullptr;      // [num_rows, dim], or null; may equal x
  int64_t out_stride = 0;        // elements of whichever output is set (exactly one is)
  bool accumulate = false;       // out_f32 += result (post-norms of Gemma: residual add)
};

}  // namespace pith
