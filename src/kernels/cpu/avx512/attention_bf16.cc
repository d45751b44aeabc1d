#include "kernels/attention.h"
#include "kernels/cpu/avx512/attention_lanes.h"

namespace pith {
namespace {

struct Bf16Format {
  static constexpr KvDtype kDtype = KvDtype::kBf16;
  static __m512i Load(const uint8_t* in, int64_t left) { return _mm512_maskz_loadu_epi32(FirstLanes(left / 2), in); }
};

}  // namespace

void attention_f32_bf16_bf16__avx512(const AttentionParams& p) { AttendTiles<Avx512Lanes<Bf16Format>>(p); }
void attention_combine_f32_bf16_bf16__avx512(const AttentionParams& p) { CombineTile<Avx512Lanes<Bf16Format>>(p); }

}  // namespace pith
