#include "kernels/quantize_activation.h"

#include <immintrin.h>

#include "kernels/cpu/avx512/fp8.h"
#include "kernels/cpu/avx512/vector_math.h"
#include "kernels/cpu/quantize_activation_rows.h"

namespace pith {
namespace {

// The low bytes of the first lanes. Whole vectors avoid the masked store, which is slow on some CPUs.
inline void StoreBytes(int8_t* out, __mmask16 mask, __m512i x) {
  if (mask == 0xFFFF) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_cvtepi32_epi8(x));
  } else {
    _mm512_mask_cvtepi32_storeu_epi8(out, mask, x);
  }
}

struct Vectors {
  static float MaxMagnitude(const float* x, int64_t count) {
    __m512 max[2] = {};
    for (int64_t i = 0; i < count; i += 32) {
      max[0] = _mm512_max_ps(max[0], _mm512_abs_ps(_mm512_maskz_loadu_ps(FirstLanes(count - i), x + i)));
      max[1] = _mm512_max_ps(max[1], _mm512_abs_ps(_mm512_maskz_loadu_ps(FirstLanes(count - i - 16), x + i + 16)));
    }
    return ReduceMax(_mm512_max_ps(max[0], max[1]));
  }

  // One sum group: integers, planes and their sum.
  template <bool kStatic, bool kTwoPlanes> static int32_t Run(const float* x, int64_t count, float factor, int8_t* high, int8_t* low) {
    const __m512 factors = _mm512_set1_ps(factor);
    __m512i sum = _mm512_setzero_si512();
    for (int64_t i = 0; i < count; i += 16) {
      const __mmask16 mask = FirstLanes(count - i);
      const __m512 value = _mm512_maskz_loadu_ps(mask, x + i);
      __m512i q;
      if constexpr (kStatic) {
        const __m512 quotient = _mm512_div_ps(value, factors);
        q = _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(quotient, _mm512_set1_ps(-128.0f)), _mm512_set1_ps(127.0f)));
      } else {
        q = _mm512_cvtps_epi32(_mm512_mul_ps(value, factors));
      }
      sum = _mm512_add_epi32(sum, q);
      __m512i upper = q;
      if constexpr (kTwoPlanes) {
        upper = _mm512_srai_epi32(_mm512_add_epi32(q, _mm512_set1_epi32(128)), 8);
        StoreBytes(low + i, mask, q);  // truncation keeps q - 256 upper
      }
      StoreBytes(high + i, mask, upper);
    }
    return _mm512_reduce_add_epi32(sum);
  }

  template <bool kStatic> static void RunFp8(const float* x, int64_t count, float factor, uint16_t* out) {
    const __m512 factors = _mm512_set1_ps(factor);
    for (int64_t i = 0; i < count; i += 16) {
      const __mmask16 mask = FirstLanes(count - i);
      const __m512 value = _mm512_maskz_loadu_ps(mask, x + i);
      const __m512i code = E4m3FromF32(kStatic ? _mm512_div_ps(value, factors) : _mm512_mul_ps(value, factors));
      const __m256i bits = _mm512_castsi512_si256(Bf16FromE4m3(_mm512_zextsi256_si512(_mm512_cvtepi32_epi16(code))));
      if (mask == 0xFFFF) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), bits);
      } else {
        _mm256_mask_storeu_epi16(out + i, mask, bits);
      }
    }
  }
};

}  // namespace

void quantize_activation_f32_int8__avx512(const QuantizeActivationParams& p) { QuantizeRows<Vectors>(p); }
void quantize_activation_f32_fp8__avx512(const QuantizeActivationFp8Params& p) { QuantizeFp8Rows<Vectors>(p); }

}  // namespace pith
