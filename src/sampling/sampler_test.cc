#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sampling/test_floats.h"

namespace pith {
namespace {

SampleResult Draw(absl::Span<const float> logits, const SamplingParams& params, int64_t position = 0) {
  SamplerScratch scratch;
  const auto result = Sample(logits, params, {.position = position}, scratch);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.value_or(SampleResult{-1, 0, {}});
}

SamplingParams Greedy() {
  SamplingParams params;
  params.temperature = 0;
  return params;
}

// Pearson's statistic of draws at positions 0..n-1 against exact probabilities; bins expected below 5 are joined into one.
struct ChiSquare {
  double statistic = 0;
  int degrees = -1;
};
ChiSquare ChiSquareOfDraws(const std::vector<float>& logits, const SamplingParams& params, const std::vector<double>& probability, int n) {
  std::vector<double> observed(logits.size(), 0);
  for (int position = 0; position < n; ++position) observed[Draw(logits, params, position).token] += 1;
  ChiSquare result;
  double rest_observed = 0, rest_expected = 0;
  const auto add = [&](double seen, double expected) {
    result.statistic += (seen - expected) * (seen - expected) / expected;
    ++result.degrees;
  };
  for (size_t i = 0; i < logits.size(); ++i) {
    if (probability[i] == 0) {
      EXPECT_EQ(observed[i], 0) << "token " << i << " was ruled out";
    } else if (probability[i] * n < 5) {
      rest_observed += observed[i];
      rest_expected += probability[i] * n;
    } else {
      add(observed[i], probability[i] * n);
    }
  }
  if (rest_expected >= 5) add(rest_observed, rest_expected);
  return result;
}

// Mean + 4.5 standard deviations of chi-square: a false alarm in fewer than 1 of 10^4 seeds, and the seeds are fixed.
double Limit(int degrees) { return degrees + 4.5 * std::sqrt(2.0 * degrees); }

std::vector<double> Softmax(const std::vector<float>& logits, double temperature, const std::vector<bool>& kept) {
  std::vector<double> probability(logits.size(), 0);
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i) total += probability[i] = kept[i] ? std::exp(logits[i] / temperature) : 0;
  for (double& p : probability) p /= total;
  return probability;
}

TEST(Sampler, DrawsFollowTheSoftmax) {
  const std::vector<float> logits = RandomLogits(11, 40, 1.5f);
  for (const uint64_t seed : {1ull, 2ull, 0xFFFFFFFF00000001ull}) {
    SamplingParams params;
    params.seed = seed;
    const ChiSquare chi = ChiSquareOfDraws(logits, params, Softmax(logits, 1.0, std::vector<bool>(40, true)), 20000);
    EXPECT_LT(chi.statistic, Limit(chi.degrees)) << "seed " << seed;
    EXPECT_GT(chi.degrees, 25);
  }
}

TEST(Sampler, DrawsFollowTheTemperatureAndTheFilters) {
  const std::vector<float> logits = {2.0f, 1.0f, 0.0f, 1.5f, -1.0f, 0.5f};
  SamplingParams params;
  params.temperature = 1.7f;
  params.top_k = 4;  // keeps 0, 3, 1, 5
  params.seed = 5;
  const ChiSquare chi = ChiSquareOfDraws(logits, params, Softmax(logits, 1.7, {true, true, false, true, false, true}), 20000);
  EXPECT_EQ(chi.degrees, 3);
  EXPECT_LT(chi.statistic, Limit(chi.degrees));
}

TEST(Sampler, SeedsDrawIndependently) {
  // Pairs of draws of two seeds at the same positions: uniform over 4 x 4 cells when independent.
  const std::vector<float> logits(4, 0.0f);
  std::vector<int> cells(16, 0);
  SamplingParams first, second;
  first.seed = 1;
  second.seed = 2;
  constexpr int kDraws = 16000;
  for (int position = 0; position < kDraws; ++position) {
    ++cells[Draw(logits, first, position).token * 4 + Draw(logits, second, position).token];
  }
  double statistic = 0;
  for (const int count : cells) statistic += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(statistic, Limit(15));
}

TEST(Sampler, IsTheArgMaxOfScorePlusNoise) {
  // The definition without any shortcut, over every token.
  SamplingParams params;
  params.seed = 99;
  for (int position = 0; position < 300; ++position) {
    params.temperature = position % 3 == 0 ? 0.3f : position % 3 == 1 ? 1.0f : 2.0f;
    const std::vector<float> logits = RandomLogits(position, 500, 3.0f);
    const float largest = *std::max_element(logits.begin(), logits.end());
    int32_t expected = -1;
    double best = -std::numeric_limits<double>::infinity();
    for (int32_t token = 0; token < 500; ++token) {
      const double value = (logits[token] - largest) * (1.0f / params.temperature) + GumbelNoise(params.seed, position, token);
      if (value > best) {
        best = value;
        expected = token;
      }
    }
    EXPECT_EQ(Draw(logits, params, position).token, expected) << position;
  }
}

TEST(Sampler, ADrawDependsOnSeedPositionAndRowAlone) {
  const std::vector<float> logits = RandomLogits(3, 1000, 2.0f);
  SamplingParams params;
  params.seed = 42;
  std::vector<int32_t> forward, backward;
  SamplerScratch shared;
  for (int64_t position = 0; position < 50; ++position) {
    forward.push_back(Sample(logits, params, {.position = position}, shared)->token);
    const std::vector<float> other = RandomLogits(position, 77, 5.0f);  // a neighbour in the batch
    ASSERT_TRUE(Sample(other, Greedy(), {}, shared).ok());
  }
  for (int64_t position = 49; position >= 0; --position) backward.push_back(Draw(logits, params, position).token);
  std::reverse(backward.begin(), backward.end());
  EXPECT_EQ(forward, backward);
  EXPECT_GT(std::set<int32_t>(forward.begin(), forward.end()).size(), 10u);
}

TEST(Sampler, ATokenKeepsItsNoiseWhenOthersAreFilteredAway) {
  // The winner under a filter is the one with the largest score + noise of those left: same noise with and without.
  const std::vector<float> logits = RandomLogits(8, 200, 1.0f);
  SamplingParams all, few;
  few.top_k = 150;
  int same = 0;
  for (int64_t position = 0; position < 100; ++position) same += Draw(logits, all, position).token == Draw(logits, few, position).token;
  EXPECT_GT(same, 75);
}

TEST(Sampler, GumbelNoiseIsTheDocumentedFunction) {
  for (const int32_t token : {0, 1, 6, 7, 262143}) {
    const double u = UniformOpenPair(5, 1234, token / 2)[token % 2];
    EXPECT_EQ(GumbelNoise(5, 1234, token), -std::log(-std::log(u))) << token;
  }
}

TEST(Sampler, GumbelNoiseHasTheRightMeanAndVariance) {
  double sum = 0, squares = 0;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) {
    const double g = GumbelNoise(7, i / 100, i % 100);
    sum += g;
    squares += g * g;
  }
  const double mean = sum / kDraws;
  EXPECT_NEAR(mean, 0.5772156649, 4 * 1.2825 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws - mean * mean, 1.6449340668, 0.03);
}

