#include "eval/paired_outcomes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace pith {
namespace {

// Items of which `a` only the reference solves, `b` only the model, `both` both and `neither` none.
std::vector<ItemOutcome> Items(int a, int b, int both, int neither) {
  std::vector<ItemOutcome> items;
  items.insert(items.end(), a, {1, 0});
  items.insert(items.end(), b, {0, 1});
  items.insert(items.end(), both, {1, 1});
  items.insert(items.end(), neither, {0, 0});
  return items;
}

TEST(McNemarExactTest, SmallSplitsByHand) {
  EXPECT_EQ(McNemarExact(0, 0), 1.0);
  EXPECT_NEAR(McNemarExact(1, 0), 1.0, 1e-12);       // 2 * 1/2
  EXPECT_NEAR(McNemarExact(5, 0), 2.0 / 32, 1e-12);  // 2 * 2^-5
  EXPECT_NEAR(McNemarExact(0, 6), 2.0 / 64, 1e-12);
  EXPECT_NEAR(McNemarExact(2, 8), 2.0 * (1 + 10 + 45) / 1024, 1e-12);
  EXPECT_NEAR(McNemarExact(8, 2), McNemarExact(2, 8), 1e-15);
  EXPECT_EQ(McNemarExact(4, 4), 1.0);
}

TEST(McNemarExactTest, LargeSplitsAgreeWithTheNormalApproximationAndDoNotUnderflow) {
  // With continuity correction: z = (|a - b| - 1) / sqrt(a + b).
  const double z = (2100.0 - 1900.0 - 1) / std::sqrt(4000.0);
  EXPECT_NEAR(McNemarExact(1900, 2100), std::erfc(z / std::sqrt(2.0)), 1e-4);
}

TEST(NormalQuantileTest, KnownValues) {
  EXPECT_NEAR(NormalQuantile(0.5), 0.0, 1e-12);
  EXPECT_NEAR(NormalQuantile(0.975), 1.959963984540054, 1e-12);
  EXPECT_NEAR(NormalQuantile(0.005), -2.5758293035489004, 1e-12);
}

TEST(CompareOutcomesTest, CountsRatesAndDifference) {
  const OutcomeComparison c = CompareOutcomes(Items(6, 2, 40, 12), {});
  EXPECT_EQ(c.reference_better, 6);
  EXPECT_EQ(c.model_better, 2);
  EXPECT_DOUBLE_EQ(c.reference_rate.value, 46.0 / 60);
  EXPECT_DOUBLE_EQ(c.model_rate.value, 42.0 / 60);
  EXPECT_NEAR(c.difference.value, -4.0 / 60, 1e-12);
  EXPECT_EQ(c.difference.n, 60);
  EXPECT_EQ(c.difference.documents, 60);
  EXPECT_LT(c.difference.low, c.difference.value);
  EXPECT_GT(c.difference.high, 0.0);
  EXPECT_NEAR(c.mcnemar_p, 2.0 * (1 + 8 + 28) / 256, 1e-12);
  const OrderedJson json = ToJson(c);
  EXPECT_EQ(json.at("model_better"), 2);
  EXPECT_EQ(json.at("difference").at("n"), 60);
}

TEST(CompareOutcomesTest, RatesHaveWilsonsInterval) {
  // Wilson 1927 with z = 1.96: of 81 in 263 the interval is [0.2553, 0.3662] (Newcombe 1998, table I).
  std::vector<ItemOutcome> items(263);
  for (int i = 0; i < 81; ++i) items[i].model = 1;
  const OutcomeComparison c = CompareOutcomes(items, {});
  EXPECT_NEAR(c.model_rate.low, 0.2553, 5e-5);
  EXPECT_NEAR(c.model_rate.high, 0.3662, 5e-5);
  EXPECT_EQ(c.reference_rate.low, 0.0);
  EXPECT_NEAR(c.reference_rate.high, 1.96 * 1.96 / (263 + 1.96 * 1.96), 1e-4);
}

TEST(CompareOutcomesTest, NoDifferenceOnFewItemsIsNotProofOfNone) {
  // By hand: with a pseudo-item each way, sd^2 = 2 / 22, so the half width is z * sqrt(2 / 22 / 22).
  const OutcomeComparison few = CompareOutcomes(Items(0, 0, 15, 5), {});
  EXPECT_EQ(few.difference.value, 0.0);
  EXPECT_NEAR(few.difference.high, NormalQuantile(0.975) * std::sqrt(2.0 / 22 / 22), 1e-12);
  EXPECT_EQ(DecideAtLeast(few.difference, -0.02), Decision::kNotEnoughData);
  EXPECT_EQ(DecideAtLeast(CompareOutcomes(Items(0, 0, 300, 100), {}).difference, -0.02), Decision::kHolds);
  EXPECT_EQ(DecideAtLeast(CompareOutcomes(Items(80, 10, 200, 100), {}).difference, -0.02), Decision::kFails);
  EXPECT_EQ(DecideAtLeast(CompareOutcomes({}, {}).difference, -0.02), Decision::kNotEnoughData);
  EXPECT_EQ(CompareOutcomes({}, {}).mcnemar_p, 1.0);
}

TEST(CompareOutcomesTest, SharesOfSamplesCountAsTheyAre) {
  const std::vector<ItemOutcome> items = {{0.5, 0.25}, {1, 1}, {0.25, 0.75}, {0.5, 0}};
  const OutcomeComparison c = CompareOutcomes(items, {});
  EXPECT_DOUBLE_EQ(c.difference.value, (-0.25 + 0 + 0.5 - 0.5) / 4);
  EXPECT_EQ(c.reference_better, 2);
  EXPECT_EQ(c.model_better, 1);
}

TEST(CompareOutcomesTest, TheIntervalCoversTheTruthAbout95PercentOfTheTime) {
  int covered = 0;
  constexpr int kTrials = 300;
  for (uint64_t trial = 0; trial < kTrials; ++trial) {
    RandomStream random(trial);
    std::vector<ItemOutcome> items;
    for (int i = 0; i < 60; ++i) {
      const double u = random.Uniform();  // 10 % only the reference, 5 % only the model
      items.push_back(u < 0.1 ? ItemOutcome{1, 0} : u < 0.15 ? ItemOutcome{0, 1} : ItemOutcome{1, 1});
    }
    const Estimate difference = CompareOutcomes(items, {.replicates = 400, .seed = trial}).difference;
    covered += difference.low <= -0.05 && -0.05 <= difference.high ? 1 : 0;
  }
  EXPECT_GT(covered, 0.92 * kTrials);
  EXPECT_LT(covered, kTrials);
}

}  // namespace
}  // namespace pith
