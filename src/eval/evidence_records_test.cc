#include "eval/evidence_records.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

Estimate Of(double value, double half = 0.01) {
  return {.value = value, .low = value - half, .high = value + half, .n = 100, .documents = 50};
}

QualityMetrics Metrics(double kl, double half = 0.01) {
  QualityMetrics metrics = {.kl_mean = Of(kl, half), .kl_p99 = Of(10 * kl, half), .same_top = Of(0.9, half), .ppl_ratio = Of(1 + kl, half)};
  ServedMetrics greedy = {.total_variation_mean = Of(0.1, half)},
                warm = {.kl_mean = Of(2 * kl, half), .total_variation_mean = Of(0.2, half)}, cut = warm;
  greedy.params.temperature = 0;
  warm.params.temperature = 0.1f;
  cut.params.temperature = 0.1f;
  cut.params.top_p = 0.9f;
  metrics.served = {greedy, warm, cut};
  return metrics;
}

ModelQuality Quality(double half = 0.01) {
  return {.overall = Metrics(0.1, half), .slices = {{"code", Metrics(0.2, half)}, {"math", Metrics(0.05, half)}}};
}

constexpr char kKv[] = "int8", kPath[] = "W4A16/int16";
const MeasurementConditions kAt = {.context = 512, .kv_cache = kKv, .data_path = kPath};

TEST(EvidenceRecords, OnePerFigureAndSliceWithoutWhatHasNoNumberOrNoPlace) {
  const std::vector<EvidenceRecord> records = MakeEvidenceRecords(Quality(), kAt);
  ASSERT_EQ(records.size(), 3u * (4 + 1 + 2));  // greedy has no KL; settings with cuts are left out
  EXPECT_EQ(records[0].conditions,
            (EvidenceConditions{.metric = "kl_mean", .slice = "all", .context = 512, .kv_cache = kKv, .data_path = kPath}));
  EXPECT_EQ(records[0].value, 0.1);
  EXPECT_EQ(records[0].n, 100);
  EXPECT_EQ(records[4].conditions.metric, "total_variation_mean");
  EXPECT_EQ(records[4].conditions.temperature, 0.0);
  EXPECT_EQ(records[5].conditions.metric, "served_kl_mean");
  EXPECT_EQ(records[5].conditions.temperature, 0.1);  // what a gate's "temperature = 0.1" is compared with
  EXPECT_EQ(records[7].conditions.slice, "code");
  EXPECT_EQ(records[7].value, 0.2);
  EXPECT_FALSE(records[7].conditions.temperature.has_value());
}

TEST(EvidenceRecords, TheGateSeesTheSameFiguresAtItsConfidence) {
  const ModelQuality quality = Quality(), wide = Quality(0.04);
  const auto at = [&](double confidence) -> const ModelQuality& { return confidence > 0.95 ? wide : quality; };
  const std::vector<EvidenceRecord> records = MakeEvidenceRecords(quality, kAt);
  const std::vector<GateFigure> figures = MakeGateFigures(quality, kAt, at);
  ASSERT_EQ(figures.size(), records.size());
  for (size_t i = 0; i < figures.size(); ++i) {
    EXPECT_EQ(figures[i].conditions, records[i].conditions);
    EXPECT_EQ(figures[i].estimate(0.95).low, records[i].low);
    EXPECT_NEAR(figures[i].estimate(0.99).low, records[i].low - 0.03, 1e-12);
  }
}

TEST(EvidenceRecords, VerdictsAreThoseOfTheLinesAboutThem) {
  const ModelQuality quality = Quality();
  std::vector<EvidenceRecord> records = MakeEvidenceRecords(quality, kAt);
  const auto lines = ParseGate("[default]\nmax_kl_mean = 0.15\n[code]\nmin_same_top = 0.895\n[math]\nmax_kl_mean = 0.055\n");
  ASSERT_TRUE(lines.ok()) << lines.status();
  const auto figures = MakeGateFigures(quality, kAt, [&](double) -> const ModelQuality& { return quality; });
  SetVerdicts(ApplyGate(*lines, figures), absl::MakeSpan(records));
  const auto verdict = [&](const std::string& slice, const std::string& metric) {
    for (const EvidenceRecord& record : records) {
      if (record.conditions.slice == slice && record.conditions.metric == metric && !record.conditions.temperature.has_value())
        return record.verdict;
    }
    ADD_FAILURE() << slice << " " << metric;
    return EvidenceVerdict::kUnknown;
  };
  EXPECT_EQ(verdict("all", "kl_mean"), EvidenceVerdict::kOk);
  EXPECT_EQ(verdict("code", "kl_mean"), EvidenceVerdict::kRegression);
  EXPECT_EQ(verdict("code", "same_top"), EvidenceVerdict::kUnknown);  // undecided
  EXPECT_EQ(verdict("math", "kl_mean"), EvidenceVerdict::kUnknown);   // passed once, undecided once
  EXPECT_EQ(verdict("all", "ppl_ratio"), EvidenceVerdict::kUnknown);  // not judged
}

}  // namespace
}  // namespace pith
