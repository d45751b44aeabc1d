// Registers of the bf16 dot-product GEMM rows: 16 output columns per zmm, planes of k pairs.
//
// vdpbf16ps adds two products to each lane, even k first, each step fused; it flushes subnormal inputs and results to zero.
// Include in one translation unit only (see gemm_driver.h).
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/gemm_driver.h"

namespace pith {
namespace {

struct Lanes {
  using Vec = __m512;
  using Plane = __m512bh;
  using Activation = uint16_t;
  static constexpr bool kConvertsActivations = false;
  static constexpr int64_t kConvertedSize = 1;
  static constexpr int kPlaneK = 2, kPlaneBytes = 64;
  static constexpr int kDirectRows = 8;
  static constexpr int64_t kDirectChunkK = 1024;
  static constexpr int kTileRows = 6, kTilePanels = 4;  // 24 accumulators, 4 planes
  static constexpr int64_t kScratchChunkK = 256;        // 32 KiB of planes
  static constexpr int DirectPanels(int rows) { return rows <= 4 ? 4 : 2; }

  static PITH_ALWAYS_INLINE Vec Zero() { return _mm512_setzero_ps(); }
  static PITH_ALWAYS_INLINE Vec Set(float x) { return _mm512_set1_ps(x); }
  static PITH_ALWAYS_INLINE Vec Load(const float* p) { return _mm512_loadu_ps(p); }
  static PITH_ALWAYS_INLINE void Store(float* p, Vec x) { _mm512_storeu_ps(p, x); }
  static PITH_ALWAYS_INLINE Vec Fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
  static PITH_ALWAYS_INLINE Vec FusedMultiplySubtract(Vec a, Vec b, Vec c) { return _mm512_fmsub_ps(a, b, c); }
  static PITH_ALWAYS_INLINE Vec Multiply(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
  static PITH_ALWAYS_INLINE Vec Subtract(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
  static PITH_ALWAYS_INLINE __m256i Load256(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static PITH_ALWAYS_INLINE __m128i Load128(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
  static PITH_ALWAYS_INLINE Vec LoadF16(const uint8_t* p) { return _mm512_cvtph_ps(Load256(p)); }
  static PITH_ALWAYS_INLINE Vec LoadBf16(const uint8_t* p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(Load256(p)), 16));
  }
  static PITH_ALWAYS_INLINE Vec LoadS8(const uint8_t* p) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(Load128(p))); }
  static PITH_ALWAYS_INLINE Vec LoadU8(const uint8_t* p) { return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(Load128(p))); }

  static PITH_ALWAYS_INLINE Plane LoadPlane(const uint8_t* p) { return (__m512bh)_mm512_load_si512(p); }
  static PITH_ALWAYS_INLINE void StorePlane(uint8_t* p, Plane plane) { _mm512_store_si512(p, (__m512i)plane); }
  static PITH_ALWAYS_INLINE Vec Dot(Vec acc, Plane plane, const uint16_t* activation) {
    int32_t pair;
    __builtin_memcpy(&pair, activation, 4);
    return _mm512_dpbf16_ps(acc, plane, (__m512bh)_mm512_set1_epi32(pair));
  }
  // One k: its partner in the plane is padding, and what lies behind the row is not read.
  static PITH_ALWAYS_INLINE Vec DotLast(Vec acc, Plane plane, const uint16_t* activation) {
    return _mm512_dpbf16_ps(acc, plane, (__m512bh)_mm512_set1_epi32(*activation));
  }

  // Sum of `count` activations: lane i of 16 sums the pairs i, i + 16, ..., then a fixed tree.
  static PITH_ALWAYS_INLINE float Sum(const uint16_t* activation, int64_t count) {
    const __m512bh ones = (__m512bh)_mm512_set1_epi16(0x3F80);
    __m512 sum = _mm512_setzero_ps();
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) sum = _mm512_dpbf16_ps(sum, ones, (__m512bh)_mm512_loadu_si512(activation + i));
    if (i < count) {
      const __mmask32 rest = static_cast<__mmask32>((uint64_t{1} << (count - i)) - 1);
      sum = _mm512_dpbf16_ps(sum, ones, (__m512bh)_mm512_maskz_loadu_epi16(rest, activation + i));
    }
    return _mm512_reduce_add_ps(sum);
  }
};

}  // namespace
}  // namespace pith
