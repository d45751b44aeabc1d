#include "eval/tasks/number_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pith {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(NumberMatchTest, ReferencesAreWholeNumbersAsPublished) {
  EXPECT_EQ(ParseReferenceNumber("18"), "18");
  EXPECT_EQ(ParseReferenceNumber(" 2,125 "), "2125");
  EXPECT_EQ(ParseReferenceNumber("1,450,000"), "1450000");
  EXPECT_EQ(ParseReferenceNumber("-10"), "-10");
  EXPECT_EQ(ParseReferenceNumber("$5.50"), "5.5");
  EXPECT_EQ(ParseReferenceNumber("-$3"), "-3");
  EXPECT_EQ(ParseReferenceNumber("007.00"), "7");
  EXPECT_EQ(ParseReferenceNumber("-0.0"), "0");
  EXPECT_EQ(ParseReferenceNumber(".25"), "0.25");
  EXPECT_EQ(ParseReferenceNumber("18 eggs"), std::nullopt);
  EXPECT_EQ(ParseReferenceNumber("12,34"), std::nullopt);
  EXPECT_EQ(ParseReferenceNumber("x"), std::nullopt);
  EXPECT_EQ(ParseReferenceNumber(""), std::nullopt);
}

TEST(NumberMatchTest, TheLastNumberCountsWhenNothingMarksTheAnswer) {
  EXPECT_THAT(FinalNumber("She has 16 - 3 - 4 = 9 eggs and makes 9 * 2 = $18.", ""), ElementsAre("18"));
  EXPECT_THAT(FinalNumber("That is 70,000 dollars", ""), ElementsAre("70000"));
  EXPECT_THAT(FinalNumber("a loss of -$1,234.50!", ""), ElementsAre("-1234.5"));
  EXPECT_THAT(FinalNumber("it is $-7", ""), ElementsAre("-7"));
  EXPECT_THAT(FinalNumber("12-5", ""), ElementsAre("5"));       // a subtraction
  EXPECT_THAT(FinalNumber("COVID-19", ""), ElementsAre("19"));  // a hyphen
  EXPECT_THAT(FinalNumber("x = \u221242", ""), ElementsAre("-42"));
  EXPECT_THAT(FinalNumber("between 1,5", ""), ElementsAre("5"));  // no group of three: a list
  EXPECT_THAT(FinalNumber("1234,567 is two", ""), ElementsAre("567"));
  EXPECT_THAT(FinalNumber("1,234,567.", ""), ElementsAre("1234567"));
  EXPECT_THAT(FinalNumber("0.50 and then .5", ""), ElementsAre("0.5"));
  EXPECT_THAT(FinalNumber("no number", ""), IsEmpty());
  EXPECT_THAT(FinalNumber("", ""), IsEmpty());
  EXPECT_THAT(FinalNumber("\xff\xfe 5 \xc3", ""), ElementsAre("5"));
}

TEST(NumberMatchTest, MarksOfTheAnswerComeFirst) {
  EXPECT_THAT(FinalNumber("5 + 3\n#### 8\nCheck: 5 and 3.", ""), ElementsAre("8"));
  EXPECT_THAT(FinalNumber("#### 1\nNo:\n#### -2,000", ""), ElementsAre("-2000"));
  EXPECT_THAT(FinalNumber("So \\boxed{\\$1{,}250} for 3 days", ""), ElementsAre("1250"));
  EXPECT_THAT(FinalNumber("\\boxed{18 \\text{ of } 20}", ""), ElementsAre("18"));
  EXPECT_THAT(FinalNumber("7 steps.\nAnswer: 18 dollars for 3 eggs", ""), ElementsAre("18"));
  EXPECT_THAT(FinalNumber("**Answer**: **18** (3 eggs)", ""), ElementsAre("18"));
  EXPECT_THAT(FinalNumber("The answer is 5 + 3 = 8", ""), ElementsAre("8"));  // no colon, no mark
  EXPECT_THAT(FinalNumber("it is 12\nAnswer: twelve", ""), ElementsAre("12"));
  EXPECT_THAT(FinalNumber("it is 12\n####", ""), ElementsAre("12"));
  EXPECT_THAT(FinalNumber("#### Step 3: add\n5 + 3 = 8", ""), ElementsAre("8"));  // a heading
  EXPECT_THAT(FinalNumber("#### **$-8**\n#### Note\n9", ""), ElementsAre("-8"));
  EXPECT_THAT(FinalNumber("\\boxed{x} = 3, then 4", ""), ElementsAre("4"));
  EXPECT_THAT(FinalNumber("\\boxed{5", ""), ElementsAre("5"));
  EXPECT_THAT(FinalNumber("Antwort: 4 Eier von 9", "de"), ElementsAre("4"));
  EXPECT_THAT(FinalNumber("R\u00e9ponse : 4 sur 9", "fr"), ElementsAre("4"));
  EXPECT_THAT(FinalNumber("\u7b54\u6848\uff1a4\uff0c\u51719", "zh"), ElementsAre("4"));
}

