#include "sampling/cdf_inversion.h"

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sampling/test_floats.h"

namespace pith {
namespace {

// Cumulative probabilities in double.
std::vector<double> Cumulative(const std::vector<float>& logits) {
  double total = 0;
  std::vector<double> sums;
  for (const float logit : logits) sums.push_back(total += std::exp(static_cast<double>(logit)));
  for (double& sum : sums) sum /= total;
  return sums;
}

// Over a fine grid of uniforms every token gets its share: the draw is the token whose interval holds the number, to 1e-6.
TEST(CdfInversionTest, IntervalsAreTheProbabilities) {
  for (const int size : {1, 2, 15, 16, 17, 255, 256, 257, 1000, 5003}) {
    for (const float spread : {0.1f, 3.0f, 12.0f}) {
      RandomStream random(static_cast<uint64_t>(size));
      std::vector<float> logits(static_cast<size_t>(size));
      for (float& logit : logits) logit = spread * random.Normal();
      const std::vector<double> cumulative = Cumulative(logits);
      constexpr int kGrid = 2000;
      for (int i = 0; i < kGrid; ++i) {
        const double u = (i + 0.5) / kGrid;
        const int32_t token = DrawByInversion(logits, u);
        ASSERT_TRUE(token >= 0 && token < size);
        const double low = token == 0 ? 0 : cumulative[token - 1], high = cumulative[token];
        ASSERT_GE(u, low - 1e-6) << size << " " << spread;
        ASSERT_LE(u, high + 1e-6) << size << " " << spread;
      }
    }
  }
}

// A token far in the tail has its own small interval.
TEST(CdfInversionTest, SmallProbabilitiesAreRight) {
  for (const float logit : {-0.3f, -7.0f, -20.7f, -84.9f}) {
    const std::vector<float> logits = {logit, 0.0f};
    const double probability = 1 / (1 + std::exp(-static_cast<double>(logit)));
    EXPECT_EQ(DrawByInversion(logits, probability * (1 - 5e-6)), 0) << logit;
    EXPECT_EQ(DrawByInversion(logits, probability * (1 + 5e-6)), 1) << logit;
  }
}

TEST(CdfInversionTest, TheLargestIsSubtracted) {
  const std::vector<float> logits = {1e30f, 1e30f, -1e30f};
  EXPECT_EQ(DrawByInversion(logits, 0.49), 0);
  EXPECT_EQ(DrawByInversion(logits, 0.51), 1);
  EXPECT_EQ(DrawByInversion(logits, 1 - 0x1p-53), 1);
}

TEST(CdfInversionTest, NanAndInfinityAreNeverDrawn) {
  std::vector<float> logits(600, kNan);
  for (size_t i = 300; i < 600; ++i) logits[i] = -kInfinity;
  logits[20] = 1.0f;
  logits[580] = 1.0f;
  for (int i = 0; i < 1000; ++i) {
    const double u = (i + 0.5) / 1000;
    EXPECT_EQ(DrawByInversion(logits, u), u < 0.5 ? 20 : 580) << u;
  }
  EXPECT_EQ(DrawByInversion(logits, 0x1p-53), 20);
  EXPECT_EQ(DrawByInversion(logits, 1 - 0x1p-53), 580);
}

// The last block may hold nothing that can be drawn.
TEST(CdfInversionTest, EndsOnATokenThatHasProbability) {
  std::vector<float> logits(700, -kInfinity);
  logits[3] = 0.0f;
  EXPECT_EQ(DrawByInversion(logits, 1 - 0x1p-53), 3);
  EXPECT_EQ(DrawByInversion(logits, 0.5), 3);
}

TEST(CdfInversionTest, ARowWithoutAFiniteMaximumGivesNone) {
  EXPECT_EQ(DrawByInversion({}, 0.5), -1);
  EXPECT_EQ(DrawByInversion({kNan, -kInfinity}, 0.5), -1);
  EXPECT_EQ(DrawByInversion({0.0f, kInfinity}, 0.5), -1);
}

}  // namespace
}  // namespace pith
