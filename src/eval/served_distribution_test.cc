#include "eval/served_distribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace pith {
namespace {

std::vector<float> Logs(const std::vector<float>& probabilities) {
  std::vector<float> logits;
  for (const float p : probabilities) logits.push_back(std::log(p));
  return logits;
}

ServedComparison Compare(const std::vector<float>& reference, const std::vector<float>& model, const SamplingParams& params) {
  ServedScratch scratch;
  return CompareServed(reference, model, params, scratch);
}

TEST(CompareServedTest, TopKByHand) {
  // Served: {.625, .375, -} and {-, .375, .625}.
  const ServedComparison c = Compare(Logs({0.5f, 0.3f, 0.2f}), Logs({0.2f, 0.3f, 0.5f}), {.top_k = 2});
  EXPECT_NEAR(c.total_variation, 0.625, 1e-6);
  EXPECT_NEAR(c.lost_mass, 0.625, 1e-6);
  EXPECT_NEAR(c.added_mass, 0.625, 1e-6);
  EXPECT_NEAR(c.jensen_shannon, 0.625 * std::log(2.0), 1e-6);
  EXPECT_NEAR(c.kl_shared, 0.0, 1e-6);
  EXPECT_NEAR(c.kl, 0.5 * std::log(2.5) + 0.2 * std::log(0.4), 1e-6);
}

TEST(CompareServedTest, TopPByHand) {
  // The reference keeps .6 + .3, renormalized {2/3, 1/3}; the model needs all three.
  const ServedComparison c = Compare(Logs({0.6f, 0.3f, 0.1f}), Logs({0.4f, 0.35f, 0.25f}), {.top_p = 0.85f});
  EXPECT_NEAR(c.total_variation, 0.5 * (2.0 / 3 - 0.4 + 0.35 - 1.0 / 3 + 0.25), 1e-6);
  EXPECT_NEAR(c.lost_mass, 0.0, 1e-12);
  EXPECT_NEAR(c.added_mass, 0.25, 1e-6);
  EXPECT_NEAR(c.kl_shared, 2.0 / 3 * std::log(2.0 / 3 / (0.4 / 0.75)) + 1.0 / 3 * std::log(1.0 / 3 / (0.35 / 0.75)), 1e-6);
}

TEST(CompareServedTest, ATemperatureOfOneHalfSquaresProbabilities) {
  // {3/4, 1/4} becomes {.9, .1}.
  const ServedComparison c = Compare(Logs({0.75f, 0.25f}), Logs({0.25f, 0.75f}), {.temperature = 0.5f});
  EXPECT_NEAR(c.kl, 0.8 * std::log(9.0), 1e-6);
  EXPECT_NEAR(c.kl_shared, c.kl, 1e-6);
  EXPECT_NEAR(c.total_variation, 0.8, 1e-6);
  EXPECT_EQ(c.lost_mass, 0.0);
}

TEST(CompareServedTest, MinPCutsByShareOfTheBest) {
  const ServedComparison c = Compare(Logs({0.6f, 0.3f, 0.1f}), Logs({0.6f, 0.1f, 0.3f}), {.min_p = 0.4f});
  EXPECT_NEAR(c.lost_mass, 1.0 / 3, 1e-6);
  EXPECT_NEAR(c.added_mass, 1.0 / 3, 1e-6);
}

TEST(CompareServedTest, GreedyDecodingServesOneToken) {
  const ServedComparison same = Compare({1, 3, 2}, {0, 5, 1}, {.temperature = 0});
  EXPECT_EQ(same.total_variation, 0.0);
  EXPECT_EQ(same.jensen_shannon, 0.0);
  EXPECT_EQ(same.lost_mass, 0.0);
  const ServedComparison other = Compare({1, 3, 2}, {5, 0, 1}, {.temperature = 0});
  EXPECT_EQ(other.total_variation, 1.0);
  EXPECT_NEAR(other.jensen_shannon, std::log(2.0), 1e-15);
  EXPECT_EQ(other.lost_mass, 1.0);
  EXPECT_EQ(other.added_mass, 1.0);
  EXPECT_EQ(other.kl, 0.0);
  EXPECT_EQ(other.kl_shared, 0.0);
}

TEST(CompareServedTest, EqualRowsGiveExactlyZeroUnderEverySetting) {
  RandomStream random(4);
  std::vector<float> row(500);
  for (float& logit : row) logit = 6.0f * random.Normal();
  for (const SamplingParams& params : {SamplingParams{}, SamplingParams{.temperature = 0}, SamplingParams{.temperature = 0.1f},
                                       SamplingParams{.top_k = 20, .top_p = 0.9f}}) {
    const ServedComparison c = Compare(row, row, params);
    EXPECT_EQ(c.kl, 0.0);
    EXPECT_EQ(c.kl_shared, 0.0);
    EXPECT_EQ(c.jensen_shannon, 0.0);
    EXPECT_EQ(c.total_variation, 0.0);
    EXPECT_EQ(c.lost_mass, 0.0);
    EXPECT_EQ(c.added_mass, 0.0);
  }
}

// Total variation, Jensen-Shannon and KL of random rows against the formulas over the whole vocabulary, and Pinsker's inequality.
TEST(CompareServedTest, WithoutACutItIsTheWholeDistribution) {
  RandomStream random(5);
  ServedScratch scratch;
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<float> reference(100), model(100);
    for (size_t i = 0; i < reference.size(); ++i) {
      reference[i] = 2.0f * random.Normal();
      model[i] = reference[i] + random.Normal();
    }
    const double temperature = trial % 2 == 0 ? 1.0 : 0.7;
    const auto softmax = [&](const std::vector<float>& row) {
      double sum = 0;
      std::vector<double> p;
      for (const float x : row) p.push_back(std::exp(static_cast<double>(x) / temperature));
      for (const double x : p) sum += x;
      for (double& x : p) x /= sum;
      return p;
    };
    const auto p = softmax(reference), q = softmax(model);
    double kl = 0, variation = 0, js = 0;
    for (size_t i = 0; i < p.size(); ++i) {
      kl += p[i] * std::log(p[i] / q[i]);
      variation += std::fabs(p[i] - q[i]) / 2;
      js += p[i] / 2 * std::log(2 * p[i] / (p[i] + q[i])) + q[i] / 2 * std::log(2 * q[i] / (p[i] + q[i]));
    }
    const ServedComparison c = CompareServed(reference, model, {.temperature = static_cast<float>(temperature)}, scratch);
    EXPECT_NEAR(c.kl, kl, 1e-5);
    EXPECT_NEAR(c.kl_shared, kl, 1e-5);
    EXPECT_NEAR(c.total_variation, variation, 1e-5);
    EXPECT_NEAR(c.jensen_shannon, js, 1e-5);
    EXPECT_LE(2 * c.total_variation * c.total_variation, c.kl);
  }
}

}  // namespace
}  // namespace pith
