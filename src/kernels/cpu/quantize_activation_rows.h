// The walk over rows and groups that the vector quantize_activation kernels share, and the scale of a group. An instruction set brings
//   Vectors::MaxMagnitude(x, count)                                        max|x|
//   Vectors::Run<kStatic, kTwoPlanes>(x, count, factor, high, low)         integers and planes of one sum group; returns their sum.
//                                                                          factor: the static scale, or limit / max|x|
//   Vectors::RunFp8<kStatic>(x, count, factor, out)                        bf16 bits of the e4m3 values of a row
// Internal linkage: every including kernel has its own copy.
#pragma once

#include <cstdint>

#include "kernels/quantize_activation.h"

namespace pith {
namespace {

// The scale of a group, and its factor as above.
template <typename Vectors> float ChooseScale(const float* x, int64_t count, float limit, float static_scale, float* scale) {
  if (static_scale > 0) return *scale = static_scale;
  const float max = Vectors::MaxMagnitude(x, count);
  const bool zero = max < kSmallestActivationMax;
  *scale = zero ? 0.0f : max / limit;
  return zero ? 0.0f : limit / max;
}

template <typename Vectors>
void QuantizeGroup(const QuantizeActivationParams& p, const float* x, int8_t* high, int8_t* low, float* scale, int32_t* sum) {
  const float limit = low != nullptr ? kInt16ActivationLimit : kInt8ActivationLimit;
  const float factor = ChooseScale<Vectors>(x, p.group_size, limit, p.static_scale, scale);
  for (int64_t i = 0; i < p.group_size; i += p.sum_group, ++sum) {
    if (p.static_scale > 0) {
      *sum = Vectors::template Run<true, false>(x + i, p.sum_group, factor, high + i, nullptr);
    } else if (low != nullptr) {
      *sum = Vectors::template Run<false, true>(x + i, p.sum_group, factor, high + i, low + i);
    } else {
      *sum = Vectors::template Run<false, false>(x + i, p.sum_group, factor, high + i, nullptr);
    }
  }
}

template <typename Vectors> void QuantizeRows(const QuantizeActivationParams& p) {
  for (int64_t row = 0; row < p.num_rows; ++row) {
    for (int64_t i = 0, g = 0; i < p.dim; i += p.group_size, ++g) {
      const int64_t out = row * p.out_stride + i;
      QuantizeGroup<Vectors>(p, p.x + row * p.x_stride + i, p.high + out, p.low != nullptr ? p.low + out : nullptr,
                             p.scale + row * p.scale_stride + g, p.sum + row * p.sum_stride + i / p.sum_group);
    }
  }
}

template <typename Vectors> void QuantizeFp8Rows(const QuantizeActivationFp8Params& p) {
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const float* x = p.x + row * p.x_stride;
    uint16_t* out = p.out + row * p.out_stride;
    const float factor = ChooseScale<Vectors>(x, p.dim, kFp8ActivationLimit, p.static_scale, &p.scale[row]);
    if (p.static_scale > 0) {
      Vectors::template RunFp8<true>(x, p.dim, factor, out);
    } else {
      Vectors::template RunFp8<false>(x, p.dim, factor, out);
    }
  }
}

}  // namespace
}  // namespace pith
