#include "kernels/cpu/avx512/attention_formats.h"
#include "kernels/cpu/avx512/attention_lanes.h"

namespace pith {

void attention_f32_bf16_bf16__avx512(const AttentionParams& p) { AttendTiles<Avx512Lanes<Bf16Format>>(p); }
void attention_combine_f32_bf16_bf16__avx512(const AttentionParams& p) { CombineTile<Avx512Lanes<Bf16Format>>(p); }

}  // namespace pith
