#include "compression/stage_clock.h"

#include <gtest/gtest.h>

namespace pith {
namespace {

// A stage of 2 modules and sequences of 10, 20, 30 and 40 tokens, of which the first 2 are measured: 5 to begin with, 1 per token to
// observe, 7 for the modules, 3 per measured token, 2 per other token, 4 at the end. CPU time is twice that.
class StageClockTest : public testing::Test {
 protected:
  void Pass(double seconds) { now_ = now_ + Cost{seconds, 2 * seconds}; }

  StageClockTest() {
    clock_.Begin(now_);
    Pass(5);
    for (const int64_t length : lengths_) {
      Pass(static_cast<double>(length));
      clock_.Mark(0, now_);
    }
    for (const double module : {3.0, 4.0}) {
      Pass(module);
      clock_.Mark(1, now_);
    }
    for (size_t i = 0; i < lengths_.size(); ++i) {
      Pass((i < 2 ? 3.0 : 2.0) * static_cast<double>(lengths_[i]));
      clock_.Mark(0, now_);
    }
    Pass(4);
    clock_.End(now_);
  }

  const std::vector<int64_t> lengths_ = {10, 20, 30, 40};
  Cost now_{100, 1000};
  StageClock clock_;
};

TEST_F(StageClockTest, WhatIsDonePerTokenIsToldFromWhatIsDoneOnce) {
  const LayerCost cost = clock_.Split(lengths_, 2);
  EXPECT_DOUBLE_EQ(cost.observe.seconds, 1);
  EXPECT_DOUBLE_EQ(cost.advance_measured.seconds, 3);
  EXPECT_DOUBLE_EQ(cost.advance.seconds, 2);
  EXPECT_DOUBLE_EQ(cost.once.seconds, 5 + 7 + 4);
  EXPECT_DOUBLE_EQ(cost.once.cpu_seconds, 2 * (5 + 7 + 4));
  EXPECT_DOUBLE_EQ(cost.advance.cpu_seconds, 4);
  EXPECT_DOUBLE_EQ(clock_.Whole().seconds, 5 + 100 + 7 + 3 * 30 + 2 * 70 + 4);
}

TEST_F(StageClockTest, TooLittleToTellIsAllDoneOnce) {
  for (const LayerCost& cost : {clock_.Split(lengths_, 3), clock_.Split({10, 20, 30}, 1)}) {
    EXPECT_DOUBLE_EQ(cost.once.seconds, clock_.Whole().seconds);
    EXPECT_EQ(cost.observe.seconds, 0);
  }
}

TEST(CostTest, MeansAndBounds) {
  EXPECT_EQ(MeanCost({}).seconds, 0);
  const Cost mean = MeanCost({{1, 2}, {3, 6}});
  EXPECT_EQ(mean.seconds, 2);
  EXPECT_EQ(mean.cpu_seconds, 4);
  const Cost bounded = AtLeastZero({-1, 2});
  EXPECT_EQ(bounded.seconds, 0);
  EXPECT_EQ(bounded.cpu_seconds, 2);
  const Cost before = CostNow(), after = CostNow();
  EXPECT_GE(after.seconds, before.seconds);
  EXPECT_GE(after.cpu_seconds, before.cpu_seconds);
}

}  // namespace
}  // namespace pith
