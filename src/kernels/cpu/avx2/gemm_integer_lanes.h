// Registers of the integer GEMM rows on AVX2: 16 output columns in two ymm, four k per 32-bit lane.
//
// Codes of one byte would saturate vpmaddubsw, so they are multiplied as 16-bit numbers, even and odd k apart; a 16-bit activation then
// costs no more than an 8-bit one. Nibbles (kNarrow) times int8 fit: 2 * 15 * 128 < 2^15.
// Include in one translation unit only (see gemm_integer_driver.h).
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/gemm_integer_driver.h"

namespace pith {
namespace {

template <bool kNarrow> struct IntegerLanes {
  struct Pair {  // columns 0..7 and 8..15
    __m256i low, high;
  };
  struct Float {
    __m256 low, high;
  };
  using Weights = Pair;
  using Int = Pair;
  template <int kPlanes> struct Sum { __m256i low, high; };
  template <int kPlanes> struct Multiplicand {  // 16-bit numbers of the even and the odd k; or four bytes of a lane in `even`
    __m256i even, odd;
  };
  template <int kPlanes> static constexpr int kSums = 2;
  static constexpr int kDirectRows = 4;
  template <int kPlanes> static constexpr int64_t kDirectMax = 4;
  template <int kPlanes> static constexpr int kTileRows = 4;
  static constexpr int kTilePanels = 1;
  static constexpr int DirectPanels(int) { return 1; }

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

  template <int kPlanes> static PITH_ALWAYS_INLINE Sum<kPlanes> Start(int32_t value) {
    return {_mm256_set1_epi32(value), _mm256_set1_epi32(value)};
  }
  template <int kPlanes> static PITH_ALWAYS_INLINE Sum<kPlanes> Add(Sum<kPlanes> a, Sum<kPlanes> b) {
    return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
  }
  template <int kPlanes> static PITH_ALWAYS_INLINE Sum<kPlanes> AddInt(Sum<kPlanes> a, Int b) {
    return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
  }
  template <int kPlanes> static PITH_ALWAYS_INLINE Int Value(Sum<kPlanes> sum) { return {sum.low, sum.high}; }

  // Sign-extended even and odd bytes of every 16-bit number.
  static PITH_ALWAYS_INLINE __m256i EvenBytes(__m256i x) { return _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8); }
  static PITH_ALWAYS_INLINE __m256i OddBytes(__m256i x) { return _mm256_srai_epi16(x, 8); }
  static PITH_ALWAYS_INLINE __m256i Broadcast32(const int8_t* p) {
    int32_t four;
    __builtin_memcpy(&four, p, 4);
    return _mm256_set1_epi32(four);
  }

  // Four k of one row, for every column.
  template <int kPlanes> static PITH_ALWAYS_INLINE Multiplicand<kPlanes> Broadcast(const int8_t* high, const int8_t* low) {
    const __m256i upper = Broadcast32(high);
    if constexpr (kPlanes == 2) {
      const __m256i lower = Broadcast32(low);
      const __m256i even = _mm256_add_epi16(_mm256_slli_epi16(upper, 8), EvenBytes(lower));
      const __m256i odd = _mm256_add_epi16(_mm256_and_si256(upper, _mm256_set1_epi16(-256)), OddBytes(lower));
      return {even, odd};
    } else if constexpr (kNarrow) {
      return {upper, upper};
    } else {
      return {EvenBytes(upper), OddBytes(upper)};
    }
  }
  template <int kPlanes> static PITH_ALWAYS_INLINE __m256i Dot(__m256i sum, __m256i weights, const Multiplicand<kPlanes>& a) {
    if constexpr (kNarrow && kPlanes == 1) {
      return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(weights, a.even), _mm256_set1_epi16(1)));
    } else {
      const __m256i even = _mm256_madd_epi16(_mm256_and_si256(weights, _mm256_set1_epi16(255)), a.even);
      const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(weights, 8), a.odd);
      return _mm256_add_epi32(sum, _mm256_add_epi32(even, odd));
    }
  }
  template <int kPlanes> static PITH_ALWAYS_INLINE void Accumulate(Sum<kPlanes>& sum, Weights weights, const Multiplicand<kPlanes>& a) {
    sum.low = Dot<kPlanes>(sum.low, weights.low, a);
    sum.high = Dot<kPlanes>(sum.high, weights.high, a);
  }

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
