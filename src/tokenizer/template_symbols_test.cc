#include "tokenizer/template_symbols.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tokenizer/template_parser.h"
#include "tokenizer/template_test_render.h"

namespace pith::jinja {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Names(const ParsedTemplate& parsed, const std::vector<Symbol>& symbols) {
  std::vector<std::string> names;
  for (const Symbol symbol : symbols) names.push_back(parsed.symbols[static_cast<size_t>(symbol)]);
  return names;
}

TEST(TemplateSymbols, FirstUseDecides) {
  const auto unset = [](absl::string_view source) {
    const absl::StatusOr<ParsedTemplate> parsed = ParseTemplate(source, {});
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return Names(*parsed, parsed->unset);
  };
  EXPECT_THAT(unset("{% set a = 1 %}{{ a }}"), ElementsAre("a"));
  EXPECT_THAT(unset("{{ a }}{% set a = 1 %}"), IsEmpty());
  EXPECT_THAT(unset("{% set a = a %}"), IsEmpty());
  EXPECT_THAT(unset("{% if b %}{% set a = 1 %}{% endif %}{% set a = 2 %}"), IsEmpty());
  EXPECT_THAT(unset("{% if a %}{% endif %}{% set a = 2 %}{% set b, (c, a) = d %}"), ElementsAre("b", "c"));
  EXPECT_THAT(unset("{% for x in y %}{{ a }}{% endfor %}{% set a = 1 %}"), ElementsAre("a"));
  EXPECT_THAT(unset("{% macro a() %}{% endmacro %}{% set ns.b = 1 %}{% set c %}{% endset %}"), ElementsAre("a", "c"));
}

TEST(TemplateSymbols, InnerScopesSeeTheOuterOnes) {
  const absl::StatusOr<ParsedTemplate> parsed = ParseTemplate(
      "{% set outer = 1 %}{% for x in y %}{% set outer = 2 %}{% set x = 3 %}{% set own = 4 %}{% else %}{% set other = 5 %}{% endfor %}"
      "{% macro f(p, q=r) %}{% set p = 1 %}{% set r = 2 %}{% set s = 3 %}{% endmacro %}{{ later }}",
      {});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const auto& loop = std::get<ForStatement>(parsed->body[1].node);
  EXPECT_THAT(Names(*parsed, loop.body_unset), ElementsAre("own"));
  EXPECT_THAT(Names(*parsed, loop.otherwise_unset), ElementsAre("other"));
  EXPECT_THAT(Names(*parsed, std::get<MacroStatement>(parsed->body[2].node).macro->unset), ElementsAre("s"));
}

// Expected values: jinja2 3.1. `n` is an input that holds 5.
TEST(TemplateSymbols, WhatItShows) {
  EXPECT_EQ(Render("{% for i in [1] %}[{{ n }}]{% endfor %}{% set n = 7 %}{{ n }}"), "[]7");
  EXPECT_EQ(Render("{{ n }}{% for i in [1] %}[{{ n }}]{% endfor %}{% set n = 7 %}{{ n }}"), "5[5]7");
  EXPECT_EQ(Render("{% filter upper %}{{ n is defined }}{% endfilter %}{% set n = 7 %}"), "FALSE");
  EXPECT_EQ(Render("{% macro f() %}{{ n }}{% endmacro %}{{ f() }}{% set n = 7 %}{{ f() }}"), "7");
  EXPECT_EQ(Render("{% for i in [1, 2] %}{% for j in [1] %}{{ n }}{% endfor %}{% set n = i %}{{ n }}{% endfor %}"), "12");
  EXPECT_EQ(Render("{% if false %}{% set n = 1 %}{% endif %}{% for i in [1] %}{{ n }}{% endfor %}"), "5");
}

}  // namespace
}  // namespace pith::jinja
