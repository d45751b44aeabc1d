#include "kernels/attention.h"
#include "kernels/cpu/avx2/attention_lanes.h"
#include "kernels/cpu/avx2/fp8.h"

namespace pith {
namespace {

struct Fp8Format {
  static constexpr KvDtype kDtype = KvDtype::kFp8;
  static __m256i Load(const uint8_t* in, int64_t left) {
    const auto* from = reinterpret_cast<const __m128i*>(in);
    return Bf16FromE4m3(_mm256_cvtepu8_epi16(left >= 16 ? _mm_loadu_si128(from) : _mm_loadl_epi64(from)));
  }
};

}  // namespace

void attention_f32_fp8_bf16__avx2(const AttentionParams& p) { AttendTiles<Avx2Lanes<Fp8Format>>(p); }
void attention_combine_f32_fp8_bf16__avx2(const AttentionParams& p) { CombineTile<Avx2Lanes<Fp8Format>>(p); }

}  // namespace pith
