// Products of the integer GEMM rows on AVX2.
//
// Codes of one byte would saturate vpmaddubsw, so they are multiplied as 16-bit numbers, even and odd k apart; a 16-bit activation then
// costs no more than an 8-bit one. Nibbles (kNarrow) times int8 fit: 2 * 15 * 128 < 2^15.
// Include in one translation unit only (see gemm_integer_driver.h).
#pragma once

#include "kernels/cpu/avx2/gemm_integer_registers.h"

namespace pith {
namespace {

template <bool kNarrow> struct IntegerLanes : IntegerRegisters {
  template <int kPlanes> struct Sum { __m256i low, high; };
  template <int kPlanes> struct Multiplicand {  // 16-bit numbers of the even and the odd k; or four bytes of a lane in `even`
    __m256i even, odd;
  };
  template <int kPlanes> static constexpr int kSums = 2;
  static constexpr int kChainSums = 4;  // so many get a second chain each
  template <int kPlanes> static constexpr int kDirectRows = 4;
  template <int kPlanes> static constexpr int64_t kDirectMax = 4;
  template <int kPlanes> static constexpr int kTileRows = 4;
  static constexpr int kTilePanels = 1;
  static constexpr int DirectPanels(int) { return 1; }

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
};

}  // namespace
}  // namespace pith
