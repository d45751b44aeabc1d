#include "kernels/attention.h"

#include <immintrin.h>

#include "kernels/cpu/avx2/fp8.h"
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
      const __m256i code = E4m3FromF32(_mm256_div_ps(LoadF32(in + i, head_dim - i), divisor));
      StoreBytes(out + i, head_dim - i, step == kNoCodes ? _mm256_setzero_si256() : code);
    }
  }
};

}  // namespace

void kv_append_f32_bf16__avx2(const KvAppendParams& p) { AppendRows<Bf16Store>(p); }
void kv_append_f32_int8__avx2(const KvAppendParams& p) { AppendRows<Int8Store>(p); }
void kv_append_f32_fp8__avx2(const KvAppendParams& p) { AppendRows<Fp8Store>(p); }

}  // namespace pith
