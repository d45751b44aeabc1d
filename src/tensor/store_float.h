// The inverse of ConvertToFloat for one element.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace pith {

// Rounds `value` to the dtype of `out` (F32, F16 or BF16) and stores it as element `index`.
void StoreFloat(float value, int64_t index, Tensor& out);

}  // namespace pith
