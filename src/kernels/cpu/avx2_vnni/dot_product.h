// vpdpbusd on 256 bits.
#pragma once

#include <immintrin.h>

namespace pith {
namespace {

// sum += four products of unsigned and signed bytes per dword. The intrinsic makes GCC 12 copy its accumulators. {vex}: an assembler that
// knows both forms of the instruction would take the one of AVX-512.
inline __attribute__((always_inline)) void AddProducts(__m256i& sum, __m256i unsigned_bytes, __m256i signed_bytes) {
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(unsigned_bytes), "x"(signed_bytes));
}

}  // namespace
}  // namespace pith
