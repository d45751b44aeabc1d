#include "kernels/cpu/amx/attention_lanes.h"

namespace pith {

void attention_f32_bf16_bf16__amx(const AttentionParams& p) { Attend<Bf16Format>(p); }
void attention_combine_f32_bf16_bf16__amx(const AttentionParams& p) { CombineTile<AmxLanes<Bf16Format>>(p); }

}  // namespace pith
