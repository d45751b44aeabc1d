#include "eval/quality_gate.h"

#include "base/file.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::AllOf;
using testing::HasSubstr;

GateFigure Figure(const std::string& metric, const std::string& slice, double low, double high, std::optional<double> temperature = {}) {
  return {.conditions =
              {.metric = metric, .slice = slice, .temperature = temperature, .context = 512, .kv_cache = "bf16", .data_path = "W4A16"},
          .estimate = [=](double confidence) {
            // An interval that is wider the more confidence is asked.
            const double half = (high - low) / 2 * (confidence / 0.95);
            const double middle = (low + high) / 2;
            return Estimate{.value = middle, .low = middle - half, .high = middle + half, .n = 100, .documents = 20};
          }};
}

std::vector<Decision> Outcomes(absl::string_view toml, const std::vector<GateFigure>& figures) {
  const auto lines = ParseGate(toml);
  EXPECT_TRUE(lines.ok()) << lines.status();
  std::vector<Decision> outcomes;
  for (const GateResult& result : ApplyGate(*lines, figures)) outcomes.push_back(result.outcome);
  return outcomes;
}

std::string Refusal(absl::string_view toml) {
  const auto lines = ParseGate(toml);
  EXPECT_EQ(lines.status().code(), absl::StatusCode::kDataLoss);
  return std::string(lines.status().message());
}

constexpr Decision kPassed = Decision::kHolds, kFailed = Decision::kFails, kUndecided = Decision::kNotEnoughData;

TEST(QualityGate, ReadsConditionsAndLimitsInTheOrderOfTheFile) {
  const auto lines = ParseGate(
      "[prose]\nmax_kl_mean = 1\nmax_ppl_ratio = 1.1\n[[code]]\ntemperature = 0\nmax_drop = 0.02\nconfidence = 0.9\n"
      "[[code]]\ncontext = 4096\nkv_cache = \"int8\"\nmin_same_top = 0.9\n");
  ASSERT_TRUE(lines.ok()) << lines.status();
  const std::vector<GateLine> expected = {
      {.slice = "prose", .limit = "max_kl_mean", .bound = 1, .line = 2},
      {.slice = "prose", .limit = "max_ppl_ratio", .bound = 1.1, .line = 3},
      {.slice = "code", .temperature = 0, .confidence = 0.9, .limit = "max_drop", .bound = 0.02, .line = 6},
      {.slice = "code", .context = 4096, .kv_cache = "int8", .limit = "min_same_top", .bound = 0.9, .line = 11}};
  EXPECT_EQ(*lines, expected);
}

