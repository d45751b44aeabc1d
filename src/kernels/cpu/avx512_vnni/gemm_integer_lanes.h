// Registers of the integer GEMM rows: 16 output columns per zmm, four k per 32-bit lane, summed by vpdpbusd (u8 weights, s8 activations).
// Include in one translation unit only (see gemm_integer_driver.h).
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/gemm_integer_driver.h"

namespace pith {
namespace {

struct IntegerLanes {
  using Weights = __m512i;
  using Int = __m512i;
  using Float = __m512;
  template <int kPlanes> struct Sum {
    __m512i plane[kPlanes];  // the upper one first; the value is 256 upper + lower
  };
  template <int kPlanes> struct Multiplicand { __m512i plane[kPlanes]; };
  template <int kPlanes> static constexpr int kSums = kPlanes;
  static constexpr int kChainSums = 8;  // so many get a second chain each
  template <int kPlanes> static constexpr int kDirectRows = 8;
  template <int kPlanes> static constexpr int64_t kDirectMax = 16;
  template <int kPlanes> static constexpr int kTileRows = kPlanes == 2 ? 3 : 6;  // times 4 panels: 24 sums, 4 weights, 1 or 2 activations
  static constexpr int kTilePanels = 4;
  static constexpr int DirectPanels(int sums) { return sums <= 12 ? 2 : 1; }

  static PITH_ALWAYS_INLINE Weights LoadWeights(const uint8_t* p) { return _mm512_load_si512(p); }
  static PITH_ALWAYS_INLINE void StoreWeights(uint8_t* p, Weights w) { _mm512_store_si512(p, w); }
  static PITH_ALWAYS_INLINE Weights LowNibbles(Weights both) { return _mm512_and_si512(both, _mm512_set1_epi8(15)); }
  static PITH_ALWAYS_INLINE Weights HighNibbles(Weights both) { return _mm512_and_si512(_mm512_srli_epi16(both, 4), _mm512_set1_epi8(15)); }

  template <int kPlanes> static PITH_ALWAYS_INLINE Sum<kPlanes> Start(int32_t value) {
    Sum<kPlanes> sum;
    sum.plane[0] = _mm512_setzero_si512();
    sum.plane[kPlanes - 1] = _mm512_set1_epi32(value);
    return sum;
  }
  template <int kPlanes> static PITH_ALWAYS_INLINE Sum<kPlanes> Add(Sum<kPlanes> a, Sum<kPlanes> b) {
    for (int i = 0; i < kPlanes; ++i) a.plane[i] = _mm512_add_epi32(a.plane[i], b.plane[i]);
    return a;
  }
  template <int kPlanes> static PITH_ALWAYS_INLINE Sum<kPlanes> AddInt(Sum<kPlanes> a, Int b) {
    a.plane[kPlanes - 1] = _mm512_add_epi32(a.plane[kPlanes - 1], b);
    return a;
  }
  template <int kPlanes> static PITH_ALWAYS_INLINE Int Value(Sum<kPlanes> sum) {
    if constexpr (kPlanes == 1) return sum.plane[0];
    return _mm512_add_epi32(_mm512_slli_epi32(sum.plane[0], 8), sum.plane[kPlanes - 1]);
  }

  // Four k of one row, for every column.
  template <int kPlanes> static PITH_ALWAYS_INLINE Multiplicand<kPlanes> Broadcast(const int8_t* high, const int8_t* low) {
    Multiplicand<kPlanes> result;
    for (int i = 0; i < kPlanes; ++i) {
      int32_t four;
      __builtin_memcpy(&four, i == 0 ? high : low, 4);
      result.plane[i] = _mm512_set1_epi32(four);
    }
    return result;
  }
  template <int kPlanes> static PITH_ALWAYS_INLINE void Accumulate(Sum<kPlanes>& sum, Weights weights, const Multiplicand<kPlanes>& a) {
    for (int i = 0; i < kPlanes; ++i) asm("vpdpbusd %2, %1, %0" : "+v"(sum.plane[i]) : "v"(weights), "v"(a.plane[i]));
  }

  static PITH_ALWAYS_INLINE Int LoadInt(const int32_t* p) { return _mm512_load_si512(p); }
  static PITH_ALWAYS_INLINE void StoreInt(int32_t* p, Int x) { _mm512_store_si512(p, x); }
  static PITH_ALWAYS_INLINE Int LoadU8(const uint8_t* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static PITH_ALWAYS_INLINE Int SubtractProduct(Int x, Int a, int32_t b) {
    return _mm512_sub_epi32(x, _mm512_mullo_epi32(a, _mm512_set1_epi32(b)));
  }
  static PITH_ALWAYS_INLINE Float ToFloat(Int x) { return _mm512_cvtepi32_ps(x); }
  static PITH_ALWAYS_INLINE Float Set(float x) { return _mm512_set1_ps(x); }
  static PITH_ALWAYS_INLINE Float Load(const float* p) { return _mm512_load_ps(p); }
  static PITH_ALWAYS_INLINE void Store(float* p, Float x) { _mm512_store_ps(p, x); }
  static PITH_ALWAYS_INLINE Float Multiply(Float a, Float b) { return _mm512_mul_ps(a, b); }
  static PITH_ALWAYS_INLINE Float Fma(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  static PITH_ALWAYS_INLINE __m256i Load256(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static PITH_ALWAYS_INLINE Float LoadScale(const uint8_t* base, const PanelLayout& layout, int64_t group) {
    if (layout.scale == GemmScale::kI8) {
      const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(base + group * kGemmPanel));
      const __m512 unit = _mm512_cvtph_ps(Load256(base + UnitOffset(layout, group)));
      return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes)), unit);
    }
    if (layout.scale == GemmScale::kF32) return _mm512_loadu_ps(base + group * kGemmPanel * 4);
    const __m256i half = Load256(base + group * kGemmPanel * 2);
    if (layout.scale == GemmScale::kF16) return _mm512_cvtph_ps(half);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
  }
};

}  // namespace
}  // namespace pith
