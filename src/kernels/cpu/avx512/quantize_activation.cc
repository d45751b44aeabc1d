#include "kernels/quantize_activation.h"

#include <immintrin.h>

#include "kernels/cpu/avx512/vector_math.h"

namespace pith {
namespace {

inline float MaxMagnitude(const float* x, int64_t count) {
  __m512 max[2] = {};
  for (int64_t i = 0; i < count; i += 32) {
    max[0] = _mm512_max_ps(max[0], _mm512_abs_ps(_mm512_maskz_loadu_ps(FirstLanes(count - i), x + i)));
    max[1] = _mm512_max_ps(max[1], _mm512_abs_ps(_mm512_maskz_loadu_ps(FirstLanes(count - i - 16), x + i + 16)));
  }
  return ReduceMax(_mm512_max_ps(max[0], max[1]));
}

// The low bytes of the first lanes. Whole vectors avoid the masked store, which is slow on some CPUs.
inline void StoreBytes(int8_t* out, __mmask16 mask, __m512i x) {
  if (mask == 0xFFFF) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_cvtepi32_epi8(x));
  } else {
    _mm512_mask_cvtepi32_storeu_epi8(out, mask, x);
  }
}

// One sum group: integers, planes and their sum.
template <bool kStatic, bool kTwoPlanes> int32_t QuantizeRun(const float* x, int64_t count, float factor, int8_t* high, int8_t* low) {
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

void quantize_activation_f32_int8__avx512(const QuantizeActivationParams& p) {
  for (int64_t row = 0; row < p.num_rows; ++row) {
    for (int64_t i = 0, g = 0; i < p.dim; i += p.group_size, ++g) {
      const int64_t out = row * p.out_stride + i;
      QuantizeGroup(p, p.x + row * p.x_stride + i, p.high + out, p.low != nullptr ? p.low + out : nullptr,
                    p.scale + row * p.scale_stride + g, p.sum + row * p.sum_stride + i / p.sum_group);
    }
  }
}

}  // namespace pith
