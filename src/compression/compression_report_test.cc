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
}

TEST(CompressionReportTest, NotesAreWarnings) {
  CompressionReport report;
  EXPECT_TRUE(report.Warnings().empty());
  report.layers.push_back({.name = "m", .notes = {"damping raised"}});
  EXPECT_EQ(report.Warnings(), std::vector<std::string>{"m: damping raised"});
}

}  // namespace
}  // namespace pith
