#include "kernels/attention.h"
#include "kernels/cpu/avx2/attention_lanes.h"

namespace pith {
namespace {

struct Bf16Format {
  static constexpr KvDtype kDtype = KvDtype::kBf16;
  static __m256i Load(const uint8_t* in, int64_t left) { return LoadPairs(in, left); }
};

}  // namespace

void attention_f32_bf16_bf16__avx2(const AttentionParams& p) { AttendTiles<Avx2Lanes<Bf16Format>>(p); }
void attention_combine_f32_bf16_bf16__avx2(const AttentionParams& p) { CombineTile<Avx2Lanes<Bf16Format>>(p); }

}  // namespace pith
