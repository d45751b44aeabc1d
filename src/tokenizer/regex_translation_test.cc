#include "tokenizer/regex_translation.h"

#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(RegexTranslationTest, KeepsWhatMeansTheSame) {
  for (const char* pattern : {"", "abc|d", R"((?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})", R"((?<=a)b(?!c)(?>d)e*?f++)", R"(\\\[\.\-)",
                              R"([\]\[a-z])", R"(\x{4E00})", "[一-龥]", "[[:alpha:]x]", "^a$", R"(a{2,3})"}) {
    const auto translated = TranslateOnigurumaPattern(pattern);
    ASSERT_TRUE(translated.ok()) << translated.status();
    EXPECT_EQ(*translated, pattern);
  }
}

TEST(RegexTranslationTest, TranslatesSets) {
  EXPECT_EQ(*TranslateOnigurumaPattern(R"(\s+(?!\S))"), R"(\p{White_Space}+(?!\P{White_Space}))");
  EXPECT_EQ(*TranslateOnigurumaPattern(R"([^\s\d])"), R"([^\p{White_Space}\p{Nd}])");
  EXPECT_EQ(*TranslateOnigurumaPattern(R"(\w[\w-])"), R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}][\p{Alphabetic}\p{M}\p{Nd}\p{Pc}-])");
  EXPECT_EQ(*TranslateOnigurumaPattern(R"(\h[\h])"), "[0-9a-fA-F][0-9a-fA-F]");
  EXPECT_EQ(*TranslateOnigurumaPattern(R"(\u4e00\x41)"), R"(\x{4e00}\x{41})");
  EXPECT_EQ(*TranslateOnigurumaPattern(R"( ?[^(\s|[.,!?]x)]+)"), R"( ?[^(\p{White_Space}|.,!?x)]+)");  // a nested set is a union
}

TEST(RegexTranslationTest, RefusesWhatMeansSomethingElse) {
  for (const char* pattern : {"[a&&b]", "[a[^b]]", R"([\W])", R"([\H])", R"(\R)", R"(\X)", R"(a\Kb)", R"(\G)", R"((a)\1)", R"(\k<n>)",
                              "(?~ab)", "a{,3}", "a{1,2}+", R"(\pL)", "[]a]", R"(\b)", R"(\yx)"}) {
    EXPECT_EQ(TranslateOnigurumaPattern(pattern).status().code(), absl::StatusCode::kUnimplemented) << pattern;
  }
}

TEST(RegexTranslationTest, RefusesWhatDoesNotEnd) {
  for (const char* pattern : {"a\\", "[ab", "[a[b]", R"(\p{L)", R"(\u12)", R"(\xg)", "[[:alpha", "["}) {
    EXPECT_EQ(TranslateOnigurumaPattern(pattern).status().code(), absl::StatusCode::kDataLoss) << pattern;
  }
}

}  // namespace
}  // namespace pith
