#include "kernels/attention.h"

#include <immintrin.h>

#include "kernels/cpu/avx2/vector_math.h"
#include "kernels/cpu/kv_append_rows.h"

namespace pith {
namespace {

struct Bf16Store {
  static constexpr KvDtype kDtype = KvDtype::kBf16;
  static void Store(const float* in, int64_t head_dim, uint8_t* out, float* /*scale*/) {
    auto* words = reinterpret_cast<uint16_t*>(out);
    for (int64_t i = 0; i < head_dim; i += 8) StoreBf16(words + i, head_dim - i, Bf16FromF32(LoadF32(in + i, head_dim - i)));
  }
};

inline uint32_t LargestMagnitude(const float* in, int64_t head_dim) {
  __m256i largest = _mm256_setzero_si256();
  for (int64_t i = 0; i < head_dim; i += 8) {
    const __m256i bits = _mm256_castps_si256(LoadF32(in + i, head_dim - i));
    largest = _mm256_max_epu32(largest, _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFFFF)));
  }
  __m128i half = _mm_max_epu32(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
  half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0x4E));
  half = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0xB1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(half));
}

struct Int8Store {
  static constexpr KvDtype kDtype = KvDtype::kInt8;
  static void Store(const float* in, int64_t head_dim, uint8_t* out, float* scale) {
    const float step = ScaleOf(LargestMagnitude(in, head_dim), 127.0f, scale);
    const __m256 divisor = _mm256_set1_ps(step);
    for (int64_t i = 0; i < head_dim; i += 8) {
      const __m256i code = _mm256_cvtps_epi32(_mm256_div_ps(LoadF32(in + i, head_dim - i), divisor));
      const __m256i limited = _mm256_min_epi32(_mm256_max_epi32(code, _mm256_set1_epi32(-127)), _mm256_set1_epi32(127));
      StoreBytes(out + i, head_dim - i, step == kNoCodes ? _mm256_setzero_si256() : limited);
    }
  }
};

struct Fp8Store {
  static constexpr KvDtype kDtype = KvDtype::kFp8;
  static void Store(const float* in, int64_t head_dim, uint8_t* out, float* scale) {
    const float step = ScaleOf(LargestMagnitude(in, head_dim), 448.0f, scale);
    const __m256 divisor = _mm256_set1_ps(step);
    for (int64_t i = 0; i < head_dim; i += 8) {
      const __m256i code = E4m3Of(_mm256_div_ps(LoadF32(in + i, head_dim - i), divisor));
      StoreBytes(out + i, head_dim - i, step == kNoCodes ? _mm256_setzero_si256() : code);
    }
  }

 private:
  static __m256i E4m3Of(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFFFF));
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(magnitude, 20), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(magnitude, _mm256_set1_epi32(0x7FFFF)), odd);
    const __m256i normal = _mm256_sub_epi32(_mm256_srli_epi32(rounded, 20), _mm256_set1_epi32(120 << 3));
    // Below 2^-6 steps of 2^-9; eight of them are the first normal number.
    const __m256i subnormal = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_castsi256_ps(magnitude), _mm256_set1_ps(512.0f)));
    const __m256i small = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x3C800000), magnitude);
    const __m256i code = _mm256_min_epi32(_mm256_blendv_epi8(normal, subnormal, small), _mm256_set1_epi32(0x7E));
    return _mm256_or_si256(code, _mm256_and_si256(_mm256_srli_epi32(bits, 24), _mm256_set1_epi32(0x80)));
  }
};

}  // namespace

void kv_append_f32_bf16__avx2(const KvAppendParams& p) { AppendRows<Bf16Store>(p); }
void kv_append_f32_int8__avx2(const KvAppendParams& p) { AppendRows<Int8Store>(p); }
void kv_append_f32_fp8__avx2(const KvAppendParams& p) { AppendRows<Fp8Store>(p); }

}  // namespace pith
