// e4m3fn bits <-> f32 and bf16 for the AVX2 kernels. Internal linkage: each kernel has its own copy. Lane by lane.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace pith {
namespace {

// f32 -> e4m3 bits in the low byte of every dword, zeros above: round to nearest even, saturating. x is not NaN.
inline __m256i E4m3FromF32(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFFFF));
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(magnitude, 20), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(magnitude, _mm256_set1_epi32(0x7FFFF)), odd);
  const __m256i normal = _mm256_sub_epi32(_mm256_srli_epi32(rounded, 20), _mm256_set1_epi32(120 << 3));
  // Below 2^-6 steps of 2^-9; eight of them are the first normal number.
  const __m256i subnormal = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_castsi256_ps(magnitude), _mm256_set1_ps(512.0f)));
  const __m256i small = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x3C800000), magnitude);
  const __m256i code = _mm256_min_epi32(_mm256_blendv_epi8(normal, subnormal, small), _mm256_set1_epi32(0x7E));
  return _mm256_or_si256(code, _mm256_and_si256(_mm256_srli_epi32(bits, 24), _mm256_set1_epi32(0x80)));
}

// e4m3 bits in words -> bf16 bits: a normal number keeps its mantissa and gets the other bias; the seven subnormals come from a table.
// (Multiplying the shifted bits with a power of two instead would meet f32 subnormals, which some CPUs multiply slowly.) Not for NaN.
inline __m256i Bf16FromE4m3(__m256i code) {
  // bf16 bits of m * 2^-9 for m = 0 .. 7.
  const __m256i subnormals = _mm256_broadcastsi128_si256(_mm_setr_epi16(0, 0x3B00, 0x3B80, 0x3BC0, 0x3C00, 0x3C20, 0x3C40, 0x3C60));
  const __m256i magnitude = _mm256_and_si256(code, _mm256_set1_epi16(0x7F));
  const __m256i normal = _mm256_add_epi16(_mm256_slli_epi16(magnitude, 4), _mm256_set1_epi16(120 << 7));
  // Bytes 2 m and 2 m + 1 of the table; indices of other magnitudes are not used.
  const __m256i bytes = _mm256_add_epi16(_mm256_mullo_epi16(magnitude, _mm256_set1_epi16(0x0202)), _mm256_set1_epi16(0x0100));
  const __m256i is_subnormal = _mm256_cmpgt_epi16(_mm256_set1_epi16(8), magnitude);
  const __m256i sign = _mm256_slli_epi16(_mm256_and_si256(code, _mm256_set1_epi16(0x80)), 8);
  return _mm256_or_si256(_mm256_blendv_epi8(normal, _mm256_shuffle_epi8(subnormals, bytes), is_subnormal), sign);
}

}  // namespace
}  // namespace pith
