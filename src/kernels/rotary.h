// Rotary position embedding on halves ("NeoX" / Hugging Face order), in place:
//   (x[i], x[i + d/2]) <- (x[i] cos - x[i + d/2] sin, x[i + d/2] cos + x[i] sin),  d = rotary_dim, i < d/2.
// Source: Su et al. 2021. POD only: ISA folders include this header.
#pragma once

#include <cstdint>

namespace pith {

struct RotaryParams {
  float* x = nullptr;  // [num_rows, num_heads, head_dim], rows x_stride floats apart
  int64_t x_stride = 0;
  int64_t num_rows = 0, num_heads = 0, head_dim = 0, rotary_dim = 0;  // rotary_dim even, <= head_dim
  const int32_t* position = nullptr;                                  // [num_rows]
  const float* cos = nullptr;                                         // [max_position, rotary_dim / 2], scaled for the model's RoPE variant
  const float* sin = nullptr;
};

}  // namespace pith
