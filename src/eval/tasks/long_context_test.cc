#include "eval/tasks/long_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "base/test_util.h"
#include "eval/tasks/task_score.h"

namespace pith {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

int64_t CountBytes(absl::string_view text) { return static_cast<int64_t>(text.size()); }
int64_t CountWords(absl::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  return static_cast<int64_t>(words.size());
}

std::vector<TaskItem> Generate(const LongContextOptions& options, const CountTokens& count = CountBytes) {
  const auto items = GenerateLongContext(options, count);
  EXPECT_TRUE(items.ok()) << items.status();
  return items.ok() ? *items : std::vector<TaskItem>();
}

TEST(LongContextTest, PromptsAreAsLongAsWholeSentencesAllow) {
  for (const auto kind : {LongContextKind::kNeedle, LongContextKind::kMultiKeyNeedle, LongContextKind::kVariableTracking}) {
    for (const int64_t tokens : {1000, 5000, 200'000}) {
      for (const TaskItem& item : Generate({.kind = kind, .tokens = tokens, .items = 2})) {
        EXPECT_LE(CountBytes(item.prompt), tokens) << item.id;
        EXPECT_GT(CountBytes(item.prompt), tokens - 80) << item.id;  // our longest sentence
      }
      for (const TaskItem& item : Generate({.kind = kind, .tokens = tokens, .items = 2}, CountWords)) {
        EXPECT_LE(CountWords(item.prompt), tokens);
        EXPECT_GT(CountWords(item.prompt), tokens - 20);
      }
    }
  }
}

// A tokenizer counts a text with less or more than its sentences: here every 1000 characters cost some extra, or save it.
TEST(LongContextTest, CountsOfPartsMayBeWrong) {
  for (const int64_t extra : {300, -300}) {
    const auto count = [&](absl::string_view text) { return CountBytes(text) + CountBytes(text) / 1000 * extra; };
    const std::vector<TaskItem> items = Generate({.tokens = 50'000, .items = 1}, count);
    EXPECT_LE(count(items[0].prompt), 50'000);
    EXPECT_GT(count(items[0].prompt), 50'000 - 500);
  }
}

TEST(LongContextTest, TheSameSeedGivesTheSameItems) {
  const LongContextOptions options{.kind = LongContextKind::kMultiKeyNeedle, .tokens = 3000, .items = 3, .seed = 5};
  EXPECT_EQ(Generate(options), Generate(options));
  LongContextOptions other = options;
  other.seed = 6;
  EXPECT_NE(Generate(options)[0].prompt, Generate(other)[0].prompt);
  EXPECT_NE(Generate(options)[0].answers, Generate(options)[1].answers);
}

TEST(LongContextTest, NeedlesLieAtEveryDepthAndAreSaidOnce) {
  const std::vector<TaskItem> items = Generate({.tokens = 20'000, .items = 10});
  ASSERT_THAT(items, SizeIs(10));
  for (size_t i = 0; i < items.size(); ++i) {
    ASSERT_THAT(items[i].answers, SizeIs(1));
    const size_t at = items[i].prompt.find(items[i].answers[0]);
    ASSERT_NE(at, std::string::npos);
    EXPECT_EQ(items[i].prompt.find(items[i].answers[0], at + 1), std::string::npos);
    EXPECT_NEAR(static_cast<double>(at) / 20'000, (static_cast<double>(i) + 0.5) / 10, 0.03);
    EXPECT_EQ(items[i].slice, "long_context");
    EXPECT_EQ(items[i].match, MatchKind::kContains);
    EXPECT_EQ(ScoreAnswer(items[i], "It is " + items[i].answers[0] + ".", nullptr)->value, 1);
    ASSERT_THAT(items[i].messages, SizeIs(1));
    EXPECT_TRUE(absl::StartsWith(items[i].prompt, items[i].messages[0].content));
  }
}

TEST(LongContextTest, OtherNeedlesHaveOtherKeysAndNumbers) {
  const TaskItem item = Generate({.kind = LongContextKind::kMultiKeyNeedle, .tokens = 90'000, .items = 1, .distractors = 900})[0];
  std::vector<std::string> keys, numbers;
  for (const absl::string_view part : absl::StrSplit(item.prompt, "The secret number of the ")) {
    const std::vector<absl::string_view> halves = absl::StrSplit(part.substr(0, part.find('.')), " is ");
    if (halves.size() != 2) continue;
    keys.emplace_back(halves[0]);
    numbers.emplace_back(halves[1]);
  }
  EXPECT_THAT(keys, SizeIs(901));
  for (std::vector<std::string>* list : {&keys, &numbers}) {
    std::sort(list->begin(), list->end());
    EXPECT_EQ(std::adjacent_find(list->begin(), list->end()), list->end());
  }
}

// Follows the assignments as the text states them; the variables that reach the value asked for are the answers.
TEST(LongContextTest, VariablesHandTheValueOn) {
  const std::vector<TaskItem> items = Generate(
      {.kind = LongContextKind::kVariableTracking, .tokens = 8000, .items = 5, .chains = 3, .hops = 4});
  for (const TaskItem& item : items) {
    std::map<std::string, std::string> value_of;
    for (const absl::string_view line : absl::StrSplit(item.prompt, "VAR ")) {
      const std::vector<std::string> parts = absl::StrSplit(line, absl::ByAnyChar(" ."), absl::SkipEmpty());
      if (parts.size() >= 2 && parts[1] == "=" && parts.size() == 2) {
        value_of["pending"] = parts[0];
      } else if (value_of.count("pending") != 0 && !value_of["pending"].empty()) {
        ASSERT_EQ(value_of.count(parts[0]), 1u) << "assigned before its source";
        value_of[value_of["pending"]] = value_of[parts[0]];
        value_of["pending"].clear();
      } else if (parts.size() >= 3 && parts[1] == "=") {
        value_of[parts[0]] = parts[2];
      }
    }
    value_of.erase("pending");
    EXPECT_THAT(value_of, SizeIs(15));
    std::vector<std::string> reached;
    for (const auto& [name, value] : value_of) {
      if (absl::StrContains(item.prompt, "have the value " + value + ",")) reached.push_back(name);
    }
    EXPECT_THAT(reached, ::testing::UnorderedElementsAreArray(item.answers));
    EXPECT_EQ(item.match, MatchKind::kContainsAll);
    EXPECT_DOUBLE_EQ(ScoreAnswer(item, item.answers[0] + " " + item.answers[1], nullptr)->value, 0.4);
  }
}

TEST(LongContextTest, AnyTextCanBeFiller) {
  const std::string filler = "First one here. Second\none? Third";
  const TaskItem item = Generate({.tokens = 2000, .items = 1, .filler = filler})[0];
  EXPECT_THAT(item.prompt, HasSubstr("First one here. Second one? Third First one"));
  EXPECT_GT(CountBytes(item.prompt), 1980);
  // No full stops at all.
  const TaskItem endless = Generate({.tokens = 3000, .items = 1, .filler = std::string(500, 'a') + " " + std::string(600, 'b')})[0];
  EXPECT_GT(CountBytes(endless.prompt), 2000);
}

TEST(LongContextTest, WhatCannotBeMadeIsRefused) {
  const auto refusal = [](const LongContextOptions& options) { return GenerateLongContext(options, CountBytes).status(); };
  EXPECT_EQ(ErrorField(refusal({.tokens = 0})), "tokens");
  EXPECT_EQ(ErrorField(refusal({.tokens = 100})), "tokens");
  EXPECT_THAT(refusal({.tokens = 100}).message(), HasSubstr("for the question and what is hidden, found 100"));
  EXPECT_EQ(ErrorField(refusal({.items = 0})), "items");
  EXPECT_EQ(ErrorField(refusal({.distractors = 0})), "distractors");
  EXPECT_EQ(ErrorField(refusal({.chains = 100, .hops = 100})), "chains x hops");
  EXPECT_TRUE(absl::IsDataLoss(refusal({.filler = " \n "})));
  EXPECT_TRUE(absl::IsDataLoss(refusal({.filler = "a\xff."})));
}

TEST(LongContextTest, ANovelAsFiller) {
  const auto text = ReadFile(SharedPath("data/longtext/war-and-peace.txt"));
  if (!text.ok()) GTEST_SKIP() << "needs the shared evaluation data (set PITH_SHARED_DIR)";
  const std::vector<TaskItem> items = Generate({.tokens = 131'072, .items = 2, .filler = *text}, CountWords);
  for (const TaskItem& item : items) EXPECT_GT(CountWords(item.prompt), 131'072 - 100);
}

}  // namespace
}  // namespace pith
