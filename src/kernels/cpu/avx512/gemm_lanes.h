// Registers of the f32 FMA GEMM rows: 16 output columns per zmm, planes of one k. Activations become f32 chunk by chunk, so that a
// broadcast is a memory operand of the FMA.
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
  using Plane = __m512;
  using Activation = float;
  static constexpr bool kConvertsActivations = true;
  static constexpr int kPlaneK = 1, kPlaneBytes = 64;
  static constexpr int kDirectRows = 8;
  static constexpr int64_t kDirectChunkK = 1024;
  static constexpr int kTileRows = 6, kTilePanels = 4;                   // 24 accumulators, 4 planes
  static constexpr int64_t kScratchChunkK = 128;                         // 32 KiB of planes
  static constexpr int64_t kConvertedSize = kRowBlock * kScratchChunkK;  // and kDirectRows * kDirectChunkK
  static constexpr int DirectPanels(int rows) { return rows <= 4 ? 4 : 2; }

  static PITH_ALWAYS_INLINE Vec Zero() { return _mm512_setzero_ps(); }
  static PITH_ALWAYS_INLINE Vec Set(float x) { return _mm512_set1_ps(x); }
  static PITH_ALWAYS_INLINE Vec Load(const float* p) { return _mm512_loadu_ps(p); }
  static PITH_ALWAYS_INLINE void Store(float* p, Vec x) { _mm512_storeu_ps(p, x); }
  static PITH_ALWAYS_INLINE Vec Fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
  static PITH_ALWAYS_INLINE Vec FusedMultiplySubtract(Vec a, Vec b, Vec c) { return _mm512_fmsub_ps(a, b, c); }
  static PITH_ALWAYS_INLINE Vec Multiply(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
  static PITH_ALWAYS_INLINE Vec Subtract(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
  static PITH_ALWAYS_INLINE __m256i Load256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static PITH_ALWAYS_INLINE __m512 Bf16ToFloat(__m256i bits) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static PITH_ALWAYS_INLINE Vec LoadF16(const uint8_t* p) { return _mm512_cvtph_ps(Load256(p)); }
  static PITH_ALWAYS_INLINE Vec LoadBf16(const uint8_t* p) { return Bf16ToFloat(Load256(p)); }
  static PITH_ALWAYS_INLINE Vec LoadS8(const uint8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static PITH_ALWAYS_INLINE Vec LoadU8(const uint8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }

  static PITH_ALWAYS_INLINE Plane LoadPlane(const uint8_t* p) { return _mm512_load_ps(p); }
  static PITH_ALWAYS_INLINE void StorePlane(uint8_t* p, Plane plane) { _mm512_store_ps(p, plane); }
  static PITH_ALWAYS_INLINE Vec Dot(Vec acc, Plane plane, const float* activation) {
    return _mm512_fmadd_ps(plane, _mm512_set1_ps(*activation), acc);
  }

  static PITH_ALWAYS_INLINE __m256i LoadRest(const uint16_t* p, int64_t count) {  // the first `count` < 16, zeros behind
    return _mm256_maskz_loadu_epi16(static_cast<__mmask16>((1u << count) - 1), p);
  }
  static PITH_ALWAYS_INLINE void Convert(const uint16_t* in, int64_t count, float* out) {
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) _mm512_storeu_ps(out + i, Bf16ToFloat(Load256(in + i)));
    if (i < count)
      _mm512_mask_storeu_ps(out + i, static_cast<__mmask16>((1u << (count - i)) - 1), Bf16ToFloat(LoadRest(in + i, count - i)));
  }
  // Sum of `count` activations: lane i of 16 sums i, i + 16, ..., then a fixed tree.
  static PITH_ALWAYS_INLINE float Sum(const uint16_t* activation, int64_t count) {
    __m512 sum = _mm512_setzero_ps();
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) sum = _mm512_add_ps(sum, Bf16ToFloat(Load256(activation + i)));
    if (i < count) sum = _mm512_add_ps(sum, Bf16ToFloat(LoadRest(activation + i, count - i)));
    return _mm512_reduce_add_ps(sum);
  }
};

}  // namespace
}  // namespace pith
