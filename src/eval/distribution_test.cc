#include "eval/distribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace pith {
namespace {

TEST(CompareLogitsTest, TwoTokenCaseByHand) {
  // p_ref = {3/4, 1/4}, p_model = {1/4, 3/4}.
  const std::vector<float> reference = {std::log(3.0f), 0.0f}, model = {0.0f, std::log(3.0f)};
  const TokenComparison c = CompareLogits(reference, model, 1);
  EXPECT_NEAR(c.kl, 0.75 * std::log(3.0) - 0.25 * std::log(3.0), 1e-6);
  EXPECT_NEAR(c.nll_reference, std::log(4.0), 1e-6);
  EXPECT_NEAR(c.nll_model, std::log(4.0 / 3.0), 1e-6);
  EXPECT_NEAR(c.delta_p, 0.25 - 0.75, 1e-6);
  EXPECT_FALSE(c.same_top);
  EXPECT_EQ(c.reference_top, 0);
  EXPECT_EQ(c.model_top, 1);
}

TEST(CompareLogitsTest, EqualRowsGiveExactlyZeroAndAShiftNearlySo) {
  RandomStream random(1);
  std::vector<float> row(1000), shifted;
  for (float& logit : row) logit = 5.0f * random.Normal();
  for (const float logit : row) shifted.push_back(logit + 2.0f);
  const TokenComparison same = CompareLogits(row, row, 3);
  EXPECT_EQ(same.kl, 0.0);
  EXPECT_EQ(same.delta_p, 0.0);
  EXPECT_EQ(same.nll_model, same.nll_reference);
  EXPECT_TRUE(same.same_top);
  EXPECT_LT(CompareLogits(row, shifted, 3).kl, 1e-6);
}

TEST(CompareLogitsTest, MatchesTheFormulaInDoubleAndIsNotSymmetric) {
  RandomStream random(2);
  std::vector<float> reference(257), model(257);
  for (size_t i = 0; i < reference.size(); ++i) {
    reference[i] = 3.0f * random.Normal();
    model[i] = reference[i] + 0.5f * random.Normal();
  }
  const auto log_softmax = [](const std::vector<float>& row) {
    double sum = 0;
    for (const float x : row) sum += std::exp(static_cast<double>(x));
    std::vector<double> result;
    for (const float x : row) result.push_back(static_cast<double>(x) - std::log(sum));
    return result;
  };
  const auto p = log_softmax(reference), q = log_softmax(model);
  double expected = 0;
  for (size_t i = 0; i < p.size(); ++i) expected += std::exp(p[i]) * (p[i] - q[i]);
  EXPECT_NEAR(CompareLogits(reference, model, 0).kl, expected, 1e-6 * expected);
  EXPECT_GT(std::fabs(CompareLogits(model, reference, 0).kl - expected), 1e-3);
}

}  // namespace
}  // namespace pith
