#include "eval/task_figures.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

// Forty items of two slices; the model fails eight of code that the reference solves, and nothing else differs.
TaskMeasurement Measurement() {
  std::vector<TaskItem> items;
  TaskMeasurement measurement{.temperature = 0.1, .context = 900};
  for (int i = 0; i < 40; ++i) {
    items.push_back({.id = std::to_string(i), .slice = i % 2 == 0 ? "code" : "math"});
    const double solved = i % 4 < 2 ? 1 : 0;
    measurement.reference.push_back({.scores = {solved, solved}});
    measurement.model.push_back(
        {.scores = {i % 4 == 0 && i < 32 ? 0 : solved, i % 4 == 0 && i < 32 ? 0 : solved}, .cut_off = i == 3 ? 1 : 0});
  }
  measurement.items = std::make_shared<const std::vector<TaskItem>>(std::move(items));
  return measurement;
}

TEST(TaskFigures, OneDifferencePerSlice) {
  const std::vector<GateFigure> figures = MakeTaskFigures(Measurement(), "int8", "W4A16/int16", {});
  ASSERT_EQ(figures.size(), 3u);
  EXPECT_EQ(figures[1].conditions, (EvidenceConditions{.metric = "accuracy_delta",
                                                       .slice = "code",
                                                       .temperature = 0.1,
                                                       .context = 900,
                                                       .kv_cache = "int8",
                                                       .data_path = "W4A16/int16"}));
  EXPECT_EQ(figures[0].conditions.slice, "all");
  EXPECT_NEAR(figures[0].estimate(0.95).value, -8.0 / 40, 1e-12);
  EXPECT_NEAR(figures[1].estimate(0.95).value, -8.0 / 20, 1e-12);
  EXPECT_EQ(figures[2].estimate(0.95).value, 0);
  const Estimate narrow = figures[1].estimate(0.8), wide = figures[1].estimate(0.99);
  EXPECT_LT(wide.low, narrow.low);
  EXPECT_GT(wide.high, narrow.high);
}

TEST(TaskFigures, AGateNamesTheSliceThatWasHarmed) {
  const auto lines = ParseGate("[default]\nmax_drop = 0.05\ntemperature = 0.1\n");
  ASSERT_TRUE(lines.ok()) << lines.status();
  const std::vector<GateFigure> figures = MakeTaskFigures(Measurement(), "bf16", "W4A16", {});
  const std::vector<GateResult> results = ApplyGate(*lines, figures);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[1].outcome, Decision::kFails) << results[1].reason;
  EXPECT_NE(results[2].outcome, Decision::kFails) << results[2].reason;
  std::vector<EvidenceRecord> records = MakeEvidenceRecords(figures);
  SetVerdicts(results, absl::MakeSpan(records));
  EXPECT_EQ(records[1].verdict, EvidenceVerdict::kRegression);
  EXPECT_EQ(records[1].n, 20);
}

TEST(TaskFigures, TheJsonCountsItemsAndSamples) {
  const OrderedJson json = ToJson(Measurement(), {});
  ASSERT_EQ(json.size(), 3u);
  EXPECT_EQ(json[0]["items"], 40);
  EXPECT_EQ(json[0]["samples"], 80);
  EXPECT_EQ(json[0]["cut_off"], 1);
  EXPECT_EQ(json[1]["slice"], "code");
  EXPECT_EQ(json[1]["samples"], 40);
  EXPECT_EQ(json[1]["cut_off"], 0);
}

}  // namespace
}  // namespace pith
