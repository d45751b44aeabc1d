#include "compression/run_estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/random.h"
#include "base/test_util.h"
#include "compression/checkpoint.h"
#include "compression/session.h"
#include "compression/test_golden_models.h"

namespace pith {
namespace {

CalibrationData MakeData(int64_t sequences) {
  RandomStream random(9);
  CalibrationData data;
  for (int64_t i = 0; i < sequences; ++i) {
    std::vector<int32_t> tokens(static_cast<size_t>(32 + i % 3));
    for (int32_t& token : tokens) token = static_cast<int32_t>(random.Below(100));
    data.sequences.push_back(std::move(tokens));
  }
  return data;
}

class RunEstimateTest : public testing::Test {
 protected:
  Recipe MakeTestRecipe(const std::string& scheme, const std::string& method) {
    auto recipe = MakeRecipe(scheme, method, "auto", {}, true, 0);
    EXPECT_TRUE(recipe.ok()) << recipe.status();
    return *std::move(recipe);
  }
  absl::StatusOr<std::vector<PhaseUse>> Estimate(const Recipe& recipe, const CalibrationData* data,
                                                 const std::function<absl::Status(int64_t, int64_t)>& progress = nullptr) {
    const auto plan = PlanCompression(*reader_, recipe);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return EstimateCompression(*reader_, recipe, *plan, data, scratch_.File("out"), pool_, progress);
  }

  const std::unique_ptr<ArtifactReader> reader_ = OpenGolden("llama_llama3");
  ScratchDirectory scratch_;
  ThreadPool pool_{2};
};

TEST_F(RunEstimateTest, EveryKindOfRunIsEstimatedAndLeavesNothing) {
  const CalibrationData few = MakeData(3), many = MakeData(40);
  for (const auto& [scheme, method] : {std::pair{"W4A16", "rtn"},
                                       {"W4A16", "awq+gptq"},
                                       {"W8A8", "smoothquant"},
                                       {"FP8", "rtn"},
                                       {"W8A8", "rotation"},
                                       {"W4A16", "rotation+gptq"}}) {
    Recipe recipe = MakeTestRecipe(scheme, method);
    ASSERT_TRUE(QuantizeEmbeddings("W8A16", "auto", recipe).ok());
    if (recipe.scheme.name == "W4A16") {
      ASSERT_TRUE(QuantizeHead("W4A16", "auto", recipe).ok());
    }
    for (const CalibrationData* data : {static_cast<const CalibrationData*>(nullptr), &few, &many}) {
      if (data == nullptr && NeedsCalibration(recipe)) continue;
      int64_t last = 0, total = 0;
      const auto phases = Estimate(recipe, data, [&](int64_t done, int64_t all) {
        EXPECT_GE(done, last);
        last = done;
        total = all;
        return absl::OkStatus();
      });
      ASSERT_TRUE(phases.ok()) << scheme << " " << method << ": " << phases.status();
      EXPECT_EQ(last, total);
      ASSERT_EQ(phases->size(), 2u);
      EXPECT_EQ((*phases)[0].name, "checking");
      EXPECT_EQ((*phases)[1].name, "quantizing");
      for (const PhaseUse& phase : *phases) {
        EXPECT_GT(phase.use.seconds, 0) << phase.name;
        EXPECT_GT(phase.use.cpu_seconds, 0) << phase.name;
        EXPECT_GT(phase.use.peak_memory_bytes, 0) << phase.name;
      }
      EXPECT_TRUE(ListDirectory(scratch_.path())->empty()) << scheme << " " << method;
    }
  }
}

// A run reports the phases that an estimate forecasts.
TEST_F(RunEstimateTest, ARunReportsTheSamePhases) {
  const CalibrationData data = MakeData(20);
  const Recipe recipe = MakeTestRecipe("W4A16", "gptq");
  const auto phases = Estimate(recipe, &data);
  ASSERT_TRUE(phases.ok()) << phases.status();
  const auto report = Compress(*reader_, recipe, scratch_.File("out"), pool_, {.calibration = &data});
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->phases.size(), phases->size());
  for (size_t i = 0; i < phases->size(); ++i) EXPECT_EQ(report->phases[i].name, (*phases)[i].name);
  EXPECT_GT(TotalUse(report->phases).peak_memory_bytes, 0);
}

TEST_F(RunEstimateTest, MoreDataTakeLonger) {
  const CalibrationData some = MakeData(20), more = MakeData(4000);
  const Recipe recipe = MakeTestRecipe("W4A16", "gptq");
  const auto short_run = Estimate(recipe, &some), long_run = Estimate(recipe, &more);
  ASSERT_TRUE(short_run.ok() && long_run.ok());
  EXPECT_GT((*long_run)[1].use.cpu_seconds, (*short_run)[1].use.cpu_seconds);
}

// Layers that are left alone cost their passes only; the one that is tried is one with work to do.
TEST_F(RunEstimateTest, ALayerThatIsQuantizedIsTried) {
  const CalibrationData data = MakeData(20);
  const auto recipe = MakeRecipe("W4A16", "gptq", "auto", {"re:.*layers.0.*"}, true, 0);
  ASSERT_TRUE(recipe.ok());
  const auto phases = Estimate(*recipe, &data);
  ASSERT_TRUE(phases.ok()) << phases.status();
  EXPECT_GT((*phases)[1].use.seconds, 0);
}

TEST_F(RunEstimateTest, CanBeStoppedAndTriedAgain) {
  const CalibrationData data = MakeData(20);
  const Recipe recipe = MakeTestRecipe("W4A16", "gptq");
  const auto stopped = Estimate(recipe, &data,
                                [](int64_t done, int64_t) { return done < 4 ? absl::OkStatus() : absl::CancelledError("x"); });
  EXPECT_TRUE(absl::IsCancelled(stopped.status()));
  EXPECT_TRUE(ListDirectory(scratch_.path())->empty());
  // What a killed one left is in nobody's way.
  const std::string left = scratch_.File("out.dry-run");
  ASSERT_TRUE((*Checkpoint::Open(left, OrderedJson::object(), false))->Save(0, {}).ok());
  EXPECT_TRUE(Estimate(recipe, &data).ok());
  EXPECT_FALSE(FileExists(Checkpoint::PathOf(left)));
}

}  // namespace
}  // namespace pith
