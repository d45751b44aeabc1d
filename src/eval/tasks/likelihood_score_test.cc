#include "eval/tasks/likelihood_score.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace pith {
namespace {

TaskItem Choice(std::vector<std::string> choices, int64_t gold) {
  return {.id = "q", .match = MatchKind::kChoice, .choices = std::move(choices), .gold = gold};
}

TEST(LikelihoodScoreTest, SumsAndSumsPerLengthCanPickDifferentChoices) {
  // Per byte and character: -1.0, -0.5, -5/6.
  const auto score = ScoreChoice(Choice({"ab", "abcdefgh", "abc"}, 1), {{-2.0}, {-4.0}, {-2.5}});
  ASSERT_TRUE(score.ok()) << score.status();
  EXPECT_EQ(score->picked, 0);
  EXPECT_EQ(score->picked_per_character, 1);
  EXPECT_EQ(score->picked_per_byte, 1);
  EXPECT_FALSE(score->correct);
  EXPECT_TRUE(score->correct_per_character);
  EXPECT_TRUE(score->correct_per_byte);
  EXPECT_DOUBLE_EQ(score->margin, -2.0);
}

TEST(LikelihoodScoreTest, CharactersAreNotBytesAndTiesGoToTheFirst) {
  const auto score = ScoreChoice(Choice({"\u00e9\u00e9", "abc"}, 0), {{-3.0}, {-3.0}});
  EXPECT_EQ(score->picked, 0);
  EXPECT_EQ(score->picked_per_character, 1);  // -3/2 against -3/3
  EXPECT_EQ(score->picked_per_byte, 0);       // -3/4 against -3/3
  EXPECT_TRUE(score->correct);
  EXPECT_FALSE(score->correct_per_character);
  EXPECT_EQ(score->margin, 0);
  const double never = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(ScoreChoice(Choice({"a", "b"}, 1), {{never}, {never}})->picked, 0);
  EXPECT_EQ(ScoreChoice(Choice({"a", "b"}, 1), {{never}, {-9}})->picked, 1);
}

TEST(LikelihoodScoreTest, WhatDoesNotFitTheItemIsABug) {
  EXPECT_TRUE(absl::IsInternal(ScoreChoice(Choice({"a", "b"}, 0), {{-1}}).status()));
  EXPECT_TRUE(absl::IsInternal(ScoreChoice(Choice({"a", "b"}, 2), {{-1}, {-2}}).status()));
  EXPECT_TRUE(absl::IsInternal(ScoreChoice(Choice({"a", "b"}, 0), {{-1}, {std::nan("")}}).status()));
  EXPECT_TRUE(absl::IsInternal(ScoreChoice(Choice({"a", ""}, 0), {{-1}, {-2}}).status()));
  EXPECT_TRUE(absl::IsInternal(ScoreChoice({.match = MatchKind::kExact}, {{-1}, {-2}}).status()));
}

TEST(LikelihoodScoreTest, LambadaIsAccuracyAndPerplexityOfTheWord) {
  const auto summary = SummarizeContinuations({{-1.0, true}, {-3.0, false}, {-0.5, true}, {-1.5, false}});
  EXPECT_EQ(summary.n, 4);
  EXPECT_DOUBLE_EQ(summary.accuracy, 0.5);
  EXPECT_DOUBLE_EQ(summary.perplexity, std::exp(1.5));
  EXPECT_EQ(SummarizeContinuations({}).n, 0);
}

TEST(LikelihoodScoreTest, TheFirstWordOfGeneratedText) {
  EXPECT_TRUE(FirstWordMatches(" signs.\n\nHe", "signs"));
  EXPECT_TRUE(FirstWordMatches("\"Shane,\" she", "Shane"));
  EXPECT_TRUE(FirstWordMatches("don't you", "don't"));
  EXPECT_TRUE(FirstWordMatches("well-known.", "well-known"));
  EXPECT_FALSE(FirstWordMatches("the signs", "signs"));
  EXPECT_FALSE(FirstWordMatches("Signs", "signs"));
  EXPECT_FALSE(FirstWordMatches("", "signs"));
  EXPECT_FALSE(FirstWordMatches("...", "..."));
}

}  // namespace
}  // namespace pith
