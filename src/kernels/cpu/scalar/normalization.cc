// The oracle: everything in double, rounded once.
#include "kernels/normalization.h"

#include <cmath>

#include "kernels/cpu/scalar/bf16.h"

namespace pith {

void rms_norm_f32__scalar(const RmsNormParams& p) {
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const float* x = p.x + row * p.x_stride;
    double sum = 0.0;
    for (int64_t i = 0; i < p.dim; ++i) sum += static_cast<double>(x[i]) * x[i];
    const double inverse = 1.0 / std::sqrt(sum / static_cast<double>(p.dim) + p.eps);
    for (int64_t i = 0; i < p.dim; ++i) {
      const float y = static_cast<float>(x[i] * inverse * p.weight[i]);
      if (p.out_bf16 != nullptr) {
        p.out_bf16[row * p.out_stride + i] = Bf16FromF32(y);
      } else {
        float* out = p.out_f32 + row * p.out_stride + i;
        *out = p.accumulate ? *out + y : y;
      }
    }
  }
}

}  // namespace pith
