#include "compression/disk_need.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compression/test_golden_models.h"

namespace pith {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(DiskNeedTest, CountsWhatLiesSideBySide) {
  const auto reader = OpenGolden("qwen2_window");
  const auto recipe = MakeRecipe("W4A16", "rtn", "auto", {}, true, 0);
  ASSERT_TRUE(recipe.ok());
  const auto plan = PlanCompression(*reader, *recipe);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const DiskNeed without = ComputeDiskNeed(*plan, 64, {});
  EXPECT_GT(without.artifact, plan->output_bytes);
  int64_t outside = 0;  // embedding and final norm are not kept
  for (const PlannedModule& module : plan->modules) {
    if (module.name.find("layers.") == std::string::npos) outside += TotalBytes(module.tensors);
  }
  EXPECT_EQ(without.layers, plan->output_bytes - outside);
  EXPECT_EQ(without.hidden_states, 0);
  const DiskNeed with = ComputeDiskNeed(*plan, 64, {.tokens = 1000, .measured_tokens = 100});
  EXPECT_EQ(with.hidden_states, 2 * 1100 * 64 * 4);
  EXPECT_EQ(with.total(), without.total() + with.hidden_states);
}

TEST(DiskNeedTest, TooLittleIsRefusedWithAllNumbers) {
  const DiskNeed need{.artifact = 1000, .layers = 200, .hidden_states = 30};
  EXPECT_TRUE(CheckDiskNeed("out", need, 1230).ok());
  const absl::Status refused = CheckDiskNeed("out", need, 1229);
  EXPECT_TRUE(absl::IsAborted(refused));
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("out: expected 1230 bytes of free disk space"), HasSubstr("artifact 1000"),
                                       HasSubstr("whole 200"), HasSubstr("data 30"), HasSubstr("found 1229")));
}

}  // namespace
}  // namespace pith
