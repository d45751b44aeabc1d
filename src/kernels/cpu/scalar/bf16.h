// bfloat16 bits <-> f32 for the scalar kernels: round to nearest even, NaN stays NaN. Internal linkage: each kernel has its own copy.
#pragma once

#include <cstdint>

namespace pith {
namespace {

inline float F32FromBf16(uint16_t bits) { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }

inline uint16_t Bf16FromF32(float x) {
  const uint32_t u = __builtin_bit_cast(uint32_t, x);
  if ((u & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((u >> 16) | 0x40u);
  return static_cast<uint16_t>((u + 0x7FFFu + ((u >> 16) & 1u)) >> 16);
}

}  // namespace
}  // namespace pith
