#include "base/random.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::ElementsAre;

// The three vectors of philox4x32-10 in the known-answer file of Random123.
TEST(Philox4x32, KnownAnswers) {
  EXPECT_THAT(Philox4x32({0, 0, 0, 0}, {0, 0}), ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  EXPECT_THAT(Philox4x32({0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu}, {0xffffffffu, 0xffffffffu}),
              ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  EXPECT_THAT(Philox4x32({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
              ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

TEST(UniformOpen, IsTheDocumentedFunctionOfTheWords) {
  const uint64_t seed = 0x299f31d0a4093822u, a = 0x0370734413198a2eu, b = 0x85a308d3243f6a88u;  // the pi vector above
  const uint64_t first = 0x94fdccebd16cfe09u >> 12, second = 0x24126ea15001e420u >> 12;
  EXPECT_EQ(UniformOpenPair(seed, a, b)[0], (static_cast<double>(first) + 0.5) / 4503599627370496.0);
  EXPECT_EQ(UniformOpenPair(seed, a, b)[1], (static_cast<double>(second) + 0.5) / 4503599627370496.0);
  EXPECT_EQ(UniformOpen(seed, a, b), UniformOpenPair(seed, a, b)[0]);
}

TEST(UniformOpen, EveryArgumentMatters) {
  const double reference = UniformOpen(1, 2, 3);
  for (const uint64_t shift : {0, 31, 32, 63}) {
    EXPECT_NE(UniformOpen(1 ^ (uint64_t{1} << shift), 2, 3), reference);
    EXPECT_NE(UniformOpen(1, 2 ^ (uint64_t{1} << shift), 3), reference);
    EXPECT_NE(UniformOpen(1, 2, 3 ^ (uint64_t{1} << shift)), reference);
  }
}

TEST(RandomStream, UniformIsInsideTheOpenIntervalAndFlat) {
  RandomStream random(3);
  std::vector<int> bins(20, 0);
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = random.Uniform();
    ASSERT_GT(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++bins[static_cast<int>(u * 20)];
  }
  double chi_square = 0;
  for (const int count : bins) chi_square += (count - 5000.0) * (count - 5000.0) / 5000.0;
  EXPECT_LT(chi_square, 19 + 4.5 * std::sqrt(38.0));
}

TEST(RandomStream, SameSeedSameNumbersOtherStreamOthers) {
  RandomStream a(5, 1), b(5, 1), c(5, 2), d(6, 1);
  for (int i = 0; i < 100; ++i) {
    const double value = a.Uniform();
    EXPECT_EQ(value, b.Uniform());
    EXPECT_NE(value, c.Uniform());
    EXPECT_NE(value, d.Uniform());
  }
}

TEST(RandomStream, BelowIsInRangeAndFlat) {
  RandomStream random(8);
  std::vector<int> bins(7, 0);
  for (int i = 0; i < 70000; ++i) ++bins[random.Below(7)];
  double chi_square = 0;
  for (const int count : bins) chi_square += (count - 10000.0) * (count - 10000.0) / 10000.0;
  EXPECT_LT(chi_square, 6 + 4.5 * std::sqrt(12.0));
  EXPECT_EQ(random.Below(1), 0u);
  // Three quarters of the range: folding the last quarter back would give the lowest third half of all draws.
  const uint64_t bound = uint64_t{3} << 62;
  int lowest_third = 0;
  for (int i = 0; i < 9000; ++i) {
    const uint64_t value = random.Below(bound);
    ASSERT_LT(value, bound);
    lowest_third += value < bound / 3 ? 1 : 0;
  }
  EXPECT_NEAR(lowest_third, 3000, 4.5 * std::sqrt(9000.0 * 2 / 9));
}

TEST(RandomStream, NormalHasTheRightMoments) {
  RandomStream random(9);
  double sum = 0, squares = 0, fourth = 0;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.Normal();
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0.0, 4.5 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1.0, 4.5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(fourth / kDraws, 3.0, 4.5 * std::sqrt(96.0 / kDraws));
}

}  // namespace
}  // namespace pith
