#include "sampling/sampling_params.h"

#include <cmath>
#include <functional>
#include <limits>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sampling/test_floats.h"

namespace pith {
namespace {

absl::Status ValidateWith(const std::function<void(SamplingParams&)>& change) {
  SamplingParams params;
  change(params);
  return Validate(params, 100);
}

void ExpectField(const absl::Status& status, const std::string& field) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
  EXPECT_EQ(ErrorField(status), field);
  EXPECT_THAT(std::string(status.message()), testing::StartsWith(field + ": "));
}

TEST(SamplingParams, DefaultsAreValidAndSampled) {
  EXPECT_TRUE(Validate({}, 100).ok());
  EXPECT_FALSE(SamplingParams{}.greedy());
  EXPECT_FALSE(SamplingParams{}.has_penalties());
}

TEST(SamplingParams, EndsOfEveryRangeAreIncludedAsDocumented) {
  struct Range {
    const char* field;
    float SamplingParams::*member;
    float low, high;
    bool low_included;
  };
  const Range ranges[] = {
      {"temperature", &SamplingParams::temperature, 0, 2, true},
      {"top_p", &SamplingParams::top_p, 0, 1, false},
      {"min_p", &SamplingParams::min_p, 0, 1, true},
      {"presence_penalty", &SamplingParams::presence_penalty, -2, 2, true},
      {"frequency_penalty", &SamplingParams::frequency_penalty, -2, 2, true},
  };
  for (const Range& range : ranges) {
    const auto with = [&](float value) { return ValidateWith([&](SamplingParams& p) { p.*range.member = value; }); };
    EXPECT_EQ(with(range.low).ok(), range.low_included) << range.field;
    EXPECT_TRUE(with(range.high).ok()) << range.field;
    EXPECT_TRUE(with(std::nextafter(range.low, range.high)).ok()) << range.field;
    for (const float bad : {std::nextafter(range.low, -kInfinity), std::nextafter(range.high, kInfinity), kNan, kInfinity, -kInfinity}) {
      ExpectField(with(bad), range.field);
    }
  }
}

TEST(SamplingParams, RepetitionPenaltyIsPositiveAndFinite) {
  for (const float bad : {0.0f, -1.0f, kNan, kInfinity}) {
    ExpectField(ValidateWith([&](SamplingParams& p) { p.repetition_penalty = bad; }), "repetition_penalty");
  }
  EXPECT_TRUE(ValidateWith([](SamplingParams& p) { p.repetition_penalty = 1e-6f; }).ok());
}

TEST(SamplingParams, CountsHaveLowerEnds) {
  ExpectField(ValidateWith([](SamplingParams& p) { p.top_k = -2; }), "top_k");
  EXPECT_TRUE(ValidateWith([](SamplingParams& p) { p.top_k = -1; }).ok());
  EXPECT_TRUE(ValidateWith([](SamplingParams& p) { p.top_k = 1'000'000; }).ok());
  ExpectField(ValidateWith([](SamplingParams& p) { p.min_tokens = -1; }), "min_tokens");
  ExpectField(ValidateWith([](SamplingParams& p) { p.logprobs = 21; }), "logprobs");
  ExpectField(ValidateWith([](SamplingParams& p) { p.logprobs = -2; }), "logprobs");
  EXPECT_TRUE(ValidateWith([](SamplingParams& p) { p.logprobs = 20; }).ok());
}

TEST(SamplingParams, LogitBiasNamesTokensOfTheVocabularyOnce) {
  EXPECT_TRUE(ValidateWith([](SamplingParams& p) { p.logit_bias = {{0, -100.0f}, {99, 100.0f}}; }).ok());
  ExpectField(ValidateWith([](SamplingParams& p) { p.logit_bias = {{100, 1.0f}}; }), "logit_bias");
  ExpectField(ValidateWith([](SamplingParams& p) { p.logit_bias = {{-1, 1.0f}}; }), "logit_bias");
  ExpectField(ValidateWith([](SamplingParams& p) { p.logit_bias = {{3, 100.5f}}; }), "logit_bias");
  ExpectField(ValidateWith([](SamplingParams& p) { p.logit_bias = {{3, kNan}}; }), "logit_bias");
  ExpectField(ValidateWith([](SamplingParams& p) { p.logit_bias = {{3, 1.0f}, {3, 1.0f}}; }), "logit_bias");
}

TEST(SamplingParams, GreedyBelowTheThreshold) {
  SamplingParams params;
  params.temperature = 0.0f;
  EXPECT_TRUE(params.greedy());
  params.temperature = 0.99e-5f;
  EXPECT_TRUE(params.greedy());
  params.temperature = 1e-5f;
  EXPECT_FALSE(params.greedy());
}

}  // namespace
}  // namespace pith
