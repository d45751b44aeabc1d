#include "kernels/quantize_activation.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/scalar/bf16.h"
#include "kernels/cpu/scalar/fp8.h"

namespace pith {
namespace {

// The group's scale, and what to multiply with before rounding.
struct Scales {
  float scale, inverse;
};

Scales ChooseScales(const float* group, int64_t group_size, float limit, float static_scale) {
  if (static_scale > 0) return {static_scale, 0};
  float max = 0;
  for (int64_t i = 0; i < group_size; ++i) max = std::max(max, std::abs(group[i]));
  if (max < kSmallestActivationMax) return {0, 0};
  return {max / limit, limit / max};
}

int32_t Quantize(const QuantizeActivationParams& p, const Scales& scales, float x) {
  if (p.static_scale > 0) {
    const float q = std::nearbyint(x / scales.scale);
    return static_cast<int32_t>(std::min(std::max(q, -128.0f), 127.0f));
  }
  return static_cast<int32_t>(std::nearbyint(x * scales.inverse));
}

}  // namespace

void quantize_activation_f32_int8__scalar(const QuantizeActivationParams& p) {
  const float limit = p.low != nullptr ? kInt16ActivationLimit : kInt8ActivationLimit;
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const float* x = p.x + row * p.x_stride;
    int8_t* high = p.high + row * p.out_stride;
    int8_t* low = p.low != nullptr ? p.low + row * p.out_stride : nullptr;
    int32_t* sum = p.sum + row * p.sum_stride;
    for (int64_t i = 0; i < p.dim / p.sum_group; ++i) sum[i] = 0;
    for (int64_t g = 0; g < p.dim / p.group_size; ++g) {
      const Scales scales = ChooseScales(x + g * p.group_size, p.group_size, limit, p.static_scale);
      p.scale[row * p.scale_stride + g] = scales.scale;
      for (int64_t i = g * p.group_size; i < (g + 1) * p.group_size; ++i) {
        const int32_t q = Quantize(p, scales, x[i]);
        sum[i / p.sum_group] += q;
        const int32_t upper = low != nullptr ? (q + 128) >> 8 : q;
        high[i] = static_cast<int8_t>(upper);
        if (low != nullptr) low[i] = static_cast<int8_t>(q - 256 * upper);
      }
    }
  }
}

void quantize_activation_f32_fp8__scalar(const QuantizeActivationFp8Params& p) {
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const float* x = p.x + row * p.x_stride;
    const Scales scales = ChooseScales(x, p.dim, kFp8ActivationLimit, p.static_scale);
    p.scale[row] = scales.scale;
    for (int64_t i = 0; i < p.dim; ++i) {
      const float q = p.static_scale > 0 ? x[i] / scales.scale : x[i] * scales.inverse;
      p.out[row * p.out_stride + i] = Bf16FromF32(F32FromFp8(Fp8FromF32(q)));
    }
  }
}

}  // namespace pith
