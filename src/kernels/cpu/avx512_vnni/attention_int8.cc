#include "kernels/cpu/avx512_vnni/attention_int8_lanes.h"

namespace pith {

void attention_f32_int8_bf16__avx512_vnni(const AttentionParams& p) { AttendTiles<VnniLanes>(p); }
void attention_combine_f32_int8_bf16__avx512_vnni(const AttentionParams& p) { CombineTile<VnniLanes>(p); }

}  // namespace pith