TEST(Sampler, GreedyTakesTheLargestAndTheLowestIdOnTies) {
  EXPECT_EQ(Draw({1, 5, 3, 5, 5}, Greedy()).token, 1);
  EXPECT_EQ(Draw({kNan, -3, kNan, -2, -kInfinity}, Greedy()).token, 3);
}

TEST(Sampler, GreedyHonoursBiasPenaltiesAndBans) {
  SamplingParams params = Greedy();
  params.logit_bias = {{1, -3.0f}};
  EXPECT_EQ(Draw({1, 3, 2}, params).token, 2);
  const int32_t banned[] = {1, 2};
  SamplerScratch scratch;
  EXPECT_EQ(Sample({1, 3, 2}, Greedy(), {.banned = banned}, scratch)->token, 0);
  TokenCounts history;
  history.AddOutput(1);
  params = Greedy();
  params.presence_penalty = 2.0f;
  EXPECT_EQ(Sample({1, 3, 2}, params, {.history = &history}, scratch)->token, 2);
}

TEST(Sampler, CorruptedRowsAreAnErrorThatNamesThePosition) {
  SamplerScratch scratch;
  for (const SamplingParams& params : {SamplingParams{}, Greedy()}) {
    for (const std::vector<float>& row : {std::vector<float>{kNan, kNan}, {-kInfinity, -kInfinity}, {1.0f, kInfinity}}) {
      const auto result = Sample(row, params, {.position = 17}, scratch);
      EXPECT_EQ(result.status().code(), absl::StatusCode::kInternal);
      EXPECT_THAT(std::string(result.status().message()), testing::HasSubstr("17"));
    }
  }
}

