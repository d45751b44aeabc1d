#include "kernels/rotary.h"

namespace pith {

void rotary_f32__scalar(const RotaryParams& p) {
  const int64_t half = p.rotary_dim / 2;
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const float* cos = p.cos + p.position[row] * half;
    const float* sin = p.sin + p.position[row] * half;
    for (int64_t head = 0; head < p.num_heads; ++head) {
      float* x = p.x + row * p.x_stride + head * p.head_dim;
      for (int64_t i = 0; i < half; ++i) {
        const double first = x[i];
        const double second = x[i + half];
        x[i] = static_cast<float>(first * cos[i] - second * sin[i]);
        x[i + half] = static_cast<float>(second * cos[i] + first * sin[i]);
      }
    }
  }
}

}  // namespace pith
