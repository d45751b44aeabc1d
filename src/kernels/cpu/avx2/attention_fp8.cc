#include "kernels/attention.h"
#include "kernels/cpu/avx2/attention_lanes.h"

namespace pith {
namespace {

struct Fp8Format {
  static constexpr KvDtype kDtype = KvDtype::kFp8;

  // e4m3 -> bf16: a normal number keeps its mantissa and gets the other bias; the seven subnormals come from a table.
  static __m256i Load(const uint8_t* in, int64_t left) {
    const auto* from = reinterpret_cast<const __m128i*>(in);
    const __m256i code = _mm256_cvtepu8_epi16(left >= 16 ? _mm_loadu_si128(from) : _mm_loadl_epi64(from));
    const __m256i magnitude = _mm256_and_si256(code, _mm256_set1_epi16(0x7F));
    const __m256i normal = _mm256_add_epi16(_mm256_slli_epi16(magnitude, 4), _mm256_set1_epi16(120 << 7));
    // Bytes 2 m and 2 m + 1 of the table; indices of other magnitudes are not used.
    const __m256i bytes = _mm256_add_epi16(_mm256_mullo_epi16(magnitude, _mm256_set1_epi16(0x0202)), _mm256_set1_epi16(0x0100));
    const __m256i subnormal = _mm256_shuffle_epi8(Subnormals(), bytes);
    const __m256i is_subnormal = _mm256_cmpgt_epi16(_mm256_set1_epi16(8), magnitude);
    const __m256i sign = _mm256_slli_epi16(_mm256_and_si256(code, _mm256_set1_epi16(0x80)), 8);
    return _mm256_or_si256(_mm256_blendv_epi8(normal, subnormal, is_subnormal), sign);
  }

 private:
  // bf16 bits of m * 2^-9 for m = 0 .. 7.
  static __m256i Subnormals() {
    return _mm256_broadcastsi128_si256(_mm_setr_epi16(0, 0x3B00, 0x3B80, 0x3BC0, 0x3C00, 0x3C20, 0x3C40, 0x3C60));
  }
};

}  // namespace

void attention_f32_fp8_bf16__avx2(const AttentionParams& p) { AttendTiles<Avx2Lanes<Fp8Format>>(p); }
void attention_combine_f32_fp8_bf16__avx2(const AttentionParams& p) { CombineTile<Avx2Lanes<Fp8Format>>(p); }

}  // namespace pith
