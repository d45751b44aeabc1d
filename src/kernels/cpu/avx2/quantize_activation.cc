#include "kernels/quantize_activation.h"

#include <immintrin.h>

#include "kernels/cpu/avx2/fp8.h"
#include "kernels/cpu/avx2/vector_math.h"
#include "kernels/cpu/quantize_activation_rows.h"

namespace pith {
namespace {

inline int32_t ReduceAddInt(__m256i x) {
  __m128i q = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  q = _mm_add_epi32(q, _mm_shuffle_epi32(q, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(q, _mm_shuffle_epi32(q, 0xB1)));
}

struct Vectors {
  static float MaxMagnitude(const float* x, int64_t count) {
    const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
    __m256 max = _mm256_setzero_ps();
    for (int64_t i = 0; i < count; i += 8) max = _mm256_max_ps(max, _mm256_and_ps(magnitude, LoadF32(x + i, count - i)));
    return ReduceMax(max);
  }

  // One sum group: integers, planes and their sum.
  template <bool kStatic, bool kTwoPlanes> static int32_t Run(const float* x, int64_t count, float factor, int8_t* high, int8_t* low) {
    const __m256 factors = _mm256_set1_ps(factor);
    __m256i sum = _mm256_setzero_si256();
    for (int64_t i = 0; i < count; i += 8) {
      const __m256 value = LoadF32(x + i, count - i);
      __m256i q;
      if constexpr (kStatic) {
        const __m256 quotient = _mm256_div_ps(value, factors);
        q = _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(quotient, _mm256_set1_ps(-128.0f)), _mm256_set1_ps(127.0f)));
      } else {
        q = _mm256_cvtps_epi32(_mm256_mul_ps(value, factors));
      }
      sum = _mm256_add_epi32(sum, q);
      __m256i upper = q;
      if constexpr (kTwoPlanes) {
        upper = _mm256_srai_epi32(_mm256_add_epi32(q, _mm256_set1_epi32(128)), 8);
        StoreBytes(low + i, count - i, q);  // truncation keeps q - 256 upper
      }
      StoreBytes(high + i, count - i, upper);
    }
    return ReduceAddInt(sum);
  }

  template <bool kStatic> static void RunFp8(const float* x, int64_t count, float factor, uint16_t* out) {
    const __m256 factors = _mm256_set1_ps(factor);
    for (int64_t i = 0; i < count; i += 8) {
      const __m256 value = LoadF32(x + i, count - i);
      const __m256i code = E4m3FromF32(kStatic ? _mm256_div_ps(value, factors) : _mm256_mul_ps(value, factors));
      const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(code), _mm256_extracti128_si256(code, 1));
      StoreBf16(out + i, count - i, _mm256_castsi256_si128(Bf16FromE4m3(_mm256_zextsi128_si256(words))));
    }
  }
};

}  // namespace

void quantize_activation_f32_int8__avx2(const QuantizeActivationParams& p) { QuantizeRows<Vectors>(p); }
void quantize_activation_f32_fp8__avx2(const QuantizeActivationFp8Params& p) { QuantizeFp8Rows<Vectors>(p); }

}  // namespace pith
