// Products of the integer GEMM rows by vpdpbusd on 256 bits (u8 weights, s8 activations): four products of at most 255 * 128 and the sum in
// one 32-bit lane, where nothing saturates, so nibbles and bytes go the same way.
// Include in one translation unit only (see gemm_integer_driver.h).
#pragma once

#include "kernels/cpu/avx2/gemm_integer_registers.h"
#include "kernels/cpu/avx2_vnni/dot_product.h"

namespace pith {
namespace {

struct IntegerLanes : IntegerRegisters {
  template <int kPlanes> struct Sum {
    Pair plane[kPlanes];  // the upper one first; the value is 256 upper + lower
  };
  template <int kPlanes> struct Multiplicand { __m256i plane[kPlanes]; };
  template <int kPlanes> static constexpr int kSums = 2 * kPlanes;
  static constexpr int kChainSums = 4;  // so many get a second chain each
  template <int kPlanes> static constexpr int kDirectRows = kPlanes == 2 ? 3 : 4;
  template <int kPlanes> static constexpr int64_t kDirectMax = kPlanes == 2 ? 6 : 16;
  template <int kPlanes> static constexpr int kTileRows = kPlanes == 2 ? 3 : 6;  // 12 sums, 2 weights, 1 or 2 activations
  static constexpr int kTilePanels = 1;
  static constexpr int DirectPanels(int sums) { return sums <= 4 ? 2 : 1; }

  template <int kPlanes> static PITH_ALWAYS_INLINE Sum<kPlanes> Start(int32_t value) {
    Sum<kPlanes> sum;
    sum.plane[0] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    sum.plane[kPlanes - 1] = {_mm256_set1_epi32(value), _mm256_set1_epi32(value)};
    return sum;
  }
  template <int kPlanes> static PITH_ALWAYS_INLINE Sum<kPlanes> Add(Sum<kPlanes> a, Sum<kPlanes> b) {
    for (int i = 0; i < kPlanes; ++i) a.plane[i] = AddPairs(a.plane[i], b.plane[i]);
    return a;
  }
  template <int kPlanes> static PITH_ALWAYS_INLINE Sum<kPlanes> AddInt(Sum<kPlanes> a, Int b) {
    a.plane[kPlanes - 1] = AddPairs(a.plane[kPlanes - 1], b);
    return a;
  }
  template <int kPlanes> static PITH_ALWAYS_INLINE Int Value(Sum<kPlanes> sum) {
    if constexpr (kPlanes == 1) return sum.plane[0];
    return AddPairs({_mm256_slli_epi32(sum.plane[0].low, 8), _mm256_slli_epi32(sum.plane[0].high, 8)}, sum.plane[kPlanes - 1]);
  }

  // Four k of one row, for every column.
  template <int kPlanes> static PITH_ALWAYS_INLINE Multiplicand<kPlanes> Broadcast(const int8_t* high, const int8_t* low) {
    Multiplicand<kPlanes> result;
    for (int i = 0; i < kPlanes; ++i) result.plane[i] = Broadcast32(i == 0 ? high : low);
    return result;
  }
  template <int kPlanes> static PITH_ALWAYS_INLINE void Accumulate(Sum<kPlanes>& sum, Weights weights, const Multiplicand<kPlanes>& a) {
    for (int i = 0; i < kPlanes; ++i) {
      AddProducts(sum.plane[i].low, weights.low, a.plane[i]);
      AddProducts(sum.plane[i].high, weights.high, a.plane[i]);
    }
  }
};

}  // namespace
}  // namespace pith