TEST(QualityGate, NamesTheLineOfWhatIsWrong) {
  EXPECT_THAT(Refusal("[code]\nmax_drop = = 1\n"), HasSubstr("line 2"));
  EXPECT_THAT(Refusal("[code]\nmax_drop = 1\nmax_dorp = 1\n"),
              AllOf(HasSubstr("line 3: expected one of"), HasSubstr("found \"max_dorp\"")));
  EXPECT_THAT(Refusal("[code]\nmax_drop = \"1\"\n"), HasSubstr("line 2: max_drop: expected a number from 0 to 1, found \"1\""));
  EXPECT_THAT(Refusal("[code]\nmax_drop = -0.1\n"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(Refusal("[code]\nmax_drop = nan\n"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(Refusal("[code]\nmax_drop = 0.1\nconfidence = 1\n"), HasSubstr("line 3: confidence"));
  EXPECT_THAT(Refusal("[code]\nmax_drop = 0.1\ncontext = 1.5\n"), HasSubstr("whole number"));
  EXPECT_THAT(Refusal("[code]\nmax_drop = 0.1\nkv_cache = 8\n"), HasSubstr("KV cache"));
  EXPECT_THAT(Refusal("[code]\ntemperature = 0.1\n"), HasSubstr("found none"));
  EXPECT_THAT(Refusal("max_drop = 0.1\n"), HasSubstr("a table named after a slice"));
  EXPECT_THAT(Refusal("code = [1]\n"), HasSubstr("a table named after a slice"));
  EXPECT_THAT(Refusal(""), HasSubstr("found none"));
  const ScratchDirectory scratch;
  ASSERT_TRUE(WriteFileAtomically(scratch.File("gate.toml"), "[").ok());
  EXPECT_THAT(std::string(ReadGate(scratch.File("gate.toml")).status().message()), HasSubstr("gate.toml: line 1"));
  EXPECT_EQ(ReadGate(scratch.File("absent.toml")).status().code(), absl::StatusCode::kNotFound);
}

TEST(QualityGate, TheWholeIntervalDecides) {
  constexpr absl::string_view kGate = "[code]\nmax_kl_mean = 0.1\n";
  EXPECT_THAT(Outcomes(kGate, {Figure("kl_mean", "code", 0.05, 0.1)}), testing::ElementsAre(kPassed));
  EXPECT_THAT(Outcomes(kGate, {Figure("kl_mean", "code", 0.09, 0.11)}), testing::ElementsAre(kUndecided));
  EXPECT_THAT(Outcomes(kGate, {Figure("kl_mean", "code", 0.101, 0.2)}), testing::ElementsAre(kFailed));
}

TEST(QualityGate, ADropAndAShareAreBoundFromTheOtherSide) {
  constexpr absl::string_view kDrop = "[code]\nmax_drop = 0.02\n";
  EXPECT_THAT(Outcomes(kDrop, {Figure("accuracy_delta", "code", -0.019, 0.05)}), testing::ElementsAre(kPassed));
  EXPECT_THAT(Outcomes(kDrop, {Figure("accuracy_delta", "code", -0.03, 0.05)}), testing::ElementsAre(kUndecided));
  EXPECT_THAT(Outcomes(kDrop, {Figure("accuracy_delta", "code", -0.09, -0.021)}), testing::ElementsAre(kFailed));
  constexpr absl::string_view kSame = "[code]\nmin_same_top = 0.9\n";
  EXPECT_THAT(Outcomes(kSame, {Figure("same_top", "code", 0.901, 0.95)}), testing::ElementsAre(kPassed));
  EXPECT_THAT(Outcomes(kSame, {Figure("same_top", "code", 0.88, 0.95)}), testing::ElementsAre(kUndecided));
  EXPECT_THAT(Outcomes(kSame, {Figure("same_top", "code", 0.8, 0.89)}), testing::ElementsAre(kFailed));
}

TEST(QualityGate, TooFewDocumentsDecideNothing) {
  GateFigure figure = Figure("kl_mean", "code", 0.0, 0.01);
  figure.estimate = [](double) { return Estimate{.value = 0, .low = 0, .high = 0.01, .n = 5000, .documents = 3}; };
  EXPECT_THAT(Outcomes("[code]\nmax_kl_mean = 0.1\n", {figure}), testing::ElementsAre(kUndecided));
}

TEST(QualityGate, ConfidenceWidensTheInterval) {
  const std::vector<GateFigure> figures = {Figure("kl_mean", "code", 0.081, 0.099)};
  EXPECT_THAT(Outcomes("[code]\nmax_kl_mean = 0.0992\nconfidence = 0.95\n", figures), testing::ElementsAre(kPassed));
  EXPECT_THAT(Outcomes("[code]\nmax_kl_mean = 0.0992\nconfidence = 0.999\n", figures), testing::ElementsAre(kUndecided));
}

TEST(QualityGate, DefaultIsAboutEverySliceAndAConditionNarrowsIt) {
  const std::vector<GateFigure> figures = {Figure("ppl_ratio", "math", 1.0, 1.01), Figure("ppl_ratio", "code", 1.2, 1.3),
                                           Figure("accuracy_delta", "code", -0.5, -0.4, 0.1),
                                           Figure("accuracy_delta", "code", 0, 0.01, 1.0)};
  EXPECT_THAT(Outcomes("[default]\nmax_ppl_ratio = 1.05\n", figures), testing::ElementsAre(kPassed, kFailed));
  EXPECT_THAT(Outcomes("[code]\ntemperature = 0.1\nmax_drop = 0.02\n", figures), testing::ElementsAre(kFailed));
  EXPECT_THAT(Outcomes("[code]\ntemperature = 1.0\nmax_drop = 0.02\n", figures), testing::ElementsAre(kPassed));
  EXPECT_THAT(Outcomes("[code]\nmax_drop = 0.02\n", figures), testing::ElementsAre(kFailed, kPassed));
}

TEST(QualityGate, WhatWasNotMeasuredIsUndecided) {
  const auto lines = ParseGate("[code]\ntemperature = 0.3\ncontext = 512\nkv_cache = \"int8\"\nmax_drop = 0.02\n");
  ASSERT_TRUE(lines.ok());
  const std::vector<GateResult> results = ApplyGate(*lines, {Figure("accuracy_delta", "code", 0, 0, 0.3)});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].outcome, kUndecided);
  EXPECT_EQ(results[0].reason, "accuracy_delta was not measured for code, temperature 0.3, context 512, kv_cache int8");
  EXPECT_EQ(GateStatus(results).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(QualityGate, TheStatusNamesEveryLineThatDidNotPass) {
  const auto lines = ParseGate("[code]\nmax_kl_mean = 0.1\n[math]\nmax_kl_mean = 0.1\n[prose]\nmax_kl_mean = 0.1\n");
  ASSERT_TRUE(lines.ok());
  const std::vector<GateResult> results = ApplyGate(
      *lines, {Figure("kl_mean", "code", 0.2, 0.3), Figure("kl_mean", "math", 0.0, 0.01), Figure("kl_mean", "prose", 0.05, 0.15)});
  const std::string message(GateStatus(results).message());
  EXPECT_THAT(message, AllOf(HasSubstr("2 of 3"), HasSubstr("[code] failed (line 2): kl_mean of code is 0.25 [0.2, 0.3]"),
                             HasSubstr("[prose] undecided (line 6)"), HasSubstr("not enough data to decide")));
  EXPECT_THAT(message, testing::Not(HasSubstr("[math]")));
  EXPECT_TRUE(GateStatus(absl::MakeSpan(results).subspan(1, 1)).ok());
  EXPECT_EQ(ToJson(results)[0]["outcome"], "failed");
  EXPECT_EQ(ToJson(results)[1]["estimate"]["n"], 100);
}

}  // namespace
}  // namespace pith
