#include "base/float_types.h"

#include <cmath>

namespace pith {

float ToFloat(float16 x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000u) << 16;
  const uint32_t exponent = (x.bits >> 10) & 0x1Fu;
  const uint32_t mantissa = x.bits & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

float16 ToFloat16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
  const uint32_t magnitude = u & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return {static_cast<uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu))};
  if (magnitude >= 0x477FF000u) return {static_cast<uint16_t>(sign | 0x7C00u)};  // rounds to 65536 or more
  if (magnitude < 0x38800000u) {
    // Subnormal: adding 0.5 makes the FPU round at 2^-24.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - 0x3F000000u))};
  }
  return {static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13))};
}

float ToFloat(float8_e4m3fn x) {
  const int exponent = (x.bits >> 3) & 0xF;
  const int mantissa = x.bits & 0x7;
  const float sign = (x.bits & 0x80) ? -1.0f : 1.0f;
  if (exponent == 15 && mantissa == 7) return std::nanf("");
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -9);
  return sign * std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
}

float8_e4m3fn ToFloat8E4M3(float x) {
  const uint8_t sign = std::signbit(x) ? 0x80 : 0;
  if (std::isnan(x)) return {static_cast<uint8_t>(sign | 0x7F)};
  const float magnitude = std::fabs(x);
  if (magnitude >= 448.0f) return {static_cast<uint8_t>(sign | 0x7E)};
  if (magnitude < 0x1p-6f) {  // subnormal, step 2^-9; 8 steps reach the first normal
    return {static_cast<uint8_t>(sign | static_cast<uint8_t>(std::nearbyint(magnitude * 512.0f)))};
  }
  const uint32_t u = std::bit_cast<uint32_t>(magnitude);
  const uint32_t rounded = (u + 0x7FFFFu + ((u >> 20) & 1u)) >> 20;  // 8 exponent bits and 3 mantissa bits
  return {static_cast<uint8_t>(sign | (rounded - (120u << 3)))};
}

}  // namespace pith
