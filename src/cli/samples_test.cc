#include "cli/samples.h"

#include <cmath>

#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(SamplesTest, MedianOfOddAndEvenCounts) {
  EXPECT_EQ(Median({5}), 5);
  EXPECT_EQ(Median({9, 1, 4}), 4);
  EXPECT_EQ(Median({9, 1, 4, 2}), 3);
}

TEST(SamplesTest, MeanAndDeviationOfTheSample) {
  EXPECT_EQ(Mean({1, 2, 6}), 3);
  EXPECT_EQ(StandardDeviation({7}), 0);
  EXPECT_DOUBLE_EQ(StandardDeviation({1, 2, 6}), std::sqrt(7.0));  // (4 + 1 + 9) / 2
}

}  // namespace
}  // namespace pith
