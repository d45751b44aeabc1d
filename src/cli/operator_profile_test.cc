#include "cli/operator_profile.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const MachineLimits kLimits = {.threads = 2, .read_gb_per_s = 10, .f32_gops = 100, .bf16_gops = 200, .int8_gops = 400};
constexpr char kGemm[] = "gemm_int8_w4g_f32__avx512_vnni";

OperatorRecord Record(const char* name, int64_t layer, double seconds, const char* kernel, OperatorWork work = {}) {
  OperatorRecord record;
  record.name = name;
  record.layer = layer;
  record.rows = 1;
  record.threads = 2;
  record.kernel = kernel;
  record.work = work;
  record.end_ns = static_cast<int64_t>(seconds * 1e9);
  return record;
}

// 1 GB of 4-bit weights: 2e9 of them, so 4 GB in BF16.
const OperatorWork kMatrix = {.weight_bytes = 1'000'000'000, .activation_bytes = 1000, .operations = 4'000'000'000};

PhaseRounds TwoLayers() {
  PhaseRounds rounds{.phase = "decode", .passes = 1, .rows_per_pass = 1};
  for (const double seconds : {0.5, 0.2, 0.3}) {
    rounds.rounds.push_back({Record("qkv", 0, seconds, kGemm, kMatrix),
                             Record("attention", 0, 0.1, "attention_f32_bf16_bf16__avx512", {.kv_bytes = 500'000'000, .operations = 7}),
                             Record("qkv", 1, seconds, kGemm, kMatrix)});
  }
  return rounds;
}

