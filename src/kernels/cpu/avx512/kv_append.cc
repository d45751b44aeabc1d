#include "kernels/attention.h"

#include <immintrin.h>

#include "kernels/cpu/avx512/fp8.h"
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
      const __m512i code = E4m3FromF32(_mm512_div_ps(_mm512_maskz_loadu_ps(mask, in + i), divisor));
      _mm_mask_storeu_epi8(out + i, mask, _mm512_cvtepi32_epi8(step == kNoCodes ? _mm512_setzero_si512() : code));
    }
  }
};

}  // namespace

void kv_append_f32_bf16__avx512(const KvAppendParams& p) { AppendRows<Bf16Store>(p); }
void kv_append_f32_int8__avx512(const KvAppendParams& p) { AppendRows<Int8Store>(p); }
void kv_append_f32_fp8__avx512(const KvAppendParams& p) { AppendRows<Fp8Store>(p); }

}  // namespace pith
