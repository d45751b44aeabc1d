#include "compression/yaml_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pith {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json JsonOf(absl::string_view text) {
  const auto node = ParseYaml(text);
  EXPECT_TRUE(node.ok()) << node.status();
  return node.ok() ? ToJson(*node) : Json();
}

std::string ErrorOf(absl::string_view text, const YamlLimits& limits = {}) {
  const auto node = ParseYaml(text, limits);
  EXPECT_TRUE(absl::IsDataLoss(node.status())) << text;
  return std::string(node.status().message());
}

TEST(YamlNodeTest, ScalarsMeanWhatPythonReads) {
  EXPECT_EQ(JsonOf("[1, -7, +3, 0.5, 1e-3, .5, 5., -2.5E+3]"), Json::parse("[1, -7, 3, 0.5, 0.001, 0.5, 5.0, -2500.0]"));
  EXPECT_EQ(JsonOf("[true, False, YES, no, On, off]"), Json::parse("[true, false, true, false, true, false]"));
  EXPECT_EQ(JsonOf("[null, ~, '', NULL]"), Json::parse("[null, null, \"\", null]"));
  EXPECT_EQ(JsonOf("{a: , b: 'true', c: \"1\", d: text}"), Json::parse(R"({"a": null, "b": "true", "c": "1", "d": "text"})"));
  EXPECT_EQ(JsonOf("[010, 0x10, 1_000, inf, nan, .inf, e, '-', 1-2, 00.5]"),
            Json::parse(R"(["010", "0x10", "1_000", "inf", "nan", ".inf", "e", "-", "1-2", "00.5"])"));
  EXPECT_EQ(JsonOf("99999999999999999999"), Json(1e20));
  EXPECT_EQ(JsonOf("1e999"), Json("1e999"));
  EXPECT_EQ(JsonOf(""), Json());
  EXPECT_EQ(JsonOf("# only a comment\n"), Json());
  EXPECT_EQ(JsonOf(R"({"a": [1, {"b": null}], "c": "re:.*\\d"})"), Json::parse(R"({"a": [1, {"b": null}], "c": "re:.*\\d"})"));
}

TEST(YamlNodeTest, LinesAndKeysInTheOrderOfTheFile) {
  const auto node = ParseYaml("# comment\nz:\n  - 1\n  -\n    b: 2\na: x\n");
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_THAT(node->keys, ElementsAre("z", "a"));
  EXPECT_THAT(node->key_lines, ElementsAre(2, 6));
  EXPECT_EQ(node->items[0].line, 3);
  EXPECT_EQ(node->items[0].items[1].key_lines[0], 5);
  EXPECT_EQ(node->items[1].line, 6);
  EXPECT_EQ(DescribeYaml(node->items[0]), "a list");
  EXPECT_EQ(DescribeYaml(node->items[1]), "\"x\"");
  EXPECT_EQ(DescribeYaml(*node), "a mapping");
  EXPECT_EQ(DescribeYaml(node->items[0].items[0]), "1");
}

TEST(YamlNodeTest, AliasesAreCopies) {
  EXPECT_EQ(JsonOf("a: &x {n: 1}\nb: *x\nc: [*x, *x]\n"), Json::parse(R"({"a": {"n": 1}, "b": {"n": 1}, "c": [{"n": 1}, {"n": 1}]})"));
  EXPECT_EQ(ParseYaml("a: &x {n: 1}\n\nb: *x\n")->items[1].line, 3);
  EXPECT_THAT(ErrorOf("a: &x [*x]"), HasSubstr("inside its own anchor"));
  EXPECT_THAT(ErrorOf("a: *x"), HasSubstr("line 1: expected YAML"));
}

TEST(YamlNodeTest, RefusesWhatIsAmbiguous) {
  EXPECT_EQ(ErrorOf("a: 1\nb: 2\na: 3\n"), "line 3: expected every key once, found \"a\" again");
  EXPECT_THAT(ErrorOf("a: {b: 1, b: 1}"), HasSubstr("\"b\" again"));
  EXPECT_THAT(ErrorOf("a: 1\n---\nb: 2\n"), HasSubstr("found a second"));
  EXPECT_EQ(ErrorOf("a: !GPTQModifier {}"), "line 1: expected no tag, found !!GPTQModifier");
  EXPECT_THAT(ErrorOf("a: !!python/object:os.system [x]"), HasSubstr("expected no tag"));
  EXPECT_EQ(ErrorOf("a: &x {b: 1}\nc:\n  <<: *x\n"), "line 3: expected no merge key, found <<");
  EXPECT_THAT(ErrorOf("? [a]\n: 1\n"), HasSubstr("expected a name as key, found a list"));
  EXPECT_THAT(ErrorOf("~: 1\n"), HasSubstr("expected a name as key, found null"));
  EXPECT_THAT(ErrorOf("a: [1, 2\nb: 3"), HasSubstr("expected YAML"));
  EXPECT_THAT(ErrorOf("a: 1\n b: 2\n"), HasSubstr("line 2"));
}

TEST(YamlNodeTest, BoundsSizeDepthAndExpansion) {
  EXPECT_THAT(ErrorOf(std::string(100, ' '), {.max_bytes = 99}), HasSubstr("at most 99 bytes"));
  const std::string at_limit = std::string(32, '[') + std::string(32, ']');
  EXPECT_TRUE(ParseYaml(at_limit).ok());
  EXPECT_THAT(ErrorOf("[" + at_limit + "]"), HasSubstr("at most 32 levels"));
  EXPECT_TRUE(absl::IsDataLoss(ParseYaml(std::string(100'000, '[')).status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseYaml(std::string(100'000, '{')).status()));
  EXPECT_TRUE(ParseYaml("[1, 2, 3]", {.max_nodes = 4}).ok());
  EXPECT_THAT(ErrorOf("[1, 2, 3]", {.max_nodes = 3}), HasSubstr("at most 3 values"));
  // Each line holds ten of the line before: 10^9 values if they were copied.
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    bomb += absl::StrCat("a", i, ": &a", i, " [");
    for (int j = 0; j < 10; ++j) absl::StrAppend(&bomb, j > 0 ? ", " : "", "*a", i - 1);
    bomb += "]\n";
  }
  EXPECT_THAT(ErrorOf(bomb), HasSubstr("at most 20000 values"));
  // Levels add up through aliases as well.
  std::string deep = "- &b0 [x]\n";
  for (int i = 1; i < 40; ++i) absl::StrAppend(&deep, "- &b", i, " [*b", i - 1, "]\n");
  EXPECT_THAT(ErrorOf(deep), HasSubstr("at most 32 levels"));
}

}  // namespace
}  // namespace pith
