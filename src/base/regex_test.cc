#include "base/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

Regex Compiled(absl::string_view expression, const Regex::Options& options = {}) {
  absl::StatusOr<Regex> regex = Regex::Compile(expression, options);
  EXPECT_TRUE(regex.ok()) << regex.status();
  return *std::move(regex);
}

// "begin-end" of the match, "none", or the error.
std::string Found(const Regex& regex, absl::string_view text, size_t offset = 0) {
  const absl::StatusOr<std::optional<Regex::Match>> match = regex.Find(text, offset);
  if (!match.ok()) return std::string(match.status().message());
  return match->has_value() ? absl::StrCat((*match)->begin, "-", (*match)->end) : "none";
}

TEST(RegexTest, FindsTheFirstMatchFromAnOffsetOn) {
  const Regex regex = Compiled("b+");
  EXPECT_EQ(Found(regex, "abbab"), "1-3");
  EXPECT_EQ(Found(regex, "abbab", 2), "2-3");
  EXPECT_EQ(Found(regex, "abbab", 3), "4-5");
  EXPECT_EQ(Found(regex, "abbab", 5), "none");
  EXPECT_EQ(Found(regex, ""), "none");
  EXPECT_EQ(Found(Compiled(""), ""), "0-0");
}

TEST(RegexTest, OptionsDoWhatTheySay) {
  EXPECT_EQ(Found(Compiled("b", {.anchored = true}), "ab"), "none");
  EXPECT_EQ(Found(Compiled("b", {.anchored = true}), "ab", 1), "1-2");
  EXPECT_EQ(Found(Compiled("B"), "ab"), "none");
  EXPECT_EQ(Found(Compiled("B", {.ignore_case = true}), "ab"), "1-2");
  EXPECT_EQ(Found(Compiled("^b"), "a\nb"), "none");
  EXPECT_EQ(Found(Compiled("^b", {.multiline = true}), "a\nb"), "2-3");
  EXPECT_EQ(Found(Compiled("."), "\u00e9"), "0-1");
  EXPECT_EQ(Found(Compiled(".", {.unicode = true}), "\u00e9"), "0-2");
  EXPECT_EQ(Found(Compiled("\\w+", {.unicode = true}), "\u00e9t\u00e9 1"), "0-5");
}

TEST(RegexTest, MachineCodeFindsTheSame) {
  const std::string blanks(100'000, ' ');
  for (const bool jit : {false, true}) {
    const Regex regex = Compiled("\\s+(?!\\S)|\\w+", {.unicode = true, .jit = jit});
    EXPECT_EQ(Found(regex, "  ab"), "0-1") << jit;
    EXPECT_EQ(Found(regex, blanks), "0-100000") << jit;
  }
}

TEST(RegexTest, ABadExpressionIsRefusedWithItsPlace) {
  EXPECT_THAT(Regex::Compile("a(b", {}).status().message(), HasSubstr("found \"a(b\": missing closing parenthesis at offset 3"));
  EXPECT_THAT(Regex::Compile("\\C", {.unicode = true}).status().message(), HasSubstr("at offset 2"));
  EXPECT_THAT(Regex::Compile("abc", {.max_bytes = 2}).status().message(), HasSubstr("at most 2 bytes, found 3"));
  EXPECT_FALSE(Regex::Compile(std::string(200, '(') + std::string(200, ')'), {}).ok());
}

TEST(RegexTest, ASearchThatCostsTooMuchEndsWithAnError) {
  const std::string hostile = std::string(60, 'a') + "!";
  EXPECT_THAT(Found(Compiled("(a+)+$"), hostile), HasSubstr("expected a match within the limits"));
  EXPECT_THAT(Found(Compiled("(a+)+$", {.jit = true}), hostile), HasSubstr("expected a match within the limits"));
  EXPECT_THAT(Found(Compiled("(a+)+$", {.max_depth = 10}), hostile), HasSubstr("depth limit"));
}

TEST(RegexTest, OneExpressionServesManyThreads) {
  const Regex regex = Compiled("[0-9]+", {.jit = true});
  std::vector<std::thread> threads;
  std::vector<int> right(4, 0);
  for (size_t t = 0; t < right.size(); ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 500; ++i) right[t] += Found(regex, std::string(i, 'x') + "12") == absl::StrCat(i, "-", i + 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, std::vector<int>(4, 500));
}

}  // namespace
}  // namespace pith
