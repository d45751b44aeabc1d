#include "sampling/logits_processor.h"

#include <rapidcheck/gtest.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sampling/test_floats.h"

namespace pith {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

std::vector<int32_t> Tokens(absl::Span<const Candidate> candidates) {
  std::vector<int32_t> tokens;
  for (const Candidate& candidate : candidates) tokens.push_back(candidate.token);
  return tokens;
}

std::vector<int32_t> Keep(const std::vector<float>& logits, const SamplingParams& params) {
  SamplerScratch scratch;
  const auto kept = KeepCandidates(logits, params, scratch);
  EXPECT_TRUE(kept.ok()) << kept.status();
  return kept.ok() ? Tokens(*kept) : std::vector<int32_t>{};
}

// Straight from the definitions: sort everything, cut by share of the largest, by count, by mass.
std::vector<int32_t> KeepByDefinition(const std::vector<float>& logits, const SamplingParams& params) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  const double largest = logits[order[0]];
  const auto weight = [&](int32_t token) { return std::exp((logits[token] - largest) / params.temperature); };
  std::vector<int32_t> kept;
  for (const int32_t token : order) {
    if (weight(token) >= params.min_p && weight(token) >= std::exp(-static_cast<double>(kHopelessGap))) kept.push_back(token);
  }
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < kept.size()) kept.resize(params.top_k);
  double total = 0, sum = 0;
  for (const int32_t token : kept) total += weight(token);
  size_t size = 0;
  while (size < kept.size() && (params.top_p == 1.0f || sum < params.top_p * total)) sum += weight(kept[size++]);
  kept.resize(size);
  std::sort(kept.begin(), kept.end());
  return kept;
}

TEST(LogitBias, AddsToTheNamedTokens) {
  std::vector<float> logits = {1, 2, 3};
  SamplingParams params;
  params.logit_bias = {{2, -5.0f}, {0, 0.5f}};
  ApplyLogitBias(absl::MakeSpan(logits), params);
  EXPECT_THAT(logits, ElementsAre(1.5f, 2.0f, -2.0f));
}

TEST(Bans, AreMinusInfinity) {
  std::vector<float> logits = {1, 2, 3};
  ApplyBans(absl::MakeSpan(logits), {1});
  EXPECT_THAT(logits, ElementsAre(1.0f, -kInfinity, 3.0f));
}

TEST(Penalties, ByHand) {
  // Untouched; in the prompt, positive and negative; twice in the output; once in the output and in the prompt.
  std::vector<float> logits = {4.0f, 4.0f, -4.0f, 4.0f, -4.0f};
  TokenCounts history;
  history.AddPrompt({1, 2, 4, 4});
  for (const int32_t token : {3, 4, 3}) history.AddOutput(token);
  SamplingParams params;
  params.repetition_penalty = 2.0f;
  params.frequency_penalty = 0.25f;
  params.presence_penalty = 0.125f;
  ApplyPenalties(absl::MakeSpan(logits), params, history);
  EXPECT_THAT(logits, ElementsAre(4.0f, 2.0f, -8.0f, 2.0f - 2 * 0.25f - 0.125f, -8.0f - 0.25f - 0.125f));
}

TEST(Penalties, NegativeOnesEncourage) {
  std::vector<float> logits = {0.0f, 0.0f};
  TokenCounts history;
  history.AddOutput(1);
  SamplingParams params;
  params.presence_penalty = -1.5f;
  ApplyPenalties(absl::MakeSpan(logits), params, history);
  EXPECT_THAT(logits, ElementsAre(0.0f, 1.5f));
}

