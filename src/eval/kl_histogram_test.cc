#include "eval/kl_histogram.h"

#include <gtest/gtest.h>

namespace pith {
namespace {

TEST(KlHistogramTest, EveryEdgeBelongsToTheBinAboveIt) {
  const KlHistogram empty;
  ASSERT_EQ(empty.edges().size(), KlHistogram::kNumBins + 1u);
  EXPECT_DOUBLE_EQ(empty.edges().front(), 1e-9);
  EXPECT_DOUBLE_EQ(empty.edges()[KlHistogram::kBinsPerDecade], 1e-8);
  EXPECT_DOUBLE_EQ(empty.edges().back(), 100);
  for (size_t i = 0; i < KlHistogram::kNumBins; ++i) {
    KlHistogram histogram;
    histogram.Add(empty.edges()[i]);
    histogram.Add(0.999 * empty.edges()[i + 1]);
    EXPECT_EQ(histogram.counts()[i], 2) << i;
  }
}

TEST(KlHistogramTest, CountsWhatLiesOutside) {
  KlHistogram histogram;
  for (const double kl : {0.0, 1e-12, 0.02, 0.02, 100.0, 1e5}) histogram.Add(kl);
  EXPECT_EQ(histogram.below(), 2);
  EXPECT_EQ(histogram.above(), 2);
  EXPECT_EQ(histogram.total(), 6);
}

TEST(KlHistogramTest, JsonHoldsTheBinsInUse) {
  KlHistogram histogram;
  histogram.Add(0.011);
  histogram.Add(0.03);
  histogram.Add(0.2);
  const OrderedJson json = ToJson(histogram);
  EXPECT_EQ(json.at("counts"), OrderedJson({1, 1, 0, 0, 0, 1}));
  ASSERT_EQ(json.at("edges").size(), 7u);
  EXPECT_DOUBLE_EQ(json.at("edges")[0].get<double>(), 0.01);
  EXPECT_EQ(ToJson(KlHistogram()).dump(), R"({"edges":[],"counts":[],"below":0,"above":0})");
}

}  // namespace
}  // namespace pith
