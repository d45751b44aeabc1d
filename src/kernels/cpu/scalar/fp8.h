// e4m3fn bits <-> f32 for the scalar kernels: round to nearest even, saturating, NaN stays NaN. Internal linkage: each kernel has its own
// copy.
#pragma once

#include <cstdint>

namespace pith {
namespace {

inline float F32FromFp8(uint8_t bits) {
  const uint32_t exponent = (bits >> 3) & 0xF, mantissa = bits & 0x7;
  float magnitude = static_cast<float>(mantissa) * 0x1p-9f;
  if (exponent != 0) magnitude = __builtin_bit_cast(float, ((exponent + 120) << 23) | (mantissa << 20));
  if (exponent == 15 && mantissa == 7) magnitude = __builtin_nanf("");
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

inline uint8_t Fp8FromF32(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x), magnitude = bits & 0x7FFFFFFFu;
  const uint8_t sign = (bits >> 24) & 0x80;
  if (magnitude > 0x7F800000u) return sign | 0x7F;
  if (magnitude >= 0x43E00000u) return sign | 0x7E;  // 448
  if (magnitude < 0x3C800000u) {                     // 2^-6: subnormal, steps of 2^-9; eight of them are the first normal number
    return sign | static_cast<uint8_t>(__builtin_nearbyintf(__builtin_bit_cast(float, magnitude) * 512.0f));
  }
  return sign | static_cast<uint8_t>(((magnitude + 0x7FFFFu + ((magnitude >> 20) & 1u)) >> 20) - (120u << 3));
}

}  // namespace
}  // namespace pith
