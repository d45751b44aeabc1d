#include "compression/recipe_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pith {
namespace {

using ::testing::ElementsAre;

// The values of a mapping `v: ...`, one after the other.
class RecipeValueTest : public testing::Test {
 protected:
  RecipeValue Value(const std::string& yaml) {
    auto node = ParseYaml("\nv: " + yaml);
    EXPECT_TRUE(node.ok()) << node.status();
    root_ = *std::move(node);
    return RecipeValue{root_, 1, "root"}.Member(0);
  }
  YamlNode root_;
};

TEST_F(RecipeValueTest, KnowsItsPlace) {
  EXPECT_EQ(Value("1").Where(), "line 2: root.v");
  EXPECT_EQ(Value("[a,\n b]").Item(1).Where(), "line 3: root.v[1]");
  EXPECT_EQ(Value("{a\x01: 1}").Where(), "line 2: root.v");
  EXPECT_EQ(FindMember(Value("{a: , b: 1}"), "a"), std::nullopt);
  EXPECT_EQ(FindMember(Value("{a: , b: 1}"), "b")->path, "root.v.b");
  EXPECT_EQ(FindMember(Value("text"), "b"), std::nullopt);
}

TEST_F(RecipeValueTest, ReadsTypesAndRefusesOthers) {
  EXPECT_EQ(*ReadText(Value("word")), "word");
  EXPECT_EQ(*ReadText(Value("'7'")), "7");
  for (const char* bad : {"7", "''", "true", "[a]", ""}) EXPECT_TRUE(absl::IsDataLoss(ReadText(Value(bad)).status())) << bad;
  EXPECT_TRUE(*ReadFlag(Value("yes")));
  EXPECT_FALSE(*ReadFlag(Value("False")));
  EXPECT_EQ(ReadFlag(Value("'true'")).status().message(), "line 2: root.v: expected true or false, found \"true\"");
  EXPECT_EQ(*ReadCount(Value("9"), 9), 9);
  for (const char* bad : {"0", "10", "-1", "1.0", "99999999999999999999", "x"}) {
    EXPECT_TRUE(absl::IsDataLoss(ReadCount(Value(bad), 9).status())) << bad;
  }
  EXPECT_EQ(*ReadNumber(Value("1e-2"), 0, 1), 0.01);
  EXPECT_EQ(*ReadNumber(Value("1"), 0, 1), 1);
  EXPECT_EQ(ReadNumber(Value("1.5"), 0, 1).status().message(), "line 2: root.v: expected a number from 0 to 1, found 1.5");
  EXPECT_TRUE(absl::IsDataLoss(ReadNumber(Value("'0.5'"), 0, 1).status()));
  EXPECT_THAT(*ReadPatterns(Value("Linear")), ElementsAre("Linear"));
  EXPECT_THAT(*ReadPatterns(Value("[lm_head, 're:.*q_proj$']")), ElementsAre("lm_head", "re:.*q_proj$"));
  EXPECT_THAT(*ReadPatterns(Value("[]")), ElementsAre());
  EXPECT_EQ(ReadPatterns(Value("[a, 3]")).status().message(), "line 2: root.v[1]: expected a name, found 3");
  EXPECT_THAT(ReadPatterns(Value("['re:(']")).status().message(), testing::HasSubstr("line 2: root.v[0]: module pattern \"re:(\""));
}

TEST_F(RecipeValueTest, UnknownKeysNameTheNearest) {
  EXPECT_TRUE(CheckKeys(Value("{a: 1}"), {"a", "b"}).ok());
  EXPECT_EQ(CheckKeys(Value("\n  ignor: 1"), {"targets", "ignore"}).message(), "line 3: root.v.ignor: unknown key, nearest is \"ignore\"");
  EXPECT_EQ(CheckKeys(Value("3"), {"a"}).message(), "line 2: root.v: expected a mapping, found 3");
}

}  // namespace
}  // namespace pith
