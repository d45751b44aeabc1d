#include "kernels/attention.h"
#include "kernels/cpu/avx512/attention_lanes.h"

namespace pith {
namespace {

struct Fp8Format {
  static constexpr KvDtype kDtype = KvDtype::kFp8;

  // e4m3 -> bf16: a normal number keeps its mantissa and gets the other bias; the seven subnormals come from a table.
  static __m512i Load(const uint8_t* in, int64_t left) {
    const __m512i code = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(FirstBytes(left), in));
    const __m512i magnitude = _mm512_and_si512(code, _mm512_set1_epi16(0x7F));
    const __m512i normal = _mm512_add_epi16(_mm512_slli_epi16(magnitude, 4), _mm512_set1_epi16(120 << 7));
    const __mmask32 subnormal = _mm512_cmplt_epu16_mask(magnitude, _mm512_set1_epi16(8));
    const __m512i bits = _mm512_mask_permutexvar_epi16(normal, subnormal, magnitude, Subnormals());
    const __m512i sign = _mm512_slli_epi16(_mm512_and_si512(code, _mm512_set1_epi16(0x80)), 8);
    return _mm512_or_si512(bits, sign);
  }

 private:
  // bf16 bits of m * 2^-9 for m = 0 .. 7.
  static __m512i Subnormals() { return _mm512_broadcast_i32x4(_mm_setr_epi16(0, 0x3B00, 0x3B80, 0x3BC0, 0x3C00, 0x3C20, 0x3C40, 0x3C60)); }
};

}  // namespace

void attention_f32_fp8_bf16__avx512(const AttentionParams& p) { AttendTiles<Avx512Lanes<Fp8Format>>(p); }
void attention_combine_f32_fp8_bf16__avx512(const AttentionParams& p) { CombineTile<Avx512Lanes<Fp8Format>>(p); }

}  // namespace pith
