#include "kernels/attention.h"

#include <immintrin.h>

#include "kernels/cpu/avx512/vector_math.h"
#include "kernels/cpu/kv_append_rows.h"

namespace pith {
namespace {

struct Bf16Store {
  static constexpr KvDtype kDtype = KvDtype::kBf16;
  static void Store(const float* in, int64_t head_dim, uint8_t* out, float* /*scale*/) {
    for (int64_t i = 0; i < head_dim; i += 16) {
      const __mmask16 mask = FirstLanes(head_dim - i);
      _mm256_mask_storeu_epi16(out + 2 * i, mask, Bf16FromF32(_mm512_maskz_loadu_ps(mask, in + i)));
    }
  }
};

inline uint32_t LargestMagnitude(const float* in, int64_t head_dim) {
  __m512i largest = _mm512_setzero_si512();
  for (int64_t i = 0; i < head_dim; i += 16) {
    const __m512i bits = _mm512_maskz_loadu_epi32(FirstLanes(head_dim - i), in + i);
    largest = _mm512_max_epu32(largest, _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF)));
  }
  return _mm512_reduce_max_epu32(largest);
}

struct Int8Store {
  static constexpr KvDtype kDtype = KvDtype::kInt8;
  static void Store(const float* in, int64_t head_dim, uint8_t* out, float* scale) {
    const float step = ScaleOf(LargestMagnitude(in, head_dim), 127.0f, scale);
    const __m512 divisor = _mm512_set1_ps(step);
    for (int64_t i = 0; i < head_dim; i += 16) {
      const __mmask16 mask = FirstLanes(head_dim - i);
      const __m512i code = _mm512_cvtps_epi32(_mm512_div_ps(_mm512_maskz_loadu_ps(mask, in + i), divisor));
      const __m512i limited = _mm512_min_epi32(_mm512_max_epi32(code, _mm512_set1_epi32(-127)), _mm512_set1_epi32(127));
      _mm_mask_storeu_epi8(out + i, mask, _mm512_cvtepi32_epi8(step == kNoCodes ? _mm512_setzero_si512() : limited));
    }
  }
};

struct Fp8Store {
  static constexpr KvDtype kDtype = KvDtype::kFp8;
  static void Store(const float* in, int64_t head_dim, uint8_t* out, float* scale) {
    const float step = ScaleOf(LargestMagnitude(in, head_dim), 448.0f, scale);
    const __m512 divisor = _mm512_set1_ps(step);
    for (int64_t i = 0; i < head_dim; i += 16) {
      const __mmask16 mask = FirstLanes(head_dim - i);
      const __m512i code = E4m3Of(_mm512_div_ps(_mm512_maskz_loadu_ps(mask, in + i), divisor));
      _mm_mask_storeu_epi8(out + i, mask, _mm512_cvtepi32_epi8(step == kNoCodes ? _mm512_setzero_si512() : code));
    }
  }

 private:
  static __m512i E4m3Of(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF));
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(magnitude, 20), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(magnitude, _mm512_set1_epi32(0x7FFFF)), odd);
    const __m512i normal = _mm512_sub_epi32(_mm512_srli_epi32(rounded, 20), _mm512_set1_epi32(120 << 3));
    // Below 2^-6 steps of 2^-9; eight of them are the first normal number.
    const __m512i subnormal = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_castsi512_ps(magnitude), _mm512_set1_ps(512.0f)));
    const __mmask16 small = _mm512_cmplt_epu32_mask(magnitude, _mm512_set1_epi32(0x3C800000));
    const __m512i code = _mm512_min_epi32(_mm512_mask_mov_epi32(normal, small, subnormal), _mm512_set1_epi32(0x7E));
    return _mm512_or_si512(code, _mm512_and_si512(_mm512_srli_epi32(bits, 24), _mm512_set1_epi32(0x80)));
  }
};

}  // namespace

void kv_append_f32_bf16__avx512(const KvAppendParams& p) { AppendRows<Bf16Store>(p); }
void kv_append_f32_int8__avx512(const KvAppendParams& p) { AppendRows<Int8Store>(p); }
void kv_append_f32_fp8__avx512(const KvAppendParams& p) { AppendRows<Fp8Store>(p); }

}  // namespace pith
