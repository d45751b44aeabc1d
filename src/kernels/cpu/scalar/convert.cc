#include "kernels/cpu/scalar/bf16.h"
#include "kernels/embedding.h"

namespace pith {

void convert_f32_bf16__scalar(const ConvertParams& p) {
  for (int64_t i = 0; i < p.count; ++i) p.out[i] = Bf16FromF32(p.in[i]);
}

}  // namespace pith
