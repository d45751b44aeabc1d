// Registers that the integer GEMM rows of AVX2 and of AVX2 with AVX-VNNI share: 16 output columns in two ymm, four k per 32-bit lane.
// What they do not share is how products are summed: `IntegerLanes` of either folder.
// Include in one translation unit only (see gemm_integer_driver.h).
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/gemm_integer_driver.h"

namespace pith {
namespace {

struct IntegerRegisters {
  struct Pair {  // columns 0..7 and 8..15
    __m256i low, high;
  };
  struct Float {
    __m256 low, high;
  };
  using Weights = Pair;
  using Int = Pair;

  static PITH_ALWAYS_INLINE __m256i Load256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static PITH_ALWAYS_INLINE void Store256(void* p, __m256i x) { _mm256_storeu_si256(static_cast<__m256i*>(p), x); }
  static PITH_ALWAYS_INLINE Weights LoadWeights(const uint8_t* p) { return {Load256(p), Load256(p + 32)}; }
  static PITH_ALWAYS_INLINE void StoreWeights(uint8_t* p, Weights w) {
    Store256(p, w.low);
    Store256(p + 32, w.high);
  }
  static PITH_ALWAYS_INLINE Weights LowNibbles(Weights both) {
    const __m256i mask = _mm256_set1_epi8(15);
    return {_mm256_and_si256(both.low, mask), _mm256_and_si256(both.high, mask)};
  }
  static PITH_ALWAYS_INLINE Weights HighNibbles(Weights both) {
    return LowNibbles({_mm256_srli_epi16(both.low, 4), _mm256_srli_epi16(both.high, 4)});
  }
  static PITH_ALWAYS_INLINE __m256i Broadcast32(const int8_t* p) {
    int32_t four;
    __builtin_memcpy(&four, p, 4);
    return _mm256_set1_epi32(four);
  }
  static PITH_ALWAYS_INLINE Pair AddPairs(Pair a, Pair b) { return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)}; }

  static PITH_ALWAYS_INLINE Int LoadInt(const int32_t* p) { return {Load256(p), Load256(p + 8)}; }
  static PITH_ALWAYS_INLINE void StoreInt(int32_t* p, Int x) {
    Store256(p, x.low);
    Store256(p + 8, x.high);
  }
  static PITH_ALWAYS_INLINE __m128i Load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
  static PITH_ALWAYS_INLINE Int LoadU8(const uint8_t* p) {
    const __m128i bytes = Load128(p);
    return {_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))};
  }
  static PITH_ALWAYS_INLINE Int SubtractProduct(Int x, Int a, int32_t b) {
    const __m256i factor = _mm256_set1_epi32(b);
    return {_mm256_sub_epi32(x.low, _mm256_mullo_epi32(a.low, factor)), _mm256_sub_epi32(x.high, _mm256_mullo_epi32(a.high, factor))};
  }
  static PITH_ALWAYS_INLINE Float ToFloat(Int x) { return {_mm256_cvtepi32_ps(x.low), _mm256_cvtepi32_ps(x.high)}; }
  static PITH_ALWAYS_INLINE Float Set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static PITH_ALWAYS_INLINE Float Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static PITH_ALWAYS_INLINE void Store(float* p, Float x) {
    _mm256_storeu_ps(p, x.low);
    _mm256_storeu_ps(p + 8, x.high);
  }
  static PITH_ALWAYS_INLINE Float Multiply(Float a, Float b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
  static PITH_ALWAYS_INLINE Float Fma(Float a, Float b, Float c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static PITH_ALWAYS_INLINE __m256 Widen(__m128i bf16) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bf16), 16)); }
  static PITH_ALWAYS_INLINE Float LoadScale(const uint8_t* base, const PanelLayout& layout, int64_t group) {
    const GemmScale type = layout.scale;
    if (type == GemmScale::kI8) {
      const __m128i codes = Load128(base + group * kGemmPanel);
      const uint8_t* units = base + UnitOffset(layout, group);
      return {_mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)), _mm256_cvtph_ps(Load128(units))),
              _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(codes, 8))), _mm256_cvtph_ps(Load128(units + 16)))};
    }
    if (type == GemmScale::kF32) return Load(reinterpret_cast<const float*>(base) + group * kGemmPanel);
    const __m128i low = Load128(base + group * kGemmPanel * 2), high = Load128(base + group * kGemmPanel * 2 + 16);
    if (type == GemmScale::kF16) return {_mm256_cvtph_ps(low), _mm256_cvtph_ps(high)};
    return {Widen(low), Widen(high)};
  }
};

}  // namespace
}  // namespace pith