TEST(Sampler, LogprobsComeFromTheRawRow) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.125f), std::log(0.25f), std::log(0.125f)};
  SamplingParams params;
  params.temperature = 0.5f;
  params.top_k = 1;
  params.logit_bias = {{3, 50.0f}};
  params.logprobs = 3;
  const SampleResult result = Draw(logits, params);
  EXPECT_EQ(result.token, 3);
  EXPECT_NEAR(result.logprob, std::log(0.125), 1e-6);
  ASSERT_EQ(result.top_logprobs.size(), 3u);
  EXPECT_EQ(result.top_logprobs[0].token, 0);
  EXPECT_EQ(result.top_logprobs[1].token, 2);
  EXPECT_EQ(result.top_logprobs[2].token, 1);  // ties with 3, which is later
  EXPECT_NEAR(result.top_logprobs[0].logprob, std::log(0.5), 1e-6);
  EXPECT_NEAR(result.top_logprobs[1].logprob, std::log(0.25), 1e-6);
}

TEST(Sampler, LogprobsZeroGivesOnlyTheChosenTokens) {
  SamplingParams params = Greedy();
  params.logprobs = 0;
  const SampleResult result = Draw({0.0f, 0.0f}, params);
  EXPECT_NEAR(result.logprob, std::log(0.5), 1e-7);
  EXPECT_TRUE(result.top_logprobs.empty());
  params.logprobs = -1;
  EXPECT_EQ(Draw({0.0f, 0.0f}, params).logprob, 0.0f);
}

TEST(Sampler, TopLogprobsMatchASortOfTheRow) {
  const std::vector<float> logits = RandomLogits(21, 5000, 4.0f);
  SamplingParams params = Greedy();
  params.logprobs = 20;
  const SampleResult result = Draw(logits, params);
  std::vector<float> sorted = logits;
  std::sort(sorted.rbegin(), sorted.rend());
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit));
  ASSERT_EQ(result.top_logprobs.size(), 20u);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(logits[result.top_logprobs[i].token], sorted[i]);
    EXPECT_NEAR(result.top_logprobs[i].logprob, sorted[i] - std::log(total), 2e-6);
  }
  params.logprobs = 20;
  EXPECT_EQ(Draw({1.0f, 2.0f, kNan}, params).top_logprobs.size(), 2u);
}

TEST(TokenLogprobs, ReportsAKnownTokenAsADrawWould) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.125f), std::log(0.375f)};
  const SampleResult result = TokenLogprobs(logits, 1, 2);
  EXPECT_EQ(result.token, 1);
  EXPECT_NEAR(result.logprob, std::log(0.125), 1e-6);
  ASSERT_EQ(result.top_logprobs.size(), 2u);
  EXPECT_EQ(result.top_logprobs[0].token, 0);
  EXPECT_EQ(result.top_logprobs[1].token, 2);
  EXPECT_TRUE(TokenLogprobs(logits, 1, -1).top_logprobs.empty());
}

TEST(ArgMax, EveryLengthAndPlace) {
  for (int size = 1; size < 70; ++size) {
    for (int place = 0; place < size; ++place) {
      std::vector<float> values(size, -1.0f);
      values[place] = 2.0f;
      if (place + 1 < size) values[size - 1] = 2.0f;
      EXPECT_EQ(ArgMax(values), place) << size;
      std::fill(values.begin(), values.end(), kNan);
      values[place] = -5.0f;
      EXPECT_EQ(ArgMax(values), place) << size;
    }
  }
  EXPECT_EQ(ArgMax({}), -1);
  EXPECT_EQ(ArgMax({kNan, -kInfinity}), -1);
}

TEST(LogSumExp, IsStableAndIgnoresNan) {
  EXPECT_NEAR(LogSumExp({1000.0f, 1000.0f}), 1000.0 + std::log(2.0), 1e-9);
  EXPECT_NEAR(LogSumExp({-1000.0f, kNan, -1000.0f}), -1000.0 + std::log(2.0), 1e-9);
  EXPECT_EQ(LogSumExp({-kInfinity}), -std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace pith
