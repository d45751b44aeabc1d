// 16 x 16 dwords, rows to columns.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace pith {
namespace {

// Column i of the 16 rows goes to out + i * stride (dwords), for the first num_columns columns. Destroys row.
inline void TransposeDwords(__m512i row[16], uint32_t* out, int64_t stride, int64_t num_columns) {
  __m512i a[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    row[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
    row[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
    row[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
    row[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
  // row[4 b + c] holds, per 128-bit lane l, column 4 l + c of rows 4 b .. 4 b + 3.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i b01_even = _mm512_shuffle_i32x4(row[c], row[4 + c], 0x88);  // lanes 0, 2 of b = 0, 1
    const __m512i b01_odd = _mm512_shuffle_i32x4(row[c], row[4 + c], 0xDD);
    const __m512i b23_even = _mm512_shuffle_i32x4(row[8 + c], row[12 + c], 0x88);
    const __m512i b23_odd = _mm512_shuffle_i32x4(row[8 + c], row[12 + c], 0xDD);
    a[c] = _mm512_shuffle_i32x4(b01_even, b23_even, 0x88);
    a[4 + c] = _mm512_shuffle_i32x4(b01_odd, b23_odd, 0x88);
    a[8 + c] = _mm512_shuffle_i32x4(b01_even, b23_even, 0xDD);
    a[12 + c] = _mm512_shuffle_i32x4(b01_odd, b23_odd, 0xDD);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    if (i < num_columns) _mm512_store_si512(out + i * stride, a[i]);
  }
}

}  // namespace
}  // namespace pith
