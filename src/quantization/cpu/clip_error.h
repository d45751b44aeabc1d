// The inner loop of the search for clipping ranges: the error of one candidate over one group of weights. POD only: ISA folders include
// this header. With code(w) = clamp(w * inverse_scale + zero_point, min_code, max_code) and e = |round(code(w)) - code without its clamp|,
//   sum of e^exponent, each times its importance where there is one,
// in units of scale^exponent. The power is a polynomial, relative error below 5e-5. Values are added in an order of their own, that of four
// lanes, whatever the width of the vectors: every function below gives the same bits.
#pragma once

#include <cstdint>

namespace pith {

struct ClipErrorParams {
  const float* values = nullptr;      // [count], finite
  const float* importance = nullptr;  // [count] >= 0, or null
  int64_t count = 0;
  float inverse_scale = 1, zero_point = 0;
  float min_code = 0, max_code = 0;  // whole numbers below 2^22
  float exponent = 2;                // > 0
  double limit = 0;                  // past it the sum so far, which is larger, is enough
};

using ClipErrorFunction = double (*)(const ClipErrorParams&);

double clip_error_f32__scalar(const ClipErrorParams& p);
double clip_error_f32__avx2(const ClipErrorParams& p);
double clip_error_f32__avx512(const ClipErrorParams& p);

}  // namespace pith
