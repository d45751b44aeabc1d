// Vector arithmetic the AVX2 kernels share. Internal linkage: each kernel has its own copy.
// Every function is lane by lane, so a value's bits do not depend on its place.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace pith {
namespace {

// Sign bits set in the lanes [0, count) of 8; count may exceed 8.
inline __m256i FirstLanes(int64_t count) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count > 8 ? 8 : count)), lane);
}

// f32 -> bf16 bits in the upper half of every dword, round to nearest even, NaN made quiet. The lower half is garbage.
inline __m256i RoundToBf16High(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
  return _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
}

inline __m128i Bf16FromF32(__m256 x) {
  const __m256i words = _mm256_srli_epi32(RoundToBf16High(x), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

inline __m256 F32FromBf16(__m128i bits) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16)); }

// The even and the odd elements of 16 bf16.
inline __m256 EvenF32(__m256i pairs) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)); }
inline __m256 OddF32(__m256i pairs) {
  return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int>(0xFFFF0000u))));
}

// The first `count` (1 or more) of 8 floats; other lanes are 0. Whole vectors avoid masked access: masked stores are slow on Zen 2 to 4.
inline __m256 LoadF32(const float* in, int64_t count) {
  return count >= 8 ? _mm256_loadu_ps(in) : _mm256_maskload_ps(in, FirstLanes(count));
}
inline void StoreF32(float* out, int64_t count, __m256 x) {
  if (count >= 8) {
    _mm256_storeu_ps(out, x);
  } else {
    _mm256_maskstore_ps(out, FirstLanes(count), x);
  }
}

// The same for bf16, which needs no alignment. AVX2 has no masked access to words, so a tail goes through a small array.
inline __m128i LoadBf16(const uint16_t* in, int64_t count) {
  if (count >= 8) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
  alignas(16) uint16_t words[8] = {};
  __builtin_memcpy(words, in, static_cast<size_t>(count) * sizeof(uint16_t));
  return _mm_load_si128(reinterpret_cast<const __m128i*>(words));
}
inline void StoreBf16(uint16_t* out, int64_t count, __m128i bits) {
  if (count >= 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bits);
    return;
  }
  alignas(16) uint16_t words[8];
  _mm_store_si128(reinterpret_cast<__m128i*>(words), bits);
  __builtin_memcpy(out, words, static_cast<size_t>(count) * sizeof(uint16_t));
}

// The low bytes of 8 dwords, the first `count` of them.
inline void StoreBytes(void* out, int64_t count, __m256i dwords) {
  const __m256i bytes = _mm256_shuffle_epi8(
      dwords, _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1)));
  alignas(8)
      uint32_t halves[2] = {static_cast<uint32_t>(_mm256_extract_epi32(bytes, 0)), static_cast<uint32_t>(_mm256_extract_epi32(bytes, 4))};
  if (count >= 8) {
    __builtin_memcpy(out, halves, 8);
  } else {
    for (int64_t i = 0; i < count; ++i) static_cast<uint8_t*>(out)[i] = static_cast<uint8_t>(halves[i / 4] >> (8 * (i % 4)));
  }
}

// exp(x) for x <= 88.3; above it is infinity, so x must not exceed 88.75 (or be NaN); below -87 it is 0, also for -infinity.
// NaN stays NaN. exp(0) is 1. x = n ln 2 + r with |r| <= ln 2 / 2 (Cody & Waite), 2^n times a minimax polynomial of degree 5 in r.
// Relative error < 2e-7.
inline __m256 Exp(__m256 x) {
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(0x1.715476p+0f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.62e43p-1f), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-0x1.05c61p-29f), r);
  __m256 y = _mm256_fmadd_ps(r, _mm256_set1_ps(0x1.10625p-7f), _mm256_set1_ps(0x1.572a64p-5f));
  y = _mm256_fmadd_ps(r, y, _mm256_set1_ps(0x1.5557bp-3f));
  y = _mm256_fmadd_ps(r, y, _mm256_set1_ps(0x1.fffdfcp-2f));
  y = _mm256_fmadd_ps(r, y, _mm256_set1_ps(1.0f));
  y = _mm256_fmadd_ps(r, y, _mm256_set1_ps(1.0f));
  const __m256i power = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
  const __m256 kept = _mm256_cmp_ps(x, _mm256_set1_ps(-87.0f), _CMP_NLT_UQ);
  return _mm256_and_ps(kept, _mm256_mul_ps(y, _mm256_castsi256_ps(power)));
}

// Lanes are combined in one fixed tree: halves, quarters, neighbours.
inline float ReduceMax(__m256 x) {
  __m128 q = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  q = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}
inline float ReduceAdd(__m256 x) {
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

}  // namespace
}  // namespace pith
