#include "quantization/formats/block_fit.h"

#include <cmath>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(BlockFit, RoundsToEven) {
  EXPECT_EQ(RoundSmall(2.5f), 2.0f);
  EXPECT_EQ(RoundSmall(-3.5f), -4.0f);
  EXPECT_EQ(RoundSmall(7.49f), 7.0f);
}

// Numbers that are codes already come back exactly.
TEST(BlockFit, FindsExactGrids) {
  std::vector<float> x(32), weight(32, 1.0f);
  uint8_t code[32];
  for (int i = 0; i < 32; ++i) x[i] = 0.5f * static_cast<float>(i % 16) - 2.0f;
  const AffineFit fit = FitAffine(x.data(), weight.data(), 32, 15);
  EXPECT_NEAR(fit.scale, 0.5f, 1e-5);
  EXPECT_NEAR(fit.min, 2.0f, 1e-5);
  EXPECT_NEAR(CodeAffine(x.data(), weight.data(), 32, 15, fit, code), 0, 1e-8);
  for (int i = 0; i < 32; ++i) ASSERT_EQ(code[i], i % 16);
  for (const float scale : {0.25f, -0.25f}) {
    for (int i = 0; i < 32; ++i) x[i] = scale * static_cast<float>(i % 16 - 8);
    EXPECT_NEAR(FitSymmetric(x.data(), weight.data(), 32, 8), scale, 1e-6);
    EXPECT_NEAR(CodeSymmetric(x.data(), weight.data(), 32, 8, scale, code), 0, 1e-8);
    for (int i = 0; i < 32; ++i) ASSERT_EQ(code[i], i % 16);
  }
}

// Against a dense scan of scales (and minimums), with weights that differ by a factor of three: over all trials within 2 % of its error.
TEST(BlockFit, ComesCloseToABruteForce) {
  RandomStream random(5);
  uint8_t code[32];
  float symmetric = 0, best_symmetric = 0, affine = 0, best_affine = 0;
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<float> x(32), weight(32);
    for (int i = 0; i < 32; ++i) x[i] = random.Normal(), weight[i] = 0.5f + static_cast<float>(i % 11) / 10.0f;
    float best = INFINITY;
    for (int step = 1; step < 4000; ++step) {
      for (const float sign : {1.0f, -1.0f}) {
        const float scale = sign * 0.001f * static_cast<float>(step) / 4.0f;
        best = std::min(best, CodeSymmetric(x.data(), weight.data(), 32, 8, scale, code));
      }
    }
    best_symmetric += best;
    symmetric += CodeSymmetric(x.data(), weight.data(), 32, 8, FitSymmetric(x.data(), weight.data(), 32, 8), code);
    best = INFINITY;
    for (int s = 1; s < 200; ++s) {
      for (int m = 0; m < 200; ++m) {
        const AffineFit fit{0.0025f * static_cast<float>(s), 0.02f * static_cast<float>(m)};
        best = std::min(best, CodeAffine(x.data(), weight.data(), 32, 15, fit, code));
      }
    }
    best_affine += best;
    affine += CodeAffine(x.data(), weight.data(), 32, 15, FitAffine(x.data(), weight.data(), 32, 15), code);
  }
  EXPECT_LE(symmetric, 1.02f * best_symmetric);
  EXPECT_LE(affine, 1.02f * best_affine);
}

TEST(BlockFit, ConstantsAndZeros) {
  std::vector<float> x(16, -3.0f), weight(16, 1.0f);
  uint8_t code[16];
  AffineFit fit = FitAffine(x.data(), weight.data(), 16, 15);
  EXPECT_EQ(CodeAffine(x.data(), weight.data(), 16, 15, fit, code), 0);
  x.assign(16, 3.0f);
  fit = FitAffine(x.data(), weight.data(), 16, 15);
  EXPECT_NEAR(CodeAffine(x.data(), weight.data(), 16, 15, fit, code), 0, 1e-9);
  EXPECT_GE(fit.min, 0);
  x.assign(16, 0.0f);
  EXPECT_EQ(FitSymmetric(x.data(), weight.data(), 16, 8), 0);
  fit = FitAffine(x.data(), weight.data(), 16, 15);
  EXPECT_EQ(fit.scale, 0);
  EXPECT_EQ(fit.min, 0);
}

}  // namespace
}  // namespace pith
