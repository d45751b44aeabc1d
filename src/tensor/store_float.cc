#include "tensor/store_float.h"

namespace pith {

void StoreFloat(float value, int64_t index, Tensor& out) {
  const auto at = static_cast<size_t>(index);
  switch (out.dtype()) {
    case DType::kBF16: out.as<bfloat16>()[at] = ToBfloat16(value); return;
    case DType::kF16: out.as<float16>()[at] = ToFloat16(value); return;
    default: out.as<float>()[at] = value;
  }
}

}  // namespace pith
