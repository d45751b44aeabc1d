// bfloat16, float16 and fp8 e4m3fn as stored bits, with exact conversions. Round to nearest, ties to even; NaN stays NaN.
// Thread-safe, no state.
#pragma once

#include <bit>
#include <cstdint>

namespace pith {

struct bfloat16 {
  uint16_t bits = 0;
  friend bool operator==(bfloat16 a, bfloat16 b) { return a.bits == b.bits; }
};
struct float16 {
  uint16_t bits = 0;
  friend bool operator==(float16 a, float16 b) { return a.bits == b.bits; }
};
struct float8_e4m3fn {  // 1 sign, 4 exponent (bias 7), 3 mantissa; no infinity; NaN 0x7F and 0xFF; largest 448
  uint8_t bits = 0;
  friend bool operator==(float8_e4m3fn a, float8_e4m3fn b) { return a.bits == b.bits; }
};
static_assert(sizeof(bfloat16) == 2 && sizeof(float16) == 2 && sizeof(float8_e4m3fn) == 1);

inline float ToFloat(bfloat16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

inline bfloat16 ToBfloat16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  if ((u & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<uint16_t>((u >> 16) | 0x40u)};
  return {static_cast<uint16_t>((u + 0x7FFFu + ((u >> 16) & 1u)) >> 16)};
}

// The f32 value after rounding through bfloat16.
inline float RoundToBfloat16(float x) { return ToFloat(ToBfloat16(x)); }

float ToFloat(float16 x);
float16 ToFloat16(float x);  // overflow becomes infinity

float ToFloat(float8_e4m3fn x);
float8_e4m3fn ToFloat8E4M3(float x);  // saturates to +-448

}  // namespace pith