TEST(NumberMatchTest, DecimalCommasAreReadByTheCustomsOfTheLanguage) {
  for (const char* language : {"de", "es", "fr", "ru"}) {
    EXPECT_THAT(FinalNumber("3,5", language), ElementsAre("3.5")) << language;
    EXPECT_THAT(FinalNumber("3.5", language), ElementsAre("3.5"));
    EXPECT_THAT(FinalNumber("80.000 \u20ac", language), UnorderedElementsAre("80000", "80"));
    EXPECT_THAT(FinalNumber("2,125", language), UnorderedElementsAre("2125", "2.125"));
    EXPECT_THAT(FinalNumber("1.450.000", language), ElementsAre("1450000"));
    EXPECT_THAT(FinalNumber("1.234,50", language), ElementsAre("1234.5"));
    EXPECT_THAT(FinalNumber("1,234.50", language), ElementsAre("1234.5"));
    EXPECT_THAT(FinalNumber("80 000", language), ElementsAre("80000"));
    EXPECT_THAT(FinalNumber("80\u202f000\u00a0$", language), ElementsAre("80000"));
    EXPECT_THAT(FinalNumber("2020 100", language), ElementsAre("100"));
  }
  EXPECT_THAT(FinalNumber("80 000", "en"), ElementsAre("0"));
  EXPECT_THAT(FinalNumber("2.125", "en"), ElementsAre("2.125"));
}

TEST(NumberMatchTest, DigitsOfOtherScripts) {
  EXPECT_THAT(FinalNumber("\uff11\uff0c\uff12\uff13\uff14\uff0e\uff15 \u30c9\u30eb", "ja"), ElementsAre("1234.5"));
  EXPECT_THAT(FinalNumber("\u09e7\u09ee", "bn"), ElementsAre("18"));
  EXPECT_THAT(FinalNumber("\u0e51\u0e58 \u0e1a\u0e32\u0e17", "th"), ElementsAre("18"));
  EXPECT_THAT(FinalNumber("\u0c67\u0c6e", "te"), ElementsAre("18"));
  EXPECT_THAT(FinalNumber("\u0661\u0668\u066b\u0665", ""), ElementsAre("18.5"));
}

TEST(NumberMatchTest, MultipliersOfJapaneseAndChinese) {
  EXPECT_THAT(FinalNumber("7\u4e07\u30c9\u30eb", "ja"), ElementsAre("70000"));
  EXPECT_THAT(FinalNumber("1.5\u4e07", "zh"), ElementsAre("15000"));
  EXPECT_THAT(FinalNumber("3\u4e075000", "zh"), ElementsAre("35000"));
  EXPECT_THAT(FinalNumber("3\u4e075\u5343", "ja"), ElementsAre("35000"));
  EXPECT_THAT(FinalNumber("1\u51042,000\u4e07", "ja"), ElementsAre("120000000"));
  EXPECT_THAT(FinalNumber("2\u5104", "zh"), ElementsAre("200000000"));
  EXPECT_THAT(FinalNumber("3\u4e0712345", "zh"), ElementsAre("12345"));  // as large as the multiplier: another number
  EXPECT_THAT(FinalNumber("7\u4e07", "en"), ElementsAre("7"));
}

}  // namespace
}  // namespace pith
