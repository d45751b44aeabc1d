#include "eval/tasks/task_score.h"

#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/json.h"
#include "base/test_util.h"
#include "eval/tasks/task_file.h"
#include "eval/tasks/task_records.h"

namespace pith {
namespace {

double Value(const TaskItem& item, absl::string_view answer) {
  const auto score = ScoreAnswer(item, answer, nullptr);
  EXPECT_TRUE(score.ok()) << score.status();
  return score.ok() ? score->value : -1;
}

TEST(TaskScoreTest, EveryKindOfTextMatch) {
  EXPECT_EQ(Value({.match = MatchKind::kExact, .answers = {"a b"}}, " a  b\n"), 1);
  EXPECT_EQ(Value({.match = MatchKind::kExact, .answers = {"a b"}}, "a b c"), 0);
  EXPECT_EQ(Value({.match = MatchKind::kContains, .answers = {"x", "B"}, .ignore_case = true}, "abc"), 1);
  EXPECT_EQ(Value({.match = MatchKind::kContains, .answers = {"x", "B"}}, "abc"), 0);
  EXPECT_EQ(Value({.match = MatchKind::kContainsAll, .answers = {"AB", "CD", "EF", "GH"}}, "AB, EF, GH"), 0.75);
  EXPECT_EQ(Value({.match = MatchKind::kRegex, .answers = {"^x", "c$"}}, "abc"), 1);
  EXPECT_EQ(Value({.match = MatchKind::kRegex, .answers = {"^x"}}, "abc"), 0);
  EXPECT_EQ(Value({.match = MatchKind::kContinuation, .answers = {"signs"}}, " signs, he"), 1);
  EXPECT_EQ(Value({.match = MatchKind::kContinuation, .answers = {"signs"}}, " no signs"), 0);
}

TEST(TaskScoreTest, NumbersSayWhatWasCompared) {
  const TaskItem german{.language = "de", .match = MatchKind::kNumber, .answers = {"80000"}};
  EXPECT_EQ(Value(german, "Antwort: 80.000 Euro"), 1);
  EXPECT_EQ(Value(german, "Antwort: 80.001 Euro"), 0);
  EXPECT_EQ(ScoreAnswer(german, "80.000", nullptr)->extracted, "80000 or 80");
  EXPECT_EQ(Value({.match = MatchKind::kNumber, .answers = {"2", "3"}}, "It is 3."), 1);
  EXPECT_EQ(Value({.match = MatchKind::kNumber, .answers = {"2"}}, "two"), 0);
}

// The worked solutions that GSM8K publishes, with their mark and, by the last number, without.
TEST(TaskScoreTest, PublishedSolutionsOfGsm8kAreRight) {
  const auto content = ReadFile(SharedPath("data/gsm8k/test_a.jsonl"));
  if (!content.ok()) GTEST_SKIP() << "needs the shared evaluation data (set PITH_SHARED_DIR)";
  const auto file = ParseTaskFile("gsm8k", *content);
  ASSERT_TRUE(file.ok()) << file.status();
  RecordReader reader(*content);
  for (size_t i = 0; i < file->items.size(); ++i) {
    const std::string solution = *GetString((**reader.Next()).object, "answer");
    EXPECT_EQ(Value(file->items[i], solution), 1) << solution;
    EXPECT_EQ(Value(file->items[i], absl::StrReplaceAll(solution, {{"####", "So it is"}})), 1) << solution;
    EXPECT_EQ(Value(file->items[i], solution + "1"), 0) << solution;
  }
}

TEST(TaskScoreTest, CodeIsRun) {
  const TaskItem item{.id = "c", .match = MatchKind::kCode, .unit_test = UnitTest{.test = "assert x == 2"}};
  const auto sandbox = CodeSandbox::Create();
  ASSERT_TRUE(sandbox.ok()) << sandbox.status();
  EXPECT_EQ(ScoreAnswer(item, "x = 2", &*sandbox)->value, 1);
  EXPECT_EQ(ScoreAnswer(item, "x = 3", &*sandbox)->value, 0);
  EXPECT_EQ(ScoreAnswer(item, "x = 3", &*sandbox)->extracted, "AssertionError");
  EXPECT_TRUE(absl::IsInternal(ScoreAnswer(item, "x = 2", nullptr).status()));
}

TEST(TaskScoreTest, WhatCannotBeScoredIsAnError) {
  EXPECT_TRUE(absl::IsInternal(ScoreAnswer({.match = MatchKind::kChoice}, "A", nullptr).status()));
  EXPECT_TRUE(absl::IsDataLoss(ScoreAnswer({.match = MatchKind::kRegex, .answers = {"("}}, "A", nullptr).status()));
}

}  // namespace
}  // namespace pith
