// e4m3fn bits <-> f32 and bf16 for the AVX-512 kernels. Internal linkage: each kernel has its own copy. Lane by lane.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace pith {
namespace {

// f32 -> e4m3 bits in the low byte of every dword, zeros above: round to nearest even, saturating. x is not NaN.
inline __m512i E4m3FromF32(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF));
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(magnitude, 20), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(magnitude, _mm512_set1_epi32(0x7FFFF)), odd);
  const __m512i normal = _mm512_sub_epi32(_mm512_srli_epi32(rounded, 20), _mm512_set1_epi32(120 << 3));
  // Below 2^-6 steps of 2^-9; eight of them are the first normal number.
  const __m512i subnormal = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_castsi512_ps(magnitude), _mm512_set1_ps(512.0f)));
  const __mmask16 small = _mm512_cmplt_epu32_mask(magnitude, _mm512_set1_epi32(0x3C800000));
  const __m512i code = _mm512_min_epi32(_mm512_mask_mov_epi32(normal, small, subnormal), _mm512_set1_epi32(0x7E));
  return _mm512_or_si512(code, _mm512_and_si512(_mm512_srli_epi32(bits, 24), _mm512_set1_epi32(0x80)));
}

// e4m3 bits in words -> bf16 bits: a normal number keeps its mantissa and gets the other bias; the seven subnormals come from a table.
// (Multiplying the shifted bits with a power of two instead would meet f32 subnormals, which some CPUs multiply slowly.) Not for NaN.
inline __m512i Bf16FromE4m3(__m512i code) {
  const __m512i subnormals = _mm512_broadcast_i32x4(_mm_setr_epi16(0, 0x3B00, 0x3B80, 0x3BC0, 0x3C00, 0x3C20, 0x3C40, 0x3C60));
  const __m512i magnitude = _mm512_and_si512(code, _mm512_set1_epi16(0x7F));
  const __m512i normal = _mm512_add_epi16(_mm512_slli_epi16(magnitude, 4), _mm512_set1_epi16(120 << 7));
  const __mmask32 subnormal = _mm512_cmplt_epu16_mask(magnitude, _mm512_set1_epi16(8));
  const __m512i bits = _mm512_mask_permutexvar_epi16(normal, subnormal, magnitude, subnormals);
  const __m512i sign = _mm512_slli_epi16(_mm512_and_si512(code, _mm512_set1_epi16(0x80)), 8);
  return _mm512_or_si512(bits, sign);
}

}  // namespace
}  // namespace pith
