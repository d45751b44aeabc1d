#include "tokenizer/template_budget.h"

#include <limits>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith::jinja {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(TemplateBudget, StepsAddUp) {
  Budget budget({.steps = 10});
  EXPECT_TRUE(budget.Spend(10).ok());
  const absl::Status status = budget.Spend(1);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr("limit steps of 10"));
  EXPECT_FALSE(budget.Spend(std::numeric_limits<int64_t>::max()).ok());
  EXPECT_FALSE(budget.Spend(1).ok());
}

TEST(TemplateBudget, TextCostsStepsAndHasASize) {
  Budget budget({.steps = 100, .output_bytes = 6400});
  EXPECT_THAT(Message(budget.SpendText(6401)), HasSubstr("limit output_bytes of 6400"));
  EXPECT_EQ(budget.steps_spent(), 0);
  EXPECT_TRUE(budget.SpendText(640).ok());
  EXPECT_EQ(budget.steps_spent(), 11);
  EXPECT_THAT(Message(budget.SpendText(6400)), HasSubstr("limit steps"));
}

TEST(TemplateBudget, ClockIsReadBetweenSteps) {
  Budget budget({.wall_ms = 1});
  EXPECT_TRUE(budget.Spend(1).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_TRUE(budget.Spend(1).ok());
  EXPECT_THAT(Message(budget.Spend(1000)), HasSubstr("limit wall_ms of 1"));
}

TEST(TemplateBudget, FramesNest) {
  Budget budget({.depth = 1});
  EXPECT_TRUE(budget.CheckDepth(1).ok());
  EXPECT_THAT(Message(budget.CheckDepth(2)), HasSubstr("limit depth of 1"));
  const auto nest = [&](auto& self, int levels) -> absl::Status {
    const BudgetFrame frame(budget);
    if (!frame.status().ok()) return frame.status();
    return levels == 1 ? absl::OkStatus() : self(self, levels - 1);
  };
  EXPECT_TRUE(nest(nest, 16).ok());
  EXPECT_THAT(Message(nest(nest, 17)), HasSubstr("limit depth"));
  EXPECT_TRUE(nest(nest, 16).ok());
}

}  // namespace
}  // namespace pith::jinja
