#include "eval/tasks/number_scanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pith {
namespace {

using ::testing::ElementsAre;

TEST(NumberScannerTest, FoldsDigitsSignsAndSpacesToAscii) {
  EXPECT_TRUE(FoldDigits("\uff11\u0662\u09e9\u0c6a\u0e55\u096c\u06f7") == U"1234567");
  EXPECT_TRUE(FoldDigits("\u22121\uff0c000\uff0e5\u00a0x\u202fy") == U"-1,000.5 x y");
  EXPECT_TRUE(FoldDigits("a\xff\u4e07") == U"a\ufffd\u4e07");
  EXPECT_TRUE(FoldDigits("").empty());
}

TEST(NumberScannerTest, TokensSayWhereTheyLie) {
  const std::u32string text = U"a -$12.50, b";
  const auto token = NextNumber(text, 0, {});
  ASSERT_TRUE(token.has_value());
  EXPECT_EQ(token->begin, 2u);  // the sign
  EXPECT_EQ(token->end, 9u);
  EXPECT_THAT(token->readings, ElementsAre("-12.5"));
  EXPECT_FALSE(NextNumber(text, token->end, {}).has_value());
  EXPECT_THAT(NextNumber(text, 3, {})->readings, ElementsAre("12.5"));  // a sign before where the search begins is not seen
  EXPECT_FALSE(NextNumber(U"", 0, {}).has_value());
  EXPECT_FALSE(NextNumber(U"1", 1, {}).has_value());
}

TEST(NumberScannerTest, TheLongestReadingsCount) {
  EXPECT_THAT(NextNumber(U"1.234,5", 0, {.decimal_comma = true})->readings, ElementsAre("1234.5"));
  EXPECT_THAT(NextNumber(U"1,234.5", 0, {.decimal_comma = true})->readings, ElementsAre("1234.5"));
  EXPECT_THAT(NextNumber(U"1.234", 0, {.decimal_comma = true})->readings, ElementsAre("1234", "1.234"));
  EXPECT_THAT(NextNumber(U"1'234'567", 0, {.decimal_comma = true})->readings, ElementsAre("1234567"));
  EXPECT_EQ(NextNumber(U"1.234,5", 0, {})->end, 5u);
}

}  // namespace
}  // namespace pith
