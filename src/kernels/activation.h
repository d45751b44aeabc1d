// Gated activations: out = act(gate) * up, as bf16 or f32. Element-wise; POD only: ISA folders include this header.
//   silu: x / (1 + exp(-x));  gelu_tanh: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
// The same polynomial exp is used for every element, vector body and tail alike, so a value's bits do not depend on its place.
#pragma once

#include <cstdint>

namespace pith {

enum class Activation : int32_t { kSilu = 0, kGeluTanh = 1 };

struct GatedActivationParams {
  const float* gate = nullptr;  // [num_rows, dim], rows gate_stride floats apart
  const float* up = nullptr;
  int64_t gate_stride = 0, up_stride = 0;
  uint16_t* out = nullptr;   // bf16 bits [num_rows, dim], rows out_stride elements apart; or null
  float* out_f32 = nullptr;  // the same in f32, or null; may be `gate` itself. Exactly one of the two is set.
  int64_t out_stride = 0;
  int64_t num_rows = 0, dim = 0;
  Activation activation = Activation::kSilu;
};

}  // namespace pith
