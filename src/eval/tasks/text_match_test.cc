#include "eval/tasks/text_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pith {
namespace {

using ::testing::HasSubstr;

bool Found(const std::string& expression, const std::string& text, bool ignore_case = false) {
  const auto pattern = AnswerPattern::Parse(expression, ignore_case);
  EXPECT_TRUE(pattern.ok()) << pattern.status();
  const auto found = pattern->FoundIn(text);
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() && *found;
}

TEST(TextMatchTest, NormalisesSpacesFormAndCase) {
  EXPECT_EQ(NormalizeAnswer("  a\t\n b\u3000c ", false), "a b c");
  EXPECT_EQ(NormalizeAnswer("e\u0301", false), "\u00e9");
  EXPECT_EQ(NormalizeAnswer("Stra\u00dfe", true), "strasse");
  EXPECT_EQ(NormalizeAnswer("a\xff", false), "a\xEF\xBF\xBD");
  EXPECT_EQ(NormalizeAnswer(" \n", true), "");
}

TEST(TextMatchTest, ExactIsTheWholeText) {
  EXPECT_TRUE(MatchesExactly(" Paris\n", {"London", "Paris"}, false));
  EXPECT_FALSE(MatchesExactly("paris", {"Paris"}, false));
  EXPECT_TRUE(MatchesExactly("paris", {"PARIS"}, true));
  EXPECT_FALSE(MatchesExactly("Paris.", {"Paris"}, false));
  EXPECT_FALSE(MatchesExactly("", {"Paris"}, false));
}

TEST(TextMatchTest, ContainsLooksAnywhere) {
  EXPECT_TRUE(ContainsAny("It is\n Paris.", {"is Paris"}, false));
  EXPECT_FALSE(ContainsAny("It is Paris.", {"paris"}, false));
  EXPECT_TRUE(ContainsAny("It is Paris.", {"rome", "paris"}, true));
  EXPECT_DOUBLE_EQ(ShareContained("VAR ABC and xyz", {"abc", "XYZ", "QQQ", "RRR"}, true), 0.5);
  EXPECT_EQ(ShareContained("x", {}, true), 0);
}

TEST(TextMatchTest, RegularExpressionsAreSearchedFor) {
  EXPECT_TRUE(Found("\\b4\\d+\\b", "it is 42 then"));
  EXPECT_FALSE(Found("^4\\d+$", "it is 42 then"));
  EXPECT_FALSE(Found("paris", "Paris"));
  EXPECT_TRUE(Found("paris", "Paris", true));
  EXPECT_TRUE(Found("^.$", "\u00e9"));            // one character, not two bytes
  EXPECT_TRUE(Found("\\p{Han}", "a\xff\u4e07"));  // text that is no UTF-8 is no error
}

TEST(TextMatchTest, BadExpressionsAndEndlessSearchesAreErrors) {
  EXPECT_THAT(AnswerPattern::Parse("a(b", false).status().message(), HasSubstr("expected a regular expression, found \"a(b\""));
  EXPECT_TRUE(absl::IsDataLoss(AnswerPattern::Parse(std::string(5000, 'a'), false).status()));
  EXPECT_TRUE(absl::IsDataLoss(AnswerPattern::Parse("\xff", false).status()));
  const auto slow = AnswerPattern::Parse("(a+)+$", false)->FoundIn(std::string(60, 'a') + "b");
  EXPECT_THAT(slow.status().message(), HasSubstr("within the limits"));
}

}  // namespace
}  // namespace pith
