#include "quantization/module_pattern.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using Match = ModulePattern::Match;
using ::testing::HasSubstr;

Match MatchOf(absl::string_view text, absl::string_view module_name, absl::string_view class_name = "Linear") {
  const absl::StatusOr<ModulePattern> pattern = ModulePattern::Parse(text);
  EXPECT_TRUE(pattern.ok()) << pattern.status();
  const absl::StatusOr<Match> match = pattern->Matches(module_name, class_name);
  EXPECT_TRUE(match.ok()) << match.status();
  return *match;
}

TEST(ModulePattern, NamesAndClassesMatchExactly) {
  EXPECT_EQ(MatchOf("lm_head", "lm_head"), Match::kName);
  EXPECT_EQ(MatchOf("lm_head", "model.lm_head"), Match::kNone);
  EXPECT_EQ(MatchOf("Linear", "model.layers.0.mlp.up_proj"), Match::kClass);
  EXPECT_EQ(MatchOf("Linear", "model.embed_tokens", "Embedding"), Match::kNone);
  EXPECT_EQ(MatchOf("Linear", "Linear"), Match::kName);
  EXPECT_EQ(MatchOf("model.layers.0.mlp.up_proj", "modelXlayers.0.mlp.up_proj"), Match::kNone);
}

TEST(ModulePattern, ExpressionsMatchFromTheStart) {
  EXPECT_EQ(MatchOf("re:.*down_proj$", "model.layers.0.mlp.down_proj"), Match::kRegex);
  EXPECT_EQ(MatchOf("re:down_proj", "model.layers.0.mlp.down_proj"), Match::kNone);
  EXPECT_EQ(MatchOf("re:model", "model.layers.0.mlp.down_proj"), Match::kRegex);
  EXPECT_EQ(MatchOf(R"(re:.*layers\.(0|27)\..*)", "model.layers.27.mlp.up_proj"), Match::kRegex);
  EXPECT_EQ(MatchOf(R"(re:.*layers\.(0|27)\..*)", "model.layers.2.mlp.up_proj"), Match::kNone);
  EXPECT_EQ(MatchOf("re:(?!.*lm_head).*", "lm_head"), Match::kNone);
  EXPECT_EQ(MatchOf("re:Linear", "model.norm", "Linear"), Match::kNone);  // never a class
}

TEST(ModulePattern, LiteralIsNeverAnExpression) {
  const ModulePattern pattern = ModulePattern::Literal("re:.*");
  EXPECT_EQ(*pattern.Matches("anything", "Linear"), Match::kNone);
  EXPECT_EQ(*pattern.Matches("re:.*", "Linear"), Match::kName);
  EXPECT_EQ(pattern.text(), "re:.*");
}

TEST(ModulePattern, RefusesBadExpressions) {
  const absl::Status status = ModulePattern::Parse("re:(abc").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(),
              HasSubstr("module pattern \"re:(abc\": expected a regular expression, found \"(abc\": missing closing parenthesis"));
  EXPECT_THAT(status.message(), HasSubstr("at offset 4"));
  EXPECT_FALSE(ModulePattern::Parse("").ok());
  EXPECT_FALSE(ModulePattern::Parse(std::string(5000, 'a')).ok());
  EXPECT_FALSE(ModulePattern::Parse(absl::StrCat("re:", std::string(200, '('), std::string(200, ')'))).ok());
}

TEST(ModulePattern, StopsHostileExpressions) {
  const absl::StatusOr<ModulePattern> pattern = ModulePattern::Parse("re:(a+)+\\1$");
  ASSERT_TRUE(pattern.ok());
  const absl::StatusOr<Match> match = pattern->Matches(absl::StrCat(std::string(60, 'a'), "b"), "Linear");
  EXPECT_EQ(match.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(match.status().message(), HasSubstr("limit"));
}

TEST(ModulePattern, CopiesShareTheExpression) {
  ModulePattern copy = ModulePattern::Literal("x");
  {
    const ModulePattern original = *ModulePattern::Parse("re:a.c");
    copy = original;
  }
  EXPECT_EQ(*copy.Matches("abc", "Linear"), Match::kRegex);
  EXPECT_EQ(copy.text(), "re:a.c");
}

}  // namespace
}  // namespace pith
