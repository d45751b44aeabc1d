#include "compression/bit_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "compression/test_golden_models.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

class BitBudgetTest : public testing::Test {
 protected:
  BitBudgetTest() {
    RandomStream random(9);
    for (int i = 0; i < 5; ++i) {
      std::vector<int32_t> tokens(24);
      for (int32_t& token : tokens) token = static_cast<int32_t>(random.Below(100));
      data_.sequences.push_back(std::move(tokens));
    }
    recipe_ = *MakeRecipe("W4A16", "rtn", "auto", {}, true, 0);
  }

  // Bits that the modules of the recipe's own scheme and its overrides take on average.
  double BitsPerWeight(const ArtifactReader& reader, const Recipe& recipe) {
    const auto plan = PlanCompression(reader, recipe);
    EXPECT_TRUE(plan.ok()) << plan.status();
    int64_t bytes = 0, weights = 0;
    for (const PlannedModule& module : plan->modules) {
      if (!module.quantized) continue;
      bytes += TotalBytes(module.tensors);
      weights += module.out * module.in;
    }
    return 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
  }

  CalibrationData data_;
  Recipe recipe_;
  ThreadPool pool_{2};
};

TEST_F(BitBudgetTest, SetsAreWhatMustShareAScheme) {
  const auto reader = OpenGolden("llama_llama3");
  const auto plan = PlanCompression(*reader, recipe_);
  ASSERT_TRUE(plan.ok());
  std::vector<size_t> sizes;
  for (const ModuleSet& set : ModuleSets(*plan)) sizes.push_back(set.modules.size());
  EXPECT_EQ(sizes, (std::vector<size_t>{3, 1, 2, 1, 3, 1, 2, 1}));
  EXPECT_EQ(ModuleSets(*plan)[5].layer, 1);
  EXPECT_EQ(ModuleSets(*plan)[5].modules[0]->name, "model.layers.1.self_attn.o_proj");
}

TEST_F(BitBudgetTest, SensitivitiesAreThoseOfTheOutput) {
  const auto reader = OpenGolden("llama_llama3");
  const auto plan = PlanCompression(*reader, recipe_);
  ASSERT_TRUE(plan.ok());
  const std::vector<ModuleSet> sets = ModuleSets(*plan);
  int64_t calls = 0;
  const auto losses = MeasureSensitivities(*reader, sets, data_, {}, pool_, [&](int64_t done, int64_t total) {
    EXPECT_EQ(done, ++calls);
    EXPECT_EQ(total, 8);
    return absl::OkStatus();
  });
  ASSERT_TRUE(losses.ok()) << losses.status();
  ASSERT_EQ(losses->size(), sets.size());
  ThreadPool one(1);
  const auto alone = MeasureSensitivities(*reader, sets, data_, {}, one, nullptr);
  ASSERT_TRUE(alone.ok() && alone->size() == losses->size());
  for (size_t i = 0; i < losses->size(); ++i) {
    EXPECT_GT((*losses)[i].kl, 0);
    EXPECT_LT((*losses)[i].kl, 1);
    EXPECT_GT((*losses)[i].squared_error, 0);
    EXPECT_EQ((*losses)[i].kl, (*alone)[i].kl);
    EXPECT_EQ((*losses)[i].squared_error, (*alone)[i].squared_error);
  }
  const auto stopped = MeasureSensitivities(*reader, sets, data_, {}, pool_, [](int64_t, int64_t) { return absl::CancelledError("stop"); });
  EXPECT_TRUE(absl::IsCancelled(stopped.status()));
  EXPECT_TRUE(absl::IsInvalidArgument(MeasureSensitivities(*reader, sets, {}, {}, pool_, nullptr).status()));
}

TEST_F(BitBudgetTest, SpendsTheBudgetWhereItPays) {
  const auto reader = OpenGolden("llama_llama3");
  const double least = BitsPerWeight(*reader, recipe_);
  double before = least;
  for (const double bits : {6.5, 8.0}) {
    const auto allocated = AllocateRecipe(*reader, recipe_, bits, data_, {}, pool_, nullptr);
    ASSERT_TRUE(allocated.ok()) << allocated.status();
    EXPECT_FALSE(allocated->recipe.overrides.empty());
    const double found = BitsPerWeight(*reader, allocated->recipe);
    EXPECT_LE(found, bits);
    EXPECT_GT(found, before);
    before = found;
  }
  const auto unchanged = AllocateRecipe(*reader, recipe_, least, data_, {}, pool_, nullptr);
  ASSERT_TRUE(unchanged.ok()) << unchanged.status();
  EXPECT_TRUE(unchanged->recipe.overrides.empty());
}

// What was measured and what came of it, set by set: those with a scheme of their own are the recipe's overrides.
TEST_F(BitBudgetTest, SaysWhatWasMeasuredAndChosen) {
  const auto reader = OpenGolden("llama_llama3");
  const auto allocated = AllocateRecipe(*reader, recipe_, 6.5, data_, {}, pool_, nullptr);
  ASSERT_TRUE(allocated.ok()) << allocated.status();
  ASSERT_EQ(allocated->sensitivities.size(), 8u);
  EXPECT_EQ(allocated->sensitivities[0].modules.size(), 3u);
  const auto plan = PlanCompression(*reader, allocated->recipe);
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const SensitivityReport& report : allocated->sensitivities) {
    EXPECT_GT(report.kl, 0);
    EXPECT_LE(report.expected_kl, report.kl * 1.01);
    int64_t bytes = 0;
    for (const PlannedModule& module : plan->modules) {
      if (std::find(report.modules.begin(), report.modules.end(), module.name) == report.modules.end()) continue;
      bytes += TotalBytes(module.tensors);
      EXPECT_EQ(module.scheme.name, report.scheme) << module.name;
      EXPECT_EQ(module.args().group_size, report.group_size) << module.name;
    }
    EXPECT_EQ(bytes, report.bytes);
  }
}

TEST_F(BitBudgetTest, RefusesWhatItCannotDo) {
  const auto reader = OpenGolden("llama_llama3");
  const absl::Status small = AllocateRecipe(*reader, recipe_, 3.0, data_, {}, pool_, nullptr).status();
  EXPECT_TRUE(absl::IsInvalidArgument(small)) << small;
  EXPECT_THAT(small.message(), HasSubstr("--bits-per-weight 3"));
  const auto eight = MakeRecipe("W8A8", "rtn", "auto", {}, true, 0);
  EXPECT_TRUE(absl::IsUnimplemented(AllocateRecipe(*reader, *eight, 9.0, data_, {}, pool_, nullptr).status()));
}

}  // namespace
}  // namespace pith
