// Vector arithmetic the AVX-512 kernels share. Internal linkage: each kernel has its own copy.
// Every function is lane by lane, so a value's bits do not depend on its place.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace pith {
namespace {

// Lanes [0, count) of 16; count may exceed 16.
inline __mmask16 FirstLanes(int64_t count) { return count >= 16 ? 0xFFFF : count <= 0 ? 0 : static_cast<__mmask16>((1u << count) - 1u); }

// Bytes [0, count) of 32; count may exceed 32.
inline __mmask32 FirstBytes(int64_t count) {
  return count >= 32 ? 0xFFFFFFFFu : count <= 0 ? 0 : static_cast<__mmask32>((1u << count) - 1u);
}

// f32 -> bf16 bits in the upper half of every dword, round to nearest even, NaN made quiet. The lower half is garbage.
// (vcvtneps2bf16 would flush subnormals, so no kernel uses it.)
inline __m512i RoundToBf16High(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x00400000));
}

inline __m256i Bf16FromF32(__m512 x) { return _mm512_cvtepi32_epi16(_mm512_srli_epi32(RoundToBf16High(x), 16)); }

inline __m512 F32FromBf16(__m256i bits) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16)); }

// The even and the odd elements of 32 bf16.
inline __m512 EvenF32(__m512i pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }
inline __m512 OddF32(__m512i pairs) {
  return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xFFFF0000u))));
}

// exp(x) for x <= 88.7 (larger finite x up to 89 give infinity); below -87 it is 0, also for -infinity. NaN stays NaN. exp(0) is 1.
// x = n ln 2 + r with |r| <= ln 2 / 2 (Cody & Waite), 2^n times a minimax polynomial of degree 5 in r. Relative error < 2e-7.
inline __m512 Exp(__m512 x) {
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(0x1.715476p+0f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.62e43p-1f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-0x1.05c61p-29f), r);
  __m512 y = _mm512_fmadd_ps(r, _mm512_set1_ps(0x1.10625p-7f), _mm512_set1_ps(0x1.572a64p-5f));
  y = _mm512_fmadd_ps(r, y, _mm512_set1_ps(0x1.5557bp-3f));
  y = _mm512_fmadd_ps(r, y, _mm512_set1_ps(0x1.fffdfcp-2f));
  y = _mm512_fmadd_ps(r, y, _mm512_set1_ps(1.0f));
  y = _mm512_fmadd_ps(r, y, _mm512_set1_ps(1.0f));
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(-87.0f), _CMP_NLT_UQ), y, n);
}

// 2^x: infinity from 128 on, 0 below -100 and for -infinity, NaN for NaN. The polynomial of Exp, of x ln 2; the remainder is exact here.
// Relative error < 2e-7. It ends well above the subnormal numbers, which cost a hundred times as much as others, here and in whatever they
// are multiplied with.
inline __m512 Exp2(__m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(-200.0f), x);  // NaN is the second operand
  const __m512 n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 r = _mm512_sub_ps(x, n);
  __m512 y = _mm512_fmadd_ps(r, _mm512_set1_ps(0x1.5ca84ep-10f), _mm512_set1_ps(0x1.3cdbd0p-7f));
  y = _mm512_fmadd_ps(r, y, _mm512_set1_ps(0x1.c6b3b0p-5f));
  y = _mm512_fmadd_ps(r, y, _mm512_set1_ps(0x1.ebf9f0p-3f));
  y = _mm512_fmadd_ps(r, y, _mm512_set1_ps(0x1.62e430p-1f));
  y = _mm512_fmadd_ps(r, y, _mm512_set1_ps(1.0f));
  return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(-100.0f), _CMP_NLT_UQ), y, n);
}

// Lanes are combined in one fixed tree: halves, quarters, eighths, neighbours.
inline float ReduceMax(__m512 x) {
  __m256 h = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
  __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  q = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}
inline float ReduceAdd(__m512 x) {
  __m256 h = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

}  // namespace
}  // namespace pith
