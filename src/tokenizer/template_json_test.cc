#include "tokenizer/template_json.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tokenizer/template_test_render.h"

namespace pith::jinja {
namespace {

using ::testing::HasSubstr;

// Expected values: json.dumps of Python 3.11.
TEST(TemplateJson, Values) {
  EXPECT_EQ(Evaluate("[none, true, 1, -0.0, 1e16, 'a', (1, 2), {}, [], {'k': []}] | tojson"),
            "[null, true, 1, -0.0, 1e+16, \"a\", [1, 2], {}, [], {\"k\": []}]");
  EXPECT_EQ(Evaluate("{1: 1, none: 2, true: 3, 1.5: 4, 'a': 5} | tojson"), "{\"1\": 3, \"null\": 2, \"1.5\": 4, \"a\": 5}");
  EXPECT_EQ(Evaluate("[1e400, -1e400] | tojson"), "[Infinity, -Infinity]");
  EXPECT_EQ(Evaluate("'<' | e | tojson"), "\"&lt;\"");
}

TEST(TemplateJson, Strings) {
  EXPECT_EQ(Evaluate(R"('"\\/\b\f\n\r\t\x01\x7fé€😀<>&' | tojson)"), "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\x7Fé€😀<>&\"");
  EXPECT_EQ(Evaluate(R"('\x7fé€😀' | tojson(ensure_ascii=true))"), "\"\\u007f\\u00e9\\u20ac\\ud83d\\ude00\"");
}

TEST(TemplateJson, Layout) {
  EXPECT_EQ(Evaluate("{'a': [1, {}], 'b': {'c': 2}} | tojson(indent=2)"),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": {\n    \"c\": 2\n  }\n}");
  EXPECT_EQ(Evaluate("[1, [2]] | tojson(indent=0)"), "[\n1,\n[\n2\n]\n]");
  EXPECT_EQ(Evaluate("[1] | tojson(indent='--')"), "[\n--1\n]");
  EXPECT_EQ(Evaluate("[1, {'a': 2}] | tojson(separators=(',', ':'))"), "[1,{\"a\":2}]");
  EXPECT_EQ(Evaluate("[1, 2] | tojson(indent=1, separators=['; ', '='])"), "[\n 1; \n 2\n]");
  EXPECT_EQ(Evaluate("d | tojson(sort_keys=true)"), "{\"C\": 3, \"a\": 1, \"b\": 2}");
  EXPECT_EQ(Evaluate("d | tojson(false, none, none, true)"), "{\"C\": 3, \"a\": 1, \"b\": 2}");
}

TEST(TemplateJson, Errors) {
  EXPECT_THAT(Evaluate("missing | tojson"), HasSubstr("tojson: expected a value with a JSON form, found Undefined"));
  EXPECT_THAT(Evaluate("[range(2)] | tojson"), HasSubstr("found range"));
  EXPECT_THAT(Evaluate("{(1, 2): 1} | tojson"), HasSubstr("expected keys that are str"));
  EXPECT_THAT(Evaluate("{'a': 1, 2: 1} | tojson(sort_keys=true)"), HasSubstr("values with an order"));
}

TEST(TemplateJson, TextOfTheUserMakesAllOfItTheUsers) {
  EXPECT_EQ(RenderOrigins("{{ {'a': [1, 'b']} | tojson }}{{ messages[0] | tojson }}{{ {'a': s[:2]} | tojson }}{{ l | tojson }}"),
            "{\"a\": [1, \"b\"]}[{\"role\": \"system\", \"content\": \"Be brief.\"}{\"a\": \"St\"}[3, 1, 2]]");
}

}  // namespace
}  // namespace pith::jinja
