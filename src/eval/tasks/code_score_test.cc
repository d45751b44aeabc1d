#include "eval/tasks/code_score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/json.h"
#include "base/test_util.h"
#include "eval/tasks/gunzip.h"
#include "eval/tasks/task_file.h"
#include "eval/tasks/task_records.h"

namespace pith {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr SandboxLimits kBrief{.cpu_seconds = 2, .wall_seconds = 30};

TaskItem AddItem() {
  return {.id = "add",
          .match = MatchKind::kCode,
          .unit_test = UnitTest{.prompt = "def add(a, b):\n    \"\"\" Sum. \"\"\"\n",
                                .entry_point = "add",
                                .test = "def check(candidate):\n    assert candidate(1, 2) == 3, 'wrong sum'\n"}};
}

CodeScore Score(const TaskItem& item, const std::string& answer) {
  const auto sandbox = CodeSandbox::Create({.limits = kBrief});
  EXPECT_TRUE(sandbox.ok()) << sandbox.status();
  if (!sandbox.ok()) return {};
  auto score = ScoreCode(item, answer, *sandbox);
  EXPECT_TRUE(score.ok()) << score.status();
  return score.ok() ? *std::move(score) : CodeScore{};
}

TEST(CodeScoreTest, PassesWhatTheTestAccepts) {
  EXPECT_TRUE(Score(AddItem(), "    return a + b\n").passed);
  EXPECT_TRUE(Score(AddItem(), "```python\ndef add(a, b):\n    return sum([a, b])  # \u03a3 \"quoted\"\n```").passed);
  const CodeScore wrong = Score(AddItem(), "    return a - b\n");
  EXPECT_FALSE(wrong.passed);
  EXPECT_EQ(wrong.reason, "AssertionError: wrong sum");
  EXPECT_THAT(wrong.program, HasSubstr("check(add)"));
  EXPECT_THAT(Score(AddItem(), "    return a +\n").reason, HasSubstr("SyntaxError"));
  EXPECT_EQ(Score(AddItem(), "    while True: pass\n").reason.substr(0, 9), "timed out");
}

TEST(CodeScoreTest, LeavingEarlyIsNoPass) {
  EXPECT_EQ(Score(AddItem(), "    raise SystemExit(0)\n").reason, "ended before the test did");
  EXPECT_EQ(Score(AddItem(), "    import os; os._exit(0)\n").reason, "ended before the test did");
  EXPECT_EQ(Score(AddItem(), "    import os; os._exit(3)\n").reason, "exit status 3");
  EXPECT_THAT(Score(AddItem(), "    import ctypes; ctypes.string_at(0)\n").reason, HasSubstr("killed by signal 11"));
}

TEST(CodeScoreTest, ExamplesUnderMainAreNotRun) {
  EXPECT_TRUE(
      Score(AddItem(), "```python\ndef add(a, b):\n    return a + b\n\nif __name__ == '__main__':\n    print(input())\n```").passed);
  EXPECT_TRUE(Score({.id = "t", .unit_test = UnitTest{.test = "assert x == 4"}}, "```\nx = 4\n```").passed);
  EXPECT_TRUE(absl::IsInternal(ScoreCode({.id = "t"}, "", *CodeSandbox::Create()).status()));
}

TEST(CodeScoreTest, PassAtKIsTheShareOfDrawsWithAPass) {
  EXPECT_DOUBLE_EQ(PassAtK(1, 1, 1), 1);
  EXPECT_DOUBLE_EQ(PassAtK(1, 0, 1), 0);
  EXPECT_NEAR(PassAtK(4, 1, 1), 0.25, 1e-12);
  EXPECT_NEAR(PassAtK(4, 1, 2), 0.5, 1e-12);      // 3 of 6 pairs hold it
  EXPECT_NEAR(PassAtK(5, 2, 3), 1 - 0.1, 1e-12);  // 1 of 10 triples holds none
  EXPECT_DOUBLE_EQ(PassAtK(4, 2, 3), 1);
  EXPECT_NEAR(PassAtK(200, 20, 100), 1, 1e-5);
  EXPECT_NEAR(MeanPassAtK({{4, 1}, {4, 0}, {4, 4}}, 1), 1.25 / 3, 1e-12);
  EXPECT_EQ(MeanPassAtK({}, 1), 0);
}

TEST(CodeScoreTest, PassAtKAgreesWithCountingAllDraws) {
  for (int64_t n = 1; n <= 7; ++n) {
    for (int64_t c = 0; c <= n; ++c) {
      for (int64_t k = 1; k <= n; ++k) {
        int64_t draws = 0, with_pass = 0;
        for (int64_t set = 0; set < (int64_t{1} << n); ++set) {  // bits below c are samples that passed
          if (__builtin_popcountll(set) != k) continue;
          ++draws;
          with_pass += (set & ((int64_t{1} << c) - 1)) != 0 ? 1 : 0;
        }
        EXPECT_NEAR(PassAtK(n, c, k), static_cast<double>(with_pass) / static_cast<double>(draws), 1e-12) << n << " " << c << " " << k;
      }
    }
  }
}

// Every eighth published solution, as a completion and as a chat model writes it; an empty body passes nowhere.
TEST(CodeScoreTest, PublishedSolutionsPass) {
  const auto bytes = ReadFile(SharedPath("data/humaneval/HumanEval.jsonl.gz"));
  if (!bytes.ok()) GTEST_SKIP() << "needs the shared evaluation data (set PITH_SHARED_DIR)";
  const std::string content = *Gunzip(*bytes, size_t{16} << 20);
  const TaskFile file = *ParseTaskFile("HumanEval", content);
  ASSERT_THAT(file.items, SizeIs(164));
  const auto sandbox = CodeSandbox::Create();
  ASSERT_TRUE(sandbox.ok()) << sandbox.status();
  RecordReader reader(content);
  for (size_t i = 0; i < file.items.size(); ++i) {
    const TaskItem& item = file.items[i];
    const std::string solution = *GetString((**reader.Next()).object, "canonical_solution");
    if (i % 8 != 0 && i != 10 && i != 38) continue;  // 10 and 38 have a function before the one under test
    const CodeScore completion = *ScoreCode(item, solution, *sandbox);
    EXPECT_TRUE(completion.passed) << item.id << ": " << completion.reason << "\n" << completion.program;
    if (i % 24 != 0 && i != 10) continue;
    const CodeScore chat = *ScoreCode(item, absl::StrCat("Sure:\n```python\n", item.prompt, solution, "```\nDone."), *sandbox);
    EXPECT_TRUE(chat.passed) << item.id << ": " << chat.reason << "\n" << chat.program;
    EXPECT_FALSE(ScoreCode(item, "    pass\n", *sandbox)->passed) << item.id;
  }
}

}  // namespace
}  // namespace pith
