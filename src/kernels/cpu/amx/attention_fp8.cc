#include "kernels/cpu/amx/attention_lanes.h"

namespace pith {

void attention_f32_fp8_bf16__amx(const AttentionParams& p) { Attend<Fp8Format>(p); }
void attention_combine_f32_fp8_bf16__amx(const AttentionParams& p) { CombineTile<AmxLanes<Fp8Format>>(p); }

}  // namespace pith
