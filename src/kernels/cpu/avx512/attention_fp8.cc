#include "kernels/attention.h"
#include "kernels/cpu/avx512/attention_lanes.h"
#include "kernels/cpu/avx512/fp8.h"

namespace pith {
namespace {

struct Fp8Format {
  static constexpr KvDtype kDtype = KvDtype::kFp8;
  static __m512i Load(const uint8_t* in, int64_t left) {
    return Bf16FromE4m3(_mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(FirstBytes(left), in)));
  }
};

}  // namespace

void attention_f32_fp8_bf16__avx512(const AttentionParams& p) { AttendTiles<Avx512Lanes<Fp8Format>>(p); }
void attention_combine_f32_fp8_bf16__avx512(const AttentionParams& p) { CombineTile<Avx512Lanes<Fp8Format>>(p); }

}  // namespace pith
