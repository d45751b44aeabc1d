#include "cli/quantize_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pith {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(QuantizeTextTest, AnEstimateHasItsPhasesAndTheirSum) {
  const PhaseUse phases[] = {{"calibration", {.seconds = 10.5, .cpu_seconds = 20, .peak_memory_bytes = 1'300'000'000}},
                             {"quantizing", {.seconds = 30, .cpu_seconds = 55.5, .peak_memory_bytes = 400'000'000}}};
  const std::string text = EstimateText(phases, {.artifact = 100'000'000, .layers = 20'000'000, .hidden_states = 3'000'000}, 36'000'000, 2);
  EXPECT_THAT(text, AllOf(HasSubstr("calibration"), HasSubstr("10.5 s"), HasSubstr("quantizing"), HasSubstr("400.0 MB")));
  EXPECT_THAT(text, HasSubstr("estimate: 40.5 s with 2 threads (75.5 s of CPU), at most 1.30 GB of memory, 123.0 MB of disk (36.0 MB"));
}

TEST(QuantizeTextTest, SensitivitiesAreATableOfSets) {
  const SensitivityReport reports[] = {
      {.modules = {"a", "b"}, .kl = 0.5, .expected_kl = 0.125, .scheme = "W4A16", .group_size = 32, .bytes = 99},
      {.modules = {"c"}, .kl = 0.25, .expected_kl = 0.25, .scheme = "W8A16", .bytes = 7}};
  EXPECT_THAT(SensitivityTable(reports), AllOf(HasSubstr("KL alone"), HasSubstr("0.500000    0.125000  W4A16 in groups of 32"),
                                               HasSubstr(" a b\n"), HasSubstr("W8A16 per channel"), HasSubstr(" c\n")));
}

TEST(QuantizeTextTest, ASummaryNamesTheWorstLayerAndWhatTheRunTook) {
  CompressionReport report{.input_bytes = 4'000'000, .output_bytes = 1'000'000};
  report.layers = {{.name = "m.a", .relative_error = 0.1}, {.name = "m.b", .relative_error = 0.3}};
  report.phases = {{"quantizing", {.seconds = 2, .cpu_seconds = 3.5, .peak_memory_bytes = 55'000'000}}};
  EXPECT_EQ(Summary(report, "out"),
            "out: 1.0 MB of tensors (4.00x smaller) in 2.0 s (3.5 s of CPU, at most 55.0 MB of memory); relative weight error 0.2000 on "
            "average, worst 0.3000 (m.b)\n");
  EXPECT_EQ(BlockSummary(report), "");
}

}  // namespace
}  // namespace pith
