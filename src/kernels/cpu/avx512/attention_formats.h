// How the attention kernels read the formats of the cache: kDtype, and Load: 32 elements, or the first `left` and zeros, as bf16 bits.
// Int8 and fp8 codes are exact in bf16; their scales go to the scores and to the weights. Internal linkage.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/attention.h"
#include "kernels/cpu/avx512/fp8.h"
#include "kernels/cpu/avx512/vector_math.h"

namespace pith {
namespace {

struct Bf16Format {
  static constexpr KvDtype kDtype = KvDtype::kBf16;
  static __m512i Load(const uint8_t* in, int64_t left) { return _mm512_maskz_loadu_epi32(FirstLanes(left / 2), in); }
};

struct Int8Format {
  static constexpr KvDtype kDtype = KvDtype::kInt8;

  static __m512i Load(const uint8_t* in, int64_t left) {
    const __m256i codes = _mm256_maskz_loadu_epi8(FirstBytes(left), in);
    const __m512 low = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_castsi256_si128(codes)));
    const __m512 high = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_extracti128_si256(codes, 1)));
    // 8 bits of significand: the upper halves of the f32 are exact.
    return _mm512_permutex2var_epi16(_mm512_castps_si512(low), UpperWords(), _mm512_castps_si512(high));
  }

 private:
  static __m512i UpperWords() {
    const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    // Words 1, 3, 5, ... of both operands: dword i of the result holds words 4 i + 1 and 4 i + 3.
    return _mm512_add_epi32(_mm512_mullo_epi32(lane, _mm512_set1_epi32(0x00040004)), _mm512_set1_epi32(0x00030001));
  }
};

struct Fp8Format {
  static constexpr KvDtype kDtype = KvDtype::kFp8;
  static __m512i Load(const uint8_t* in, int64_t left) {
    return Bf16FromE4m3(_mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(FirstBytes(left), in)));
  }
};

}  // namespace
}  // namespace pith
