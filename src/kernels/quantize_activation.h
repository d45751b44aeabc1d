// Quantization of activations, for the integer and the fp8 GEMM rows. POD only: ISA folders include this header.
//
// Per row and group:  scale = max|x| / limit,  q = round_half_even(x * (limit / max|x|)),  x ~ scale * q;  a group with max|x| < 1e-30 has
// scale 0 and q 0 (the quotient must not overflow).
//   int8:  limit 127, q in one plane.
//   int16: limit 32639 = 127 * 256 + 127, in two planes of signed bytes: high = (q + 128) >> 8, low = q - 256 high.
// With a static scale (a calibrated one, the same for every row) q = round_half_even(x / scale) is clamped to [-128, 127].
// The quotient limit / max|x| is one f32 division, and so is a scale; every instruction set gives the same bits.
//
//   fp8: one group per row, limit 448; q = x * (448 / max|x|), or x / scale with a static scale, rounded to the nearest e4m3 value, ties to
//   even, magnitudes above 448 to 448. q is kept as bf16 bits, which hold every e4m3 value exactly.
#pragma once

#include <cstdint>

namespace pith {

constexpr float kInt8ActivationLimit = 127.0f;
constexpr float kInt16ActivationLimit = 32639.0f;
constexpr float kFp8ActivationLimit = 448.0f;
constexpr float kSmallestActivationMax = 1e-30f;

struct QuantizeActivationParams {
  const float* x = nullptr;  // [num_rows, dim], rows x_stride floats apart; finite
  int64_t x_stride = 0;
  int64_t num_rows = 0, dim = 0;
  int64_t group_size = 0;  // divides dim; a multiple of sum_group
  int64_t sum_group = 0;   // divides group_size
  float static_scale = 0;  // > 0: used instead of each group's own (int8 only)
  int8_t* high = nullptr;  // [num_rows, dim], rows out_stride bytes apart
  int8_t* low = nullptr;   // null: int8
  int64_t out_stride = 0;
  float* scale = nullptr;  // [num_rows, dim / group_size], rows scale_stride apart
  int64_t scale_stride = 0;
  int32_t* sum = nullptr;  // [num_rows, dim / sum_group], rows sum_stride apart: sums of q
  int64_t sum_stride = 0;
};

struct QuantizeActivationFp8Params {
  const float* x = nullptr;  // [num_rows, dim], rows x_stride floats apart; finite
  int64_t x_stride = 0;
  int64_t num_rows = 0, dim = 0;
  float static_scale = 0;   // > 0: used instead of each row's own
  uint16_t* out = nullptr;  // bf16 bits [num_rows, dim], rows out_stride elements apart
  int64_t out_stride = 0;
  float* scale = nullptr;  // [num_rows]
};

}  // namespace pith
