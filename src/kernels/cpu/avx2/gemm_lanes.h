// Registers of the f32 FMA GEMM rows on AVX2: 16 output columns in two ymm, planes of one k. Activations become f32 chunk by chunk.
// Include in one translation unit only (see gemm_driver.h).
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/gemm_driver.h"

namespace pith {
namespace {

struct Lanes {
  struct Vec {  // columns 0..7 and 8..15
    __m256 low, high;
  };
  using Plane = Vec;
  using Activation = float;
  static constexpr bool kConvertsActivations = true;
  static constexpr int kPlaneK = 1, kPlaneBytes = 64;
  static constexpr int kDirectRows = 4;
  static constexpr int64_t kDirectChunkK = 1024;
  static constexpr int kTileRows = 6, kTilePanels = 1;                   // 12 accumulators, 2 registers of weights
  static constexpr int64_t kScratchChunkK = 256;                         // 16 KiB of planes
  static constexpr int64_t kConvertedSize = kRowBlock * kScratchChunkK;  // and kDirectRows * kDirectChunkK
  static constexpr int DirectPanels(int rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }

  static PITH_ALWAYS_INLINE Vec Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static PITH_ALWAYS_INLINE Vec Set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static PITH_ALWAYS_INLINE Vec Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static PITH_ALWAYS_INLINE void Store(float* p, Vec x) {
    _mm256_storeu_ps(p, x.low);
    _mm256_storeu_ps(p + 8, x.high);
  }
  static PITH_ALWAYS_INLINE Vec Fma(Vec a, Vec b, Vec c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static PITH_ALWAYS_INLINE Vec FusedMultiplySubtract(Vec a, Vec b, Vec c) {
    return {_mm256_fmsub_ps(a.low, b.low, c.low), _mm256_fmsub_ps(a.high, b.high, c.high)};
  }
  static PITH_ALWAYS_INLINE Vec Multiply(Vec a, Vec b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
  static PITH_ALWAYS_INLINE Vec Subtract(Vec a, Vec b) { return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)}; }
  static PITH_ALWAYS_INLINE __m128i Load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
  static PITH_ALWAYS_INLINE __m256i Load256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static PITH_ALWAYS_INLINE __m256 Bf16ToFloat(__m128i bits) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static PITH_ALWAYS_INLINE Vec LoadF16(const uint8_t* p) { return {_mm256_cvtph_ps(Load128(p)), _mm256_cvtph_ps(Load128(p + 16))}; }
  static PITH_ALWAYS_INLINE Vec LoadBf16(const uint8_t* p) { return {Bf16ToFloat(Load128(p)), Bf16ToFloat(Load128(p + 16))}; }
  static PITH_ALWAYS_INLINE Vec LoadS8(const uint8_t* p) {
    const __m128i bytes = Load128(p);
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
  }
  static PITH_ALWAYS_INLINE Vec LoadU8(const uint8_t* p) {
    const __m128i bytes = Load128(p);
    return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)), _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)))};
  }

  static PITH_ALWAYS_INLINE Plane LoadPlane(const uint8_t* p) { return Load(reinterpret_cast<const float*>(p)); }
  static PITH_ALWAYS_INLINE void StorePlane(uint8_t* p, Plane plane) { Store(reinterpret_cast<float*>(p), plane); }
  static PITH_ALWAYS_INLINE Vec Dot(Vec acc, Plane plane, const float* activation) {
    const __m256 a = _mm256_broadcast_ss(activation);
    return {_mm256_fmadd_ps(plane.low, a, acc.low), _mm256_fmadd_ps(plane.high, a, acc.high)};
  }

  static PITH_ALWAYS_INLINE float Bf16ToFloat(uint16_t bits) {
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value;
    __builtin_memcpy(&value, &wide, 4);
    return value;
  }
  static PITH_ALWAYS_INLINE void Convert(const uint16_t* in, int64_t count, float* out) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) _mm256_storeu_ps(out + i, Bf16ToFloat(Load128(in + i)));
    for (; i < count; ++i) out[i] = Bf16ToFloat(in[i]);
  }
  // Sum of `count` activations: lane i of 8 sums i, i + 8, ..., then a fixed tree, then the rest one by one.
  static PITH_ALWAYS_INLINE float Sum(const uint16_t* activation, int64_t count) {
    __m256 sum = _mm256_setzero_ps();
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) sum = _mm256_add_ps(sum, Bf16ToFloat(Load128(activation + i)));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    float total = _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
    for (; i < count; ++i) total += Bf16ToFloat(activation[i]);
    return total;
  }
};

}  // namespace
}  // namespace pith