TEST(OperatorProfileTest, SumsByNameAndTakesTheMedianOfTheRounds) {
  const PhaseSummary summary = Summarize(TwoLayers(), false, kLimits, {}, Isa::kAvx512Vnni);
  ASSERT_EQ(summary.operators.size(), 2u);
  const OperatorSummary& qkv = summary.operators[0];
  EXPECT_EQ(qkv.name, "qkv");
  EXPECT_EQ(qkv.calls, 2);
  EXPECT_NEAR(qkv.seconds, 0.6, 1e-9);
  EXPECT_EQ(qkv.work.weight_bytes, 2'000'000'000);
  EXPECT_EQ(qkv.kernel(), kGemm);
  EXPECT_NEAR(qkv.roofline.read_seconds, 0.2, 1e-12);
  EXPECT_NEAR(qkv.roofline.multiply_seconds, 0.02, 1e-12);
  EXPECT_NEAR(qkv.roofline_share(), 1.0 / 3, 1e-9);
  EXPECT_NEAR(qkv.conversion_seconds(), 0.4, 1e-9);
  EXPECT_EQ(qkv.bf16_weight_bytes, 8'000'000'000);
  EXPECT_FALSE(qkv.emulated);
  EXPECT_NEAR(summary.Total().seconds, 0.7, 1e-9);
  EXPECT_EQ(summary.Total().calls, 3);
}

TEST(OperatorProfileTest, AKernelOfSeveralCallsIsNamedOnce) {
  PhaseRounds rounds{.phase = "decode", .passes = 2, .rows_per_pass = 1};
  const char* const kTied = "read_row of gemm_bf16_bf16_f32__avx2";  // a name of several words
  rounds.rounds.push_back({Record("embedding", -1, 0.1, kTied), Record("qkv", 0, 0.1, kGemm, kMatrix), Record("embedding", -1, 0.1, kTied),
                           Record("qkv", 1, 0.1, "gemm_int16_w8g_f32__avx2", kMatrix)});
  const PhaseSummary summary = Summarize(rounds, false, kLimits, {}, Isa::kAvx2);
  EXPECT_EQ(summary.operators[0].kernel(), kTied);
  EXPECT_EQ(summary.operators[1].kernel(), std::string(kGemm) + " gemm_int16_w8g_f32__avx2");
}

TEST(OperatorProfileTest, OneLinePerLayerWhenAsked) {
  const PhaseSummary summary = Summarize(TwoLayers(), true, kLimits, {}, Isa::kAvx512Vnni);
  ASSERT_EQ(summary.operators.size(), 3u);
  EXPECT_EQ(summary.operators[2].layer, 1);
  EXPECT_NEAR(summary.operators[2].seconds, 0.3, 1e-9);
  EXPECT_THAT(PhaseTable(summary), HasSubstr("qkv 1"));
}

TEST(OperatorProfileTest, FallbacksAndEmulationAreFlagged) {
  TensorDataPath path;
  path.kernel = "gemm_bf16_w4g_f32__avx2";
  path.refused = {"gemm_bf16_w4g_f32__avx512: group_size is odd", "gemm_bf16_w4g_f32__avx512_vnni: needs avx512_vnni, chosen avx512",
                  "avx512: no row for bf16 activations times w4g"};
  PhaseRounds rounds{.phase = "prefill", .passes = 1, .rows_per_pass = 1};
  rounds.rounds = {{Record("qkv", 0, 1, "gemm_bf16_w4g_f32__avx2", kMatrix), Record("embedding", -1, 1, "embedding_bf16_f32__scalar")}};
  const PhaseSummary summary = Summarize(rounds, false, kLimits, {&path, 1}, Isa::kAvx512);
  EXPECT_THAT(summary.operators[0].fallbacks, ElementsAre("gemm_bf16_w4g_f32__avx2, not gemm_bf16_w4g_f32__avx512: group_size is odd"));
  EXPECT_TRUE(summary.operators[0].emulated);
  EXPECT_FALSE(summary.operators[1].emulated);
  EXPECT_THAT(summary.operators[1].fallbacks, ElementsAre("embedding_bf16_f32__scalar: scalar kernel"));
  EXPECT_THAT(PhaseTable(summary), HasSubstr("  qkv: gemm_bf16_w4g_f32__avx2, not gemm_bf16_w4g_f32__avx512: group_size is odd\n"));
  EXPECT_TRUE(Summarize(rounds, false, kLimits, {}, Isa::kScalar).operators[1].fallbacks.empty());
}

TEST(OperatorProfileTest, TheSentenceComparesSavedBytesWithSavedTime) {
  PhaseSummary summary = Summarize(TwoLayers(), false, kLimits, {}, Isa::kAvx512Vnni);
  EXPECT_EQ(SavingsSentence(summary, kLimits), "");
  PhaseRounds slower = TwoLayers();
  for (auto& round : slower.rounds) {
    for (OperatorRecord& record : round) {
      if (absl::string_view(record.name) == "qkv") record.end_ns = 550'000'000;
    }
  }
  AddMeasuredTwin(Summarize(slower, false, kLimits, {}, Isa::kAvx512Vnni), summary);
  EXPECT_EQ(
      SavingsSentence(summary, kLimits),
      "decode: 2.50 GB per pass instead of 8.50 GB in BF16 (3.40x fewer bytes), 700.00 ms instead of 1200.00 ms (1.71x as fast, measured): "
      "6.00 GB saved became 500.00 ms saved, 83 % of the 600.00 ms that reading them takes at 10.0 GB/s.\n");
  const OrderedJson json = ToJson(summary, kLimits);
  EXPECT_TRUE(json["operators"][1]["conversion_seconds"].is_null());
  EXPECT_NEAR(json["operators"][0]["conversion_seconds"].get<double>(), 0.4, 1e-9);
  EXPECT_EQ(json["bytes_saved_per_pass"], 6'000'000'000);
  EXPECT_NEAR(json["seconds_saved_per_pass"].get<double>(), 0.5, 1e-9);
  EXPECT_NEAR(json["byte_ratio"].get<double>(), 3.4, 1e-9);
  EXPECT_EQ(json["bf16_source"], "measured");
  EXPECT_EQ(json["operators"][0]["bf16"]["weight_bytes"], 8'000'000'000);
}

TEST(OperatorProfileTest, TimeThatWasLostIsSaid) {
  PhaseSummary summary = Summarize(TwoLayers(), false, kLimits, {}, Isa::kAvx512Vnni);
  AddMeasuredTwin(summary, summary);
  for (OperatorSummary& op : summary.operators) op.bf16_seconds /= 2;
  EXPECT_THAT(SavingsSentence(summary, kLimits), HasSubstr("6.00 GB saved became no time, 350.00 ms were lost.\n"));
}

TEST(OperatorProfileTest, MoreTimeThanTheBytesAreWorthIsNoShareOfThem) {
  PhaseSummary summary = Summarize(TwoLayers(), false, kLimits, {}, Isa::kAvx512Vnni);
  AddMeasuredTwin(summary, summary);
  for (OperatorSummary& op : summary.operators) op.bf16_seconds *= 2;
  EXPECT_THAT(SavingsSentence(summary, kLimits),
              HasSubstr("saved became 700.00 ms saved, more than the 600.00 ms that reading them takes"));
}

TEST(OperatorProfileTest, APassBoundByComputeClaimsNothingForItsBytes) {
  PhaseSummary summary = Summarize(TwoLayers(), false, kLimits, {}, Isa::kAvx512Vnni);
  AddMeasuredTwin(summary, summary);
  for (OperatorSummary& op : summary.operators) op.bf16_seconds *= 2;
  summary.operators[0].roofline.multiply_seconds = 1;
  EXPECT_THAT(SavingsSentence(summary, kLimits), HasSubstr("6.00 GB saved, and 700.00 ms; the pass is bound by compute, not by bytes.\n"));
}

TEST(OperatorProfileTest, AnEstimateKeepsTheShareOfTheRoofline) {
  PhaseSummary summary = Summarize(TwoLayers(), false, kLimits, {}, Isa::kAvx512Vnni);
  AddEstimatedTwin(kLimits, Isa::kAvx512Vnni, summary);
  EXPECT_NEAR(summary.operators[0].bf16_seconds, 0.8 * 3, 1e-9);  // 8 GB at 10 GB/s, at a third of the roofline
  EXPECT_NEAR(summary.operators[1].bf16_seconds, 0.1, 1e-9);
  EXPECT_EQ(
      SavingsSentence(summary, kLimits),
      "decode: 2.50 GB per pass instead of 8.50 GB in BF16 (3.40x fewer bytes), 700.00 ms; BF16 was not measured: at the same share of its "
      "limits it would take 2500.00 ms.\n");
  summary.source = TwinSource::kIsBf16;
  EXPECT_THAT(SavingsSentence(summary, kLimits), HasSubstr("the weights are BF16"));
}

TEST(OperatorProfileTest, AnEstimatedTwinMultipliesLikeTheBestDenseRow) {
  const OperatorWork compute = {.weight_bytes = 1, .operations = 400'000'000'000};
  PhaseRounds rounds{.phase = "prefill", .passes = 1, .rows_per_pass = 1000};
  rounds.rounds = {{Record("qkv", 0, 1.0, kGemm, compute)}};  // 400 int8 GOP at their peak
  rounds.rounds[0][0].rows = 1000;
  for (const auto& [isa, seconds] : {std::pair(Isa::kScalar, 4.0), std::pair(Isa::kAvx2Vnni, 4.0), std::pair(Isa::kAvx512, 4.0),
                                     std::pair(Isa::kAvx512Vnni, 2.0), std::pair(Isa::kAmx, 2.0)}) {
    PhaseSummary summary = Summarize(rounds, false, kLimits, {}, isa);
    AddEstimatedTwin(kLimits, isa, summary);
    EXPECT_NEAR(summary.operators[0].bf16_seconds, seconds, 1e-9) << IsaName(isa);
  }
}

}  // namespace
}  // namespace pith
