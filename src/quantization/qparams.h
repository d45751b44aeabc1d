// Scale and zero point of one group of weights, from its range or from a search over clipped ranges, and coding with them.
// All functions are pure and thread-safe.
//
//   symmetric:   scale = max|w| / ((2^b - 1) / 2), zero point 0
//   asymmetric:  scale = (max - min) / (2^b - 1) with min <= 0 <= max, zero point = round(-2^(b-1) - min / scale)
//   code = clamp(round(w / scale + zero point), -2^(b-1), 2^(b-1) - 1), ties to even
//   float:       scale = max|w| / 448, code = e4m3fn(w / scale), to nearest, ties to even, saturating
// The scale is rounded to the dtype it will be stored in before anything is coded with it. The zero point comes from the scale before
// that rounding, which shares the rounding's effect out between both ends of the range.
// Source: compressed-tensors `calculate_qparams`, `quantize`; the search is llm-compressor's `mse` observer.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "quantization/quantization_args.h"
#include "tensor/dtype.h"

namespace pith {

struct QParams {
  float scale = 1;
  int zero_point = 0;  // signed, in [args.min_code(), args.max_code()]; 0 when symmetric
};

// The ranges p * [min, max] with p = 1, 1 - 1/grid, ... are tried, floor(max_shrink * grid) of them (at least one); the one with the
// smallest sum of |w - dequantized|^norm wins, the widest of equals. With an importance h_i of each value (for a weight: E[x^2] of its
// input column, llm-compressor's `imatrix_mse`) the sum is that of h_i |w_i - dequantized_i|^norm.
struct ClipSearch {
  int grid = 100;
  double max_shrink = 0.2;
  double norm = 2.4;

  int num_candidates() const;
};
inline constexpr ClipSearch kNoClipSearch = {.grid = 1, .max_shrink = 0};

// Smallest and largest value of a group, widened to contain 0.
struct WeightRange {
  float min = 0;
  float max = 0;
};

// Errors are the caller's: with a NaN or infinity in `values` the result is false and `range` unspecified.
bool FindRange(absl::Span<const float> values, WeightRange& range);

// `value` rounded to BF16, F16 or F32 (the dtypes scales are stored in).
float RoundToDType(float value, DType dtype);

// From a range that contains 0. A zero scale becomes the epsilon of `scale_dtype`, as in the source; the scale is infinite when the
// range exceeds what `scale_dtype` can hold.
QParams ComputeQParams(WeightRange range, const QuantizationArgs& args, DType scale_dtype);

// Sum of |w - dequantized|^norm over `values`, within a relative 1e-4 (the power is a polynomial). Values and scale are finite; integer
// codes. `importance` is empty (1 everywhere, the same bits as ones) or as long as `values`: >= 0, at most 1e6 or so, as sums are f32.
double ClipError(absl::Span<const float> values, const QParams& qparams, const QuantizationArgs& args, double norm,
                 absl::Span<const float> importance = {});

// The winner of the search over one group. `range` is that of the group, `importance` as for ClipError. Float codes take the whole range,
// as the source does: clipping gains little where steps grow with the value.
QParams SearchQParams(absl::Span<const float> values, WeightRange range, const QuantizationArgs& args, DType scale_dtype,
                      const ClipSearch& search, absl::Span<const float> importance = {});

// Stored codes (signed code + 2^(b-1), or the bits of an e4m3fn) of `values`; `codes` is as long.
void QuantizeValues(absl::Span<const float> values, const QParams& qparams, const QuantizationArgs& args, absl::Span<uint8_t> codes);

}  // namespace pith
