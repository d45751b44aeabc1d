#include "eval/position_growth.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace pith {
namespace {

TEST(MeasureGrowthTest, AnExactLineHasItsSlopeAndNoWidth) {
  std::vector<PositionValue> values;
  for (int64_t document = 0; document < 5; ++document) {
    for (int64_t position = 1; position <= 64; ++position) {
      values.push_back({0.5 + 0.25 * std::log2(static_cast<double>(position)), document, position});
    }
  }
  const PositionGrowth growth = MeasureGrowth(values, {});
  EXPECT_NEAR(growth.slope_per_doubling.value, 0.25, 1e-12);
  EXPECT_NEAR(growth.slope_per_doubling.low, 0.25, 1e-12);
  EXPECT_NEAR(growth.slope_per_doubling.high, 0.25, 1e-12);
  EXPECT_EQ(growth.slope_per_doubling.n, 5 * 64);
  EXPECT_EQ(growth.slope_per_doubling.documents, 5);
}

TEST(MeasureGrowthTest, ThreePointsByHand) {
  // log2 = 0, 1, 3; mean 4/3; slope = sum((x - 4/3) y) / sum((x - 4/3)^2) = (-4/3 * 1 - 1/3 * 4 + 5/3 * 2) / (42/9).
  const PositionGrowth growth = MeasureGrowth(std::vector<PositionValue>{{1, 0, 1}, {4, 0, 2}, {2, 0, 8}}, {});
  EXPECT_NEAR(growth.slope_per_doubling.value, (10.0 / 3 - 4.0 / 3 - 4.0 / 3) / (42.0 / 9), 1e-12);
  EXPECT_EQ(growth.slope_per_doubling.documents, 1);
}

TEST(MeasureGrowthTest, BinsDoubleAndHoldTheirMeans) {
  std::vector<PositionValue> values;
  for (int64_t position = 1; position <= 9; ++position) values.push_back({static_cast<double>(position), position % 2, position});
  const PositionGrowth growth = MeasureGrowth(values, {});
  ASSERT_EQ(growth.bins.size(), 4u);
  EXPECT_EQ(growth.bins[2].first, 4);
  EXPECT_EQ(growth.bins[2].last, 7);
  EXPECT_DOUBLE_EQ(growth.bins[2].mean.value, 5.5);
  EXPECT_DOUBLE_EQ(growth.bins[3].mean.value, 8.5);
  const OrderedJson json = ToJson(growth);
  EXPECT_EQ(json.at("bins")[3].at("first"), 8);
  EXPECT_EQ(json.at("bins")[3].at("n"), 2);
}

TEST(MeasureGrowthTest, OnePositionOrNoneHasNoSlope) {
  EXPECT_EQ(MeasureGrowth(std::vector<PositionValue>{{1, 0, 512}, {2, 1, 512}}, {}).slope_per_doubling.n, 0);
  EXPECT_EQ(MeasureGrowth({}, {}).slope_per_doubling.n, 0);
  EXPECT_TRUE(MeasureGrowth({}, {}).bins.empty());
  EXPECT_EQ(MeasureGrowth(std::vector<PositionValue>{{1, 0, 2}, {3, 1, 4}}, {}).slope_per_doubling.n, 0);
  // Draws of the document with one position alone have no slope and are left out.
  const PositionGrowth growth = MeasureGrowth(std::vector<PositionValue>{{1, 0, 2}, {3, 1, 4}, {5, 1, 8}}, {});
  EXPECT_NEAR(growth.slope_per_doubling.low, 2.0, 1e-12);
  EXPECT_NEAR(growth.slope_per_doubling.high, 2.0, 1e-12);
}

TEST(MeasureGrowthTest, DocumentsThatAreShortAndHardAreNoGrowth) {
  std::vector<PositionValue> values;
  for (int64_t document = 0; document < 6; ++document) {
    for (int64_t position = 1; position <= (document % 2 == 0 ? 8 : 512); position *= 2) {
      values.push_back({document % 2 == 0 ? 9.0 : 1.0, document, position});
    }
  }
  EXPECT_NEAR(MeasureGrowth(values, {}).slope_per_doubling.value, 0.0, 1e-12);
}

TEST(MeasureGrowthTest, AnErrorThatDoesNotGrowIsSaidNotToAbout95PercentOfTheTime) {
  int covered = 0;
  for (uint64_t trial = 0; trial < 200; ++trial) {
    RandomStream random(trial, 3);
    std::vector<PositionValue> values;
    for (int64_t document = 0; document < 40; ++document) {
      const double level = random.Normal();  // of the whole document
      for (int64_t position = 1; position <= 256; position *= 2) values.push_back({level + random.Normal(), document, position});
    }
    const Estimate slope = MeasureGrowth(values, {.replicates = 300, .seed = trial}).slope_per_doubling;
    covered += slope.low <= 0 && 0 <= slope.high ? 1 : 0;
  }
  EXPECT_GT(covered, 176);
  EXPECT_LT(covered, 200);
}

}  // namespace
}  // namespace pith
