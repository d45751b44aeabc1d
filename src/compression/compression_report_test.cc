#include "compression/compression_report.h"

#include <cmath>

#include <gtest/gtest.h>

namespace pith {
namespace {

TEST(OutputErrorMeterTest, MeasuresWhatItsNamesSay) {
  OutputErrorMeter meter;
  meter.Add({3, 0}, {3, 1});
  meter.Add({0, 4}, {0, 4});
  const OutputError error = meter.Get();
  EXPECT_DOUBLE_EQ(error.relative, std::sqrt(1.0 / 25));
  EXPECT_DOUBLE_EQ(error.sqnr_db, 10 * std::log10(25.0));
  EXPECT_DOUBLE_EQ(error.cosine, 25 / std::sqrt(25.0 * 26));
  OutputErrorMeter exact;
  exact.Add({3, 4}, {3, 4});
  EXPECT_EQ(exact.Get().relative, 0);
  EXPECT_TRUE(std::isinf(exact.Get().sqnr_db));
  EXPECT_EQ(exact.Get().cosine, 1);
  EXPECT_EQ(OutputErrorMeter().Get().relative, 0);
}

TEST(CompressionReportTest, ReportsComeBackFromTheirJson) {
  const LayerReport layer{.name = "m",
                          .out = 2,
                          .in = 3,
                          .group_size = 3,
                          .bits = 4,
                          .relative_error = 0.25,
                          .sqnr_db = INFINITY,
                          .max_abs_error = 0.5,
                          .output_error_vs_rtn = 0.75,
                          .outlier_columns = {0, 2},
                          .notes = {"a", "b"}};
  const auto json = ParseJson(DumpJson(ToJson(layer)));
  ASSERT_TRUE(json.ok());
  const auto parsed = ParseLayerReport(*json);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->outlier_columns, layer.outlier_columns);
  EXPECT_EQ(ToJson(*parsed), ToJson(layer));
  EXPECT_TRUE(std::isinf(parsed->sqnr_db));
  for (const char* bad : {"{}", R"({"name": "m", "shape": [1]})", R"({"name": "m", "shape": [1, "x"]})"}) {
    EXPECT_TRUE(absl::IsDataLoss(ParseLayerReport(*ParseJson(bad)).status())) << bad;
  }
  EXPECT_TRUE(absl::IsDataLoss(ParseBlockReport(*ParseJson(R"({"layer": 1})")).status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseScaledInputReport(*ParseJson(R"({"input": 1})")).status()));
  for (const char* bad : {R"({"name": "a"})", R"({"name": "a", "key_max_abs": 1})", R"({"name": "a", "key_max_abs": ["x"]})"}) {
    EXPECT_TRUE(absl::IsDataLoss(ParseKvScaleReport(*ParseJson(bad)).status())) << bad;
  }
}

// Times and memory differ from run to run; the artifact's own report must not.
TEST(CompressionReportTest, WhatDiffersFromRunToRunIsLeftOutWhenAsked) {
  CompressionReport report{.output_bytes = 7, .resumed_layers = 2};
  report.phases = {{"calibration", {.seconds = 1, .cpu_seconds = 2, .peak_memory_bytes = 30}},
                   {"quantizing", {.seconds = 4, .cpu_seconds = 6, .peak_memory_bytes = 20}}};
  const OrderedJson of_run = ToJson(report, /*run=*/true), of_artifact = ToJson(report, /*run=*/false);
  EXPECT_EQ(of_run["seconds"], 5.0);
  EXPECT_EQ(of_run["cpu_seconds"], 8.0);
  EXPECT_EQ(of_run["peak_memory_bytes"], 30);
  EXPECT_EQ(of_run["phases"][1]["name"], "quantizing");
  EXPECT_EQ(of_run["phases"][1]["cpu_seconds"], 6.0);
  for (const char* key : {"seconds", "cpu_seconds", "peak_memory_bytes", "phases", "resumed_layers"}) {
    EXPECT_TRUE(of_run.contains(key)) << key;
    EXPECT_FALSE(of_artifact.contains(key)) << key;
  }
  EXPECT_EQ(of_artifact["output_bytes"], 7);
}

TEST(CompressionReportTest, SensitivitiesAreReportedWhereThereAreAny) {
  CompressionReport report;
  EXPECT_FALSE(ToJson(report, false).contains("sensitivities"));
  report.sensitivities.push_back({.modules = {"a", "b"}, .kl = 0.5, .expected_kl = 0.25, .scheme = "W8A16", .bytes = 12});
  const OrderedJson json = ToJson(report, false)["sensitivities"][0];
  EXPECT_EQ(json["modules"], (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(json["kl"], 0.5);
  EXPECT_EQ(json["expected_kl"], 0.25);
  EXPECT_EQ(json["scheme"], "W8A16");
  EXPECT_TRUE(json["group_size"].is_null());
  EXPECT_EQ(json["bytes"], 12);
}

TEST(CompressionReportTest, NotesAreWarnings) {
  CompressionReport report;
  EXPECT_TRUE(report.Warnings().empty());
  report.layers.push_back({.name = "m", .notes = {"damping raised"}});
  report.kv_scales.push_back({.name = "a", .notes = {"clipped"}});
  EXPECT_EQ(report.Warnings(), (std::vector<std::string>{"m: damping raised", "a: clipped"}));
}

}  // namespace
}  // namespace pith
