// The walk over rows and groups that the vector quantize_activation kernels share, and the scale of a group. An instruction set brings
//   Vectors::MaxMagnitude(x, count)                                        max|x|
//   Vectors::Run<kStatic, kTwoPlanes>(x, count, factor, high, low)         integers and planes of one sum group; returns their sum.
//                                                                          factor: the static scale, or limit / max|x|
// Internal linkage: every including kernel has its own copy.
#pragma once

#include <cstdint>

#include "kernels/quantize_activation.h"

namespace pith {
namespace {

template <typename Vectors>
void QuantizeGroup(const QuantizeActivationParams& p, const float* x, int8_t* high, int8_t* low, float* scale, int32_t* sum) {
  float factor = p.static_scale;
  if (p.static_scale > 0) {
    *scale = p.static_scale;
  } else {
    const float limit = low != nullptr ? kInt16ActivationLimit : kInt8ActivationLimit;
    const float max = Vectors::MaxMagnitude(x, p.group_size);
    const bool zero = max < kSmallestActivationMax;
    *scale = zero ? 0.0f : max / limit;
    factor = zero ? 0.0f : limit / max;
  }
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

}  // namespace
}  // namespace pith