TEST(Penalties, ExtremeValuesStayFinite) {
  std::vector<float> logits = {30.0f, -30.0f, -kInfinity};
  TokenCounts history;
  history.AddPrompt({0, 1, 2});
  SamplingParams params;
  params.repetition_penalty = 1e-38f;
  ApplyPenalties(absl::MakeSpan(logits), params, history);
  EXPECT_TRUE(std::isfinite(logits[0]));
  params.repetition_penalty = 1e38f;
  ApplyPenalties(absl::MakeSpan(logits), params, history);
  ApplyPenalties(absl::MakeSpan(logits), params, history);
  EXPECT_TRUE(std::isfinite(logits[1]));
  EXPECT_EQ(logits[2], -kInfinity);
}

TEST(TokenCounts, RemoveUndoesAdd) {
  TokenCounts history;
  history.AddPrompt({5});
  history.AddOutput(5);
  history.AddOutput(7);
  history.AddOutput(7);
  history.RemoveOutput(7);
  history.RemoveOutput(5);
  ASSERT_EQ(history.counts().size(), 2u);
  EXPECT_TRUE(history.counts().at(5).in_prompt);
  EXPECT_EQ(history.counts().at(5).in_output, 0);
  EXPECT_EQ(history.counts().at(7).in_output, 1);
  history.RemoveOutput(7);
  EXPECT_FALSE(history.counts().contains(7));
}

TEST(ProcessLogits, LeavesTheRowAloneAndCopiesOnlyWhenSomethingApplies) {
  const std::vector<float> logits = {1, 2, 3};
  SamplerScratch scratch;
  EXPECT_EQ(ProcessLogits(logits, {}, {}, scratch).data(), logits.data());
  SamplingParams params;
  params.logit_bias = {{0, 10.0f}};
  const auto processed = ProcessLogits(logits, params, {}, scratch);
  EXPECT_THAT(std::vector<float>(processed.begin(), processed.end()), ElementsAre(11.0f, 2.0f, 3.0f));
  EXPECT_THAT(logits, ElementsAre(1.0f, 2.0f, 3.0f));
}

TEST(ProcessLogits, BiasComesBeforePenalties) {
  const std::vector<float> logits = {-1.0f, 0.0f};
  TokenCounts history;
  history.AddPrompt({0});
  SamplingParams params;
  params.logit_bias = {{0, 5.0f}};
  params.repetition_penalty = 2.0f;
  SamplerScratch scratch;
  const auto processed = ProcessLogits(logits, params, {.history = &history}, scratch);
  EXPECT_THAT(processed[0], FloatEq(2.0f));  // (-1 + 5) / 2; the other order would give -2 + 5
}

TEST(ProcessLogits, ABanBeatsABias) {
  const std::vector<float> logits = {0.0f, 0.0f};
  SamplingParams params;
  params.logit_bias = {{0, 100.0f}};
  const int32_t banned[] = {0};
  SamplerScratch scratch;
  EXPECT_EQ(ProcessLogits(logits, params, {.banned = banned}, scratch)[0], -kInfinity);
}

TEST(KeepCandidates, WithoutFiltersKeepsEverythingThatCanWin) {
  EXPECT_THAT(Keep({0.0f, -40.9f, -41.1f, 1e-3f - 41.0f, -kInfinity}, {}), ElementsAre(0, 1, 3));
}

TEST(KeepCandidates, ScoresAreRelativeToTheLargestAndDividedByTheTemperature) {
  SamplerScratch scratch;
  SamplingParams params;
  params.temperature = 0.5f;
  const std::vector<float> logits = {3.0f, 5.0f};
  const auto kept = KeepCandidates(logits, params, scratch);
  ASSERT_TRUE(kept.ok());
  EXPECT_THAT((*kept)[0].score, FloatEq(-4.0f));
  EXPECT_THAT((*kept)[1].score, FloatEq(0.0f));
}

TEST(KeepCandidates, TopKIsExactAndTiesGoToLowerIds) {
  SamplingParams params;
  params.top_k = 3;
  EXPECT_THAT(Keep({1, 7, 7, 2, 7, 7}, params), ElementsAre(1, 2, 4));
  params.top_k = 1;
  EXPECT_THAT(Keep({1, 7, 7, 2, 7, 7}, params), ElementsAre(1));
  params.top_k = 0;
  EXPECT_EQ(Keep({1, 7, 7, 2, 7, 7}, params).size(), 6u);
}

