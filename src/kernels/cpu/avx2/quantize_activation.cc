#include "kernels/quantize_activation.h"

#include <immintrin.h>

#include "kernels/cpu/avx2/vector_math.h"

namespace pith {
namespace {

inline float MaxMagnitude(const float* x, int64_t count) {
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
  __m256 max = _mm256_setzero_ps();
  for (int64_t i = 0; i < count; i += 8) max = _mm256_max_ps(max, _mm256_and_ps(magnitude, LoadF32(x + i, count - i)));
  return ReduceMax(max);
}

// The low bytes of the first `count` of 8 lanes.
inline void StoreBytes(int8_t* out, int64_t count, __m256i x) {
  const __m256i select = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12, -1, -1, -1, -1, -1, -1,
                                          -1, -1, -1, -1, -1, -1);
  const __m256i bytes = _mm256_shuffle_epi8(x, select);
  const __m128i packed = _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
  int8_t eight[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(eight), packed);
  if (count >= 8) {
    __builtin_memcpy(out, eight, 8);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = eight[i];
  }
}

inline int32_t ReduceAddInt(__m256i x) {
  __m128i q = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  q = _mm_add_epi32(q, _mm_shuffle_epi32(q, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(q, _mm_shuffle_epi32(q, 0xB1)));
}

// One sum group: integers, planes and their sum.
template <bool kStatic, bool kTwoPlanes> int32_t QuantizeRun(const float* x, int64_t count, float factor, int8_t* high, int8_t* low) {
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

void QuantizeGroup(const QuantizeActivationParams& p, const float* x, int8_t* high, int8_t* low, float* scale, int32_t* sum) {
  float factor = p.static_scale;
  if (p.static_scale > 0) {
    *scale = p.static_scale;
  } else {
    const float limit = low != nullptr ? kInt16ActivationLimit : kInt8ActivationLimit;
    const float max = MaxMagnitude(x, p.group_size);
    const bool zero = max < kSmallestActivationMax;
    *scale = zero ? 0.0f : max / limit;
    factor = zero ? 0.0f : limit / max;
  }
  for (int64_t i = 0; i < p.group_size; i += p.sum_group, ++sum) {
    if (p.static_scale > 0) {
      *sum = QuantizeRun<true, false>(x + i, p.sum_group, factor, high + i, nullptr);
    } else if (low != nullptr) {
      *sum = QuantizeRun<false, true>(x + i, p.sum_group, factor, high + i, low + i);
    } else {
      *sum = QuantizeRun<false, false>(x + i, p.sum_group, factor, high + i, nullptr);
    }
  }
}

}  // namespace

void quantize_activation_f32_int8__avx2(const QuantizeActivationParams& p) {
  for (int64_t row = 0; row < p.num_rows; ++row) {
    for (int64_t i = 0, g = 0; i < p.dim; i += p.group_size, ++g) {
      const int64_t out = row * p.out_stride + i;
      QuantizeGroup(p, p.x + row * p.x_stride + i, p.high + out, p.low != nullptr ? p.low + out : nullptr,
                    p.scale + row * p.scale_stride + g, p.sum + row * p.sum_stride + i / p.sum_group);
    }
  }
}

}  // namespace pith
