#include "eval/paired_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace pith {
namespace {

std::vector<DocumentValue> Values(const std::vector<std::vector<double>>& documents) {
  std::vector<DocumentValue> values;
  for (size_t d = 0; d < documents.size(); ++d) {
    for (const double value : documents[d]) values.push_back({value, static_cast<int64_t>(d)});
  }
  return values;
}

TEST(PairedStatisticsTest, PointEstimatesByHand) {
  const auto values = Values({{1, 2, 3}, {10}});
  EXPECT_DOUBLE_EQ(EstimateMean(values, {}).value, 4.0);
  EXPECT_EQ(EstimateMean(values, {}).n, 4);
  EXPECT_DOUBLE_EQ(EstimateExpMean(values, {}).value, std::exp(4.0));
  EXPECT_DOUBLE_EQ(EstimateQuantile(values, 0.5, {}).value, 2.0);
  EXPECT_DOUBLE_EQ(EstimateQuantile(values, 0.51, {}).value, 3.0);
  EXPECT_DOUBLE_EQ(EstimateQuantile(values, 0.0, {}).value, 1.0);
  EXPECT_DOUBLE_EQ(EstimateQuantile(values, 1.0, {}).value, 10.0);
}

TEST(PairedStatisticsTest, OneDocumentHasNoIntervalAndNoValuesAreZero) {
  const Estimate one = EstimateMean(Values({{1, 2, 3}}), {});
  EXPECT_EQ(one.low, one.value);
  EXPECT_EQ(one.high, one.value);
  EXPECT_EQ(EstimateMean({}, {}).n, 0);
  EXPECT_EQ(EstimateQuantile({}, 0.5, {}).n, 0);
}

TEST(PairedStatisticsTest, EqualDocumentsGiveAPointInterval) {
  const Estimate estimate = EstimateMean(Values({{1, 3}, {1, 3}, {1, 3}}), {});
  EXPECT_EQ(estimate.low, 2.0);
  EXPECT_EQ(estimate.high, 2.0);
}

// The standard error of a mean of documents: resampling tokens instead of documents would give an interval ten times too narrow.
TEST(PairedStatisticsTest, ResamplesDocumentsNotTokens) {
  RandomStream random(3);
  std::vector<std::vector<double>> documents;
  double variance = 0;
  for (int d = 0; d < 200; ++d) {
    const double level = random.Normal();
    variance += level * level / 200;
    documents.emplace_back(100, level);
  }
  const Estimate estimate = EstimateMean(Values(documents), {.replicates = 4000});
  const double expected = 2 * 1.96 * std::sqrt(variance / 200);
  EXPECT_NEAR(estimate.high - estimate.low, expected, 0.12 * expected);
  EXPECT_LT(estimate.low, estimate.value);
  EXPECT_GT(estimate.high, estimate.value);
}

TEST(PairedStatisticsTest, AQuantileCoversTheTruthAbout95PercentOfTheTime) {
  int covered = 0;
  for (uint64_t trial = 0; trial < 200; ++trial) {
    RandomStream random(trial);
    std::vector<std::vector<double>> documents;
    for (int d = 0; d < 60; ++d) documents.push_back({random.Uniform()});
    const Estimate estimate = EstimateQuantile(Values(documents), 0.5, {.replicates = 300, .seed = trial});
    covered += estimate.low <= 0.5 && 0.5 <= estimate.high ? 1 : 0;
  }
  EXPECT_GT(covered, 176);
  EXPECT_LT(covered, 200);
}

TEST(PairedStatisticsTest, SeveralQuantilesAreThoseAskedForOneByOne) {
  RandomStream random(8);
  std::vector<std::vector<double>> documents;
  for (int d = 0; d < 30; ++d) {
    documents.emplace_back();
    for (int i = 0; i <= d % 4; ++i) documents.back().push_back(random.Uniform());
  }
  const auto values = Values(documents);
  const std::vector<double> qs = {0, 0.5, 0.9, 0.999, 1};
  const std::vector<Estimate> together = EstimateQuantiles(values, qs, {});
  for (size_t i = 0; i < qs.size(); ++i) {
    const Estimate alone = EstimateQuantile(values, qs[i], {});
    EXPECT_EQ(together[i].value, alone.value);
    EXPECT_EQ(together[i].low, alone.low);
    EXPECT_EQ(together[i].high, alone.high);
    EXPECT_EQ(alone.documents, 30);
  }
  EXPECT_TRUE(EstimateQuantiles(values, {}, {}).empty());
}

TEST(PairedStatisticsTest, RootMeanSquareByHand) {
  const Estimate estimate = EstimateRootMeanSquare(Values({{3}, {-4}}), {});
  EXPECT_DOUBLE_EQ(estimate.value, std::sqrt(12.5));
  EXPECT_DOUBLE_EQ(estimate.low, 3);
  EXPECT_DOUBLE_EQ(estimate.high, 4);
}

TEST(PairedStatisticsTest, MoreConfidenceIsAWiderInterval) {
  RandomStream random(9);
  std::vector<std::vector<double>> documents;
  for (int d = 0; d < 100; ++d) documents.push_back({random.Normal()});
  const Estimate usual = EstimateMean(Values(documents), {.replicates = 4000});
  const Estimate wide = EstimateMean(Values(documents), {.replicates = 4000, .confidence = 0.99});
  EXPECT_NEAR((wide.high - wide.low) / (usual.high - usual.low), 2.576 / 1.960, 0.1);
}

TEST(PairedStatisticsTest, DrawsWithoutAStatisticAreLeftOut) {
  const double value = 1;
  const std::vector<int64_t> documents = {0, 1};
  int defined = 0;
  const Estimate estimate = BootstrapDocuments({&value, 1}, 2, documents, {},
                                               [&](absl::Span<const int> weights, absl::Span<double> results) {
                                                 results[0] = weights[0] == 1 ? 5 : std::nan("");
                                                 defined += weights[0] == 1 ? 1 : 0;
                                               })[0];
  EXPECT_EQ(estimate.low, 5);
  EXPECT_EQ(estimate.high, 5);
  EXPECT_NEAR(defined, 500, 80);
}

TEST(PairedStatisticsTest, ABoundInsideTheIntervalOrTooFewDocumentsDecideNothing) {
  const Estimate estimate{.value = 0.2, .low = 0.1, .high = 0.3, .n = 1000, .documents = 50};
  EXPECT_EQ(DecideAtMost(estimate, 0.3), Decision::kHolds);
  EXPECT_EQ(DecideAtMost(estimate, 0.29), Decision::kNotEnoughData);
  EXPECT_EQ(DecideAtMost(estimate, 0.1), Decision::kNotEnoughData);
  EXPECT_EQ(DecideAtMost(estimate, 0.09), Decision::kFails);
  EXPECT_EQ(DecideAtLeast(estimate, 0.1), Decision::kHolds);
  EXPECT_EQ(DecideAtLeast(estimate, 0.11), Decision::kNotEnoughData);
  EXPECT_EQ(DecideAtLeast(estimate, 0.31), Decision::kFails);
  Estimate one = estimate;
  one.documents = 1;
  EXPECT_EQ(DecideAtMost(one, 9), Decision::kNotEnoughData);
  EXPECT_EQ(DecideAtMost(one, 9, 1), Decision::kHolds);
  EXPECT_EQ(DecideAtMost(Estimate{}, 9), Decision::kNotEnoughData);
  EXPECT_STREQ(DecisionName(Decision::kNotEnoughData), "not enough data");
  EXPECT_STREQ(DecisionName(Decision::kHolds), "holds");
  EXPECT_STREQ(DecisionName(Decision::kFails), "fails");
}

TEST(PairedStatisticsTest, TheSameSeedGivesTheSameInterval) {
  const auto values = Values({{1}, {2}, {5}, {7}});
  EXPECT_EQ(EstimateMean(values, {.seed = 5}).low, EstimateMean(values, {.seed = 5}).low);
  EXPECT_EQ(ToJson(EstimateMean(values, {})).at("ci95").size(), 2u);
}

}  // namespace
}  // namespace pith
