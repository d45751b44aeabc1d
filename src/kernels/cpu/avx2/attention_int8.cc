#include "kernels/attention.h"
#include "kernels/cpu/avx2/attention_lanes.h"

namespace pith {
namespace {

struct Int8Format {
  static constexpr KvDtype kDtype = KvDtype::kInt8;

  // 8 bits of significand: the upper halves of the f32 are exact.
  static __m256i Load(const uint8_t* in, int64_t left) {
    const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(in));
    const __m128i high = left >= 16 ? _mm_loadl_epi64(reinterpret_cast<const __m128i*>(in + 8)) : _mm_setzero_si128();
    const __m256i packed = _mm256_packus_epi32(UpperHalves(low), UpperHalves(high));  // per 128-bit lane: 4 of low, 4 of high
    return _mm256_permute4x64_epi64(packed, 0xD8);
  }

 private:
  static __m256i UpperHalves(__m128i codes) {
    return _mm256_srli_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes))), 16);
  }
};

}  // namespace

void attention_f32_int8_bf16__avx2(const AttentionParams& p) { AttendTiles<Avx2Lanes<Int8Format>>(p); }
void attention_combine_f32_int8_bf16__avx2(const AttentionParams& p) { CombineTile<Avx2Lanes<Int8Format>>(p); }

}  // namespace pith
