#include "base/float_types.h"

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

// A format by its definition, in f64: 1 sign bit, `exponent_bits` with `bias`, `mantissa_bits`. Values of non-negative codes, ascending.
struct Format {
  int exponent_bits, mantissa_bits, bias;
  uint32_t largest_finite;  // code

  double Value(uint32_t code) const {
    const int exponent = static_cast<int>(code >> mantissa_bits) & ((1 << exponent_bits) - 1);
    const double mantissa = static_cast<double>(code & ((1u << mantissa_bits) - 1)) / (1 << mantissa_bits);
    return exponent == 0 ? std::ldexp(mantissa, 1 - bias) : std::ldexp(1.0 + mantissa, exponent - bias);
  }

  // The nearest code to |x| by comparing distances to both neighbours exactly, ties to the even code; may be largest_finite + 1.
  uint32_t Nearest(double magnitude) const {
    uint32_t low = 0, high = largest_finite + 1;
    while (high - low > 1) {
      const uint32_t middle = (low + high) / 2;
      (Value(middle) <= magnitude ? low : high) = middle;
    }
    const double below = magnitude - Value(low), above = Value(high) - magnitude;
    if (below != above) return below < above ? low : high;
    return low % 2 == 0 ? low : high;
  }
};

constexpr Format kBfloat16 = {8, 7, 127, 0x7F7F};
constexpr Format kFloat16 = {5, 10, 15, 0x7BFF};
constexpr Format kFloat8E4M3 = {4, 3, 7, 0x7E};

// Random bits, values near every code, ties and their neighbours.
std::vector<float> Probes(const Format& format) {
  std::vector<float> probes = {0.0f, -0.0f, std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::min(),
                               std::numeric_limits<float>::max()};
  RandomStream random(1);
  for (int i = 0; i < 300000; ++i) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(random.Below(uint64_t{1} << 32)));
    if (std::isfinite(x)) probes.push_back(x);
  }
  for (uint32_t code = 0; code <= format.largest_finite; ++code) {
    const double value = format.Value(code), next = format.Value(code + 1);
    const float middle = static_cast<float>((value + next) / 2);
    for (const float x : {static_cast<float>(value), middle, std::nextafter(middle, 0.0f), std::nextafter(middle, INFINITY)}) {
      probes.push_back(x);
      probes.push_back(-x);
    }
  }
  return probes;
}

TEST(Bfloat16, AllPatternsConvertExactly) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = ToFloat(bfloat16{static_cast<uint16_t>(bits)});
    const uint32_t magnitude = bits & 0x7FFF;
    if (magnitude > 0x7F80) {
      EXPECT_TRUE(std::isnan(x));
      EXPECT_TRUE(std::isnan(ToFloat(ToBfloat16(x))));
      continue;
    }
    if (magnitude <= kBfloat16.largest_finite) {
      ASSERT_EQ(static_cast<double>(std::fabs(x)), kBfloat16.Value(magnitude));
    } else {
      ASSERT_TRUE(std::isinf(x));
    }
    ASSERT_EQ(std::signbit(x), bits >> 15 == 1);
    ASSERT_EQ(ToBfloat16(x).bits, bits);
  }
}

TEST(Bfloat16, RoundsToNearestEven) {
  for (const float x : Probes(kBfloat16)) {
    const uint32_t expected = kBfloat16.Nearest(std::fabs(static_cast<double>(x))) | (std::signbit(x) ? 0x8000 : 0);
    ASSERT_EQ(ToBfloat16(x).bits, expected) << x;
    ASSERT_EQ(RoundToBfloat16(x), ToFloat(ToBfloat16(x)));
  }
  EXPECT_EQ(ToBfloat16(INFINITY).bits, 0x7F80);
  EXPECT_TRUE(std::isnan(ToFloat(ToBfloat16(std::bit_cast<float>(0x7F800001u)))));  // a NaN whose upper mantissa bits are zero
}

TEST(Float16, AllPatternsConvertExactly) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = ToFloat(float16{static_cast<uint16_t>(bits)});
    const uint32_t magnitude = bits & 0x7FFF;
    if (magnitude > 0x7C00) {
      EXPECT_TRUE(std::isnan(x));
      EXPECT_TRUE(std::isnan(ToFloat(ToFloat16(x))));
      continue;
    }
    if (magnitude <= kFloat16.largest_finite) {
      ASSERT_EQ(static_cast<double>(std::fabs(x)), kFloat16.Value(magnitude)) << bits;
    } else {
      ASSERT_TRUE(std::isinf(x));
    }
    ASSERT_EQ(std::signbit(x), bits >> 15 == 1);
    ASSERT_EQ(ToFloat16(x).bits, bits);
  }
}

TEST(Float16, RoundsToNearestEvenAndOverflowsToInfinity) {
  for (const float x : Probes(kFloat16)) {
    const uint32_t nearest = kFloat16.Nearest(std::fabs(static_cast<double>(x)));  // 0x7C00, infinity, above the largest
    ASSERT_EQ(ToFloat16(x).bits, nearest | (std::signbit(x) ? 0x8000 : 0)) << x;
  }
  EXPECT_EQ(ToFloat16(65519.99f).bits, 0x7BFF);
  EXPECT_EQ(ToFloat16(65520.0f).bits, 0x7C00);
  EXPECT_EQ(ToFloat16(-INFINITY).bits, 0xFC00);
  EXPECT_TRUE(std::isnan(ToFloat(ToFloat16(std::bit_cast<float>(0x7F800001u)))));
}

TEST(Float8E4M3, AllPatternsConvertExactly) {
  for (uint32_t bits = 0; bits < 0x100; ++bits) {
    const float x = ToFloat(float8_e4m3fn{static_cast<uint8_t>(bits)});
    if ((bits & 0x7F) == 0x7F) {
      EXPECT_TRUE(std::isnan(x));
      continue;
    }
    ASSERT_EQ(static_cast<double>(std::fabs(x)), kFloat8E4M3.Value(bits & 0x7F)) << bits;
    ASSERT_EQ(std::signbit(x), bits >> 7 == 1);
    ASSERT_EQ(ToFloat8E4M3(x).bits, bits);
  }
  EXPECT_EQ(ToFloat(float8_e4m3fn{0x7E}), 448.0f);
  EXPECT_EQ(ToFloat(float8_e4m3fn{0x01}), 0x1p-9f);
}

TEST(Float8E4M3, RoundsToNearestEvenAndSaturates) {
  for (const float x : Probes(kFloat8E4M3)) {
    const uint32_t nearest = std::min(kFloat8E4M3.Nearest(std::fabs(static_cast<double>(x))), kFloat8E4M3.largest_finite);
    ASSERT_EQ(ToFloat8E4M3(x).bits, nearest | (std::signbit(x) ? 0x80 : 0)) << x;
  }
  EXPECT_EQ(ToFloat8E4M3(INFINITY).bits, 0x7E);
  EXPECT_EQ(ToFloat8E4M3(-1e30f).bits, 0xFE);
  EXPECT_EQ(ToFloat8E4M3(NAN).bits & 0x7F, 0x7F);
}

}  // namespace
}  // namespace pith
