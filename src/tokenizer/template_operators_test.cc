#include "tokenizer/template_operators.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tokenizer/template_test_render.h"

namespace pith::jinja {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Expected values: jinja2 3.1 on Python 3.11.
TEST(TemplateOperators, Numbers) {
  constexpr Example kExamples[] = {
      {"1 + 2 * 3 - 4 / 2", "5.0"},
      {"7 // 2 ~ ' ' ~ -7 // 2 ~ ' ' ~ -7 % 3 ~ ' ' ~ 7 % -3", "3 -4 2 -2"},
      {"7.5 // 2 ~ ' ' ~ -5.5 % 2 ~ ' ' ~ 1 / 4", "3.0 0.5 0.25"},
      {"2 ** 3 ** 2 ~ ' ' ~ 2 ** -1 ~ ' ' ~ 2 ** 0.5", "64 0.5 1.4142135623730951"},
      {"-2 ** 2 ~ ' ' ~ - 3 ~ ' ' ~ + 4 ~ ' ' ~ -true", "4 -3 4 -1"},
      {"(true + true) ~ ' ' ~ true / 2 ~ ' ' ~ 3 * false", "2 0.5 0"},
      {"9223372036854775807 - 1", "9223372036854775806"},
      {"1e308 * 10", "inf"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_EQ(Evaluate(expression), expected) << expression;
}

TEST(TemplateOperators, Sequences) {
  constexpr Example kExamples[] = {
      {"'a' + 'b' ~ 'x' * 3 ~ 2 * 'y' ~ 'z' * -1 ~ 'w' * true", "abxxxyyw"},
      {"([1] + [2]) ~ [1, 2] * 2 ~ 0 * [1] ~ ((1,) + (2,)) ~ (1,) * 2", "[1, 2][1, 2, 1, 2][](1, 2)(1, 1)"},
      {"'%s-%d' % ('a', 3) ~ '%s' % 'b'", "a-3b"},
      {"'a' ~ 1 ~ none ~ true ~ 1.5 ~ [1, 'x'] ~ missing", "a1NoneTrue1.5[1, 'x']"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_EQ(Evaluate(expression), expected) << expression;
}

TEST(TemplateOperators, Markup) {
  constexpr Example kExamples[] = {
      {"(('<'|safe) + '<') ~ ('<' + ('<'|safe))", "<&lt;&lt;<"},
      {"((('<'|safe) * 2) + '>') ~ ('%s'|safe) % '<'", "<<&gt;&lt;"},
      {"('<'|e) ~ '<' ~ ['<'|e]", "&lt;<[Markup('&lt;')]"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_EQ(Evaluate(expression), expected) << expression;
}

TEST(TemplateOperators, Errors) {
  EXPECT_THAT(Evaluate("9223372036854775807 + 1"), HasSubstr("integers of 64 bits"));
  EXPECT_THAT(Evaluate("-(-9223372036854775807 - 1)"), HasSubstr("integers of 64 bits"));
  EXPECT_THAT(Evaluate("'5' + 5"), HasSubstr("operator + does not take str and int"));
  EXPECT_THAT(Evaluate("missing + 1"), HasSubstr("'missing' is undefined"));
  EXPECT_THAT(Evaluate("1 - d.nope"), HasSubstr("a dict has no attribute 'nope'"));
  for (const char* expression : {"1 / 0", "1 // 0", "1 % 0", "1.0 / 0", "1.5 // 0", "1.5 % 0", "0 ** -1", "(-8) ** 0.5", "[1] + (1,)",
                                 "none + 1", "-'a'", "+[]", "-missing", "{} * 2", "'a' * 1.5", "'a' - 'b'"}) {
    EXPECT_THAT(Evaluate(expression), StartsWith("ERROR: chat template: line 1: ")) << expression;
  }
}

}  // namespace
}  // namespace pith::jinja