TEST(KeepCandidates, TopPKeepsTheShortestPrefixThatReachesIt) {
  const std::vector<float> logits = {std::log(0.1f), std::log(0.5f), std::log(0.25f), std::log(0.15f)};
  SamplingParams params;
  params.top_p = 0.4f;
  EXPECT_THAT(Keep(logits, params), ElementsAre(1));
  params.top_p = 0.51f;
  EXPECT_THAT(Keep(logits, params), ElementsAre(1, 2));
  params.top_p = 0.76f;
  EXPECT_THAT(Keep(logits, params), ElementsAre(1, 2, 3));
  params.top_p = 1e-9f;
  EXPECT_THAT(Keep(logits, params), ElementsAre(1));
}

TEST(KeepCandidates, TopPCountsOnlyWhatTopKLeft) {
  const std::vector<float> logits = {std::log(0.4f), std::log(0.3f), std::log(0.2f), std::log(0.1f)};
  SamplingParams params;
  params.top_k = 2;
  params.top_p = 0.55f;  // 0.4 / 0.7 = 0.571 of the two that are left
  EXPECT_THAT(Keep(logits, params), ElementsAre(0));
}

TEST(KeepCandidates, MinPIsAShareOfTheLargestAfterTheTemperature) {
  const std::vector<float> logits = {0.0f, -1.0f, -2.0f};
  SamplingParams params;
  params.min_p = 0.2f;  // log 0.2 = -1.609
  EXPECT_THAT(Keep(logits, params), ElementsAre(0, 1));
  params.temperature = 2.0f;
  EXPECT_THAT(Keep(logits, params), ElementsAre(0, 1, 2));
  params.min_p = 1.0f;
  EXPECT_THAT(Keep(logits, params), ElementsAre(0));
}

TEST(KeepCandidates, RefusesACorruptedRow) {
  SamplerScratch scratch;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& row : {std::vector<float>{nan, nan}, {-kInfinity}, {0.0f, kInfinity}, {}}) {
    EXPECT_EQ(KeepCandidates(row, {}, scratch).status().code(), absl::StatusCode::kInternal);
  }
  EXPECT_THAT(Keep({nan, 1.0f, -kInfinity}, {}), ElementsAre(1));
}

TEST(KeepCandidates, AScratchMayServeRowsOfOtherLengths) {
  SamplerScratch scratch;
  SamplingParams params;
  params.top_k = 2;
  for (const int size : {50, 3, 200, 1}) {
    const std::vector<float> logits = RandomLogits(size, size, 3.0f, 0);
    EXPECT_EQ(Tokens(*KeepCandidates(logits, params, scratch)), KeepByDefinition(logits, params)) << size;
  }
}

RC_GTEST_PROP(KeepCandidatesProperty, MatchesTheDefinition, ()) {
  const auto logits = RandomLogits(*rc::gen::arbitrary<uint64_t>(), *rc::gen::inRange(1, 300), *rc::gen::element(0.1f, 1.0f, 4.0f, 30.0f),
                                   *rc::gen::element(0, 0, 3, 20));
  SamplingParams params;
  params.temperature = *rc::gen::element(0.1f, 0.7f, 1.0f, 2.0f);
  params.top_k = *rc::gen::element(-1, 0, 1, 2, 7, 40, 1000);
  params.top_p = *rc::gen::element(0.05f, 0.313f, 0.5f, 0.9f, 0.987f, 1.0f);
  params.min_p = *rc::gen::element(0.0f, 0.0517f, 0.31f, 1.0f);
  RC_ASSERT(Keep(logits, params) == KeepByDefinition(logits, params));
}

}  // namespace
}  // namespace pith
