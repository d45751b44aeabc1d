#include "kernels/cpu/avx512/attention_formats.h"
#include "kernels/cpu/avx512/attention_lanes.h"

namespace pith {

void attention_f32_fp8_bf16__avx512(const AttentionParams& p) { AttendTiles<Avx512Lanes<Fp8Format>>(p); }
void attention_combine_f32_fp8_bf16__avx512(const AttentionParams& p) { CombineTile<Avx512Lanes<Fp8Format>>(p); }

}  // namespace pith
