#include "tokenizer/template_parser.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tokenizer/template_test_render.h"

namespace pith::jinja {
namespace {

using ::testing::HasSubstr;

std::string ParseError(absl::string_view source, const ChatTemplateLimits& limits = {}) {
  const absl::StatusOr<ParsedTemplate> parsed = ParseTemplate(source, limits);
  if (parsed.ok()) return "";
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(parsed.status().message());
}

TEST(TemplateParser, StatementsBecomeNodes) {
  const absl::StatusOr<ParsedTemplate> parsed = ParseTemplate(
      "a{{ b }}{% if c %}{% elif d %}{% else %}{% endif %}{% for e in f if g %}{% else %}{% endfor %}{% set h = i %}{% set j %}{% endset %}"
      "{% filter upper %}{% endfilter %}{% macro k(l, m=1) %}{{ caller }}{{ kwargs }}{% endmacro %}{% call(n) k() %}{% endcall %}"
      "{% with o=p %}{% endwith %}{% generation %}{% endgeneration %}{% print q, r %}",
      {});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  std::vector<size_t> kinds;
  for (const Statement& statement : parsed->body) kinds.push_back(statement.node.index());
  EXPECT_THAT(kinds, ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 0));
  const auto& loop = std::get<ForStatement>(parsed->body[2].node);
  EXPECT_NE(loop.condition, nullptr);
  EXPECT_EQ(std::get<IfStatement>(parsed->body[1].node).branches.size(), 2u);
  const MacroDefinition& macro = *std::get<MacroStatement>(parsed->body[6].node).macro;
  EXPECT_EQ(macro.name, "k");
  EXPECT_EQ(macro.parameters.size(), 2u);
  EXPECT_EQ(macro.defaults.size(), 1u);
  EXPECT_TRUE(macro.uses_caller && macro.uses_kwargs && !macro.uses_varargs && !macro.explicit_caller);
}

TEST(TemplateParser, SyntaxErrorsNameTheLine) {
  EXPECT_THAT(ParseError("a\n{% if x %}"), HasSubstr("line 2: expected 'elif' or 'else' or 'endif', found the end of the template"));
  EXPECT_THAT(ParseError("{% endif %}"), HasSubstr("unknown statement 'endif'"));
  EXPECT_THAT(ParseError("{% for x in y %}{% endif %}"), HasSubstr("unknown statement 'endif' (expected 'endfor' or 'else')"));
  EXPECT_THAT(ParseError("{{ x"), HasSubstr("expected '}}', found the end of the template"));
  EXPECT_THAT(ParseError("{{ x %}"), HasSubstr("expected"));
  EXPECT_THAT(ParseError("{% if x y %}{% endif %}"), HasSubstr("expected '%}', found name 'y'"));
  EXPECT_THAT(ParseError("{% %}"), HasSubstr("expected the name of a statement"));
  EXPECT_THAT(ParseError("{% for x y %}"), HasSubstr("expected 'in', found name 'y'"));
  EXPECT_THAT(ParseError("{% set 1 = 2 %}"), HasSubstr("cannot assign to this expression"));
  EXPECT_THAT(ParseError("{% set none = 2 %}"), HasSubstr("cannot assign"));
  EXPECT_THAT(ParseError("{% macro true() %}{% endmacro %}"), HasSubstr("cannot assign to 'true'"));
  EXPECT_THAT(ParseError("{% macro f(a=1, b) %}{% endmacro %}"), HasSubstr("parameter without a default"));
  EXPECT_THAT(ParseError("{% macro f(a, a) %}{% endmacro %}"), HasSubstr("names one parameter twice"));
  EXPECT_THAT(ParseError("{% macro f(caller) %}{{ caller() }}{% endmacro %}"), HasSubstr("'caller' needs a default"));
  EXPECT_THAT(ParseError("{% call x %}{% endcall %}"), HasSubstr("expected a call"));
  EXPECT_THAT(ParseError("{% call f(caller=1) %}{% endcall %}"), HasSubstr("'caller' is given twice"));
  EXPECT_THAT(ParseError("{% with a %}{% endwith %}"), HasSubstr("expected '='"));
  EXPECT_THAT(ParseError("\xFF"), HasSubstr("expected UTF-8"));
  EXPECT_THAT(ParseError(std::string(kMaxTemplateBytes + 1, 'a')), HasSubstr("expected at most 4194304 bytes"));
}

TEST(TemplateParser, StatementsThatReachOtherTemplatesAreRefused) {
  for (const char* statement : {"include 'x'", "import 'x' as y", "from 'x' import y", "extends 'x'", "block x", "autoescape true"}) {
    EXPECT_THAT(ParseError(absl::StrCat("{% if false %}{% ", statement, " %}{% endif %}")), HasSubstr("is not supported")) << statement;
  }
  EXPECT_THAT(ParseError("{% for x in y recursive %}{% endfor %}"), HasSubstr("recursive loops are not supported"));
}

TEST(TemplateParser, LoopControlsBelongIntoLoops) {
  for (const char* bad : {"{% break %}", "{% for x in y %}{% macro f() %}{% break %}{% endmacro %}{% endfor %}",
                          "{% for x in y %}{% call f() %}{% continue %}{% endcall %}{% endfor %}",
                          "{% for x in y %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
                          "{% for x in y %}{% else %}{% break %}{% endfor %}"}) {
    EXPECT_THAT(ParseError(bad), HasSubstr("outside a loop")) << bad;
  }
  EXPECT_EQ(ParseError("{% for x in y %}{% if x %}{% filter upper %}{% break %}{% endfilter %}{% endif %}{% endfor %}"), "");
  EXPECT_EQ(ParseError("{% for x in y %}{% for z in y %}{% else %}{% break %}{% endfor %}{% endfor %}"), "");
}

TEST(TemplateParser, LoopCannotBeAssignedInALoop) {
  EXPECT_THAT(ParseError("{% for loop in x %}{% endfor %}"), HasSubstr("cannot assign to 'loop'"));
  EXPECT_THAT(ParseError("{% for x in y %}{% if 1 %}{% set loop = 1 %}{% endif %}{% endfor %}"), HasSubstr("cannot assign to 'loop'"));
  EXPECT_EQ(ParseError("{% set loop = 1 %}{% for x in y %}{% endfor %}"), "");
}

// As in jinja2, what an if may skip may name filters that do not exist, unless a scope lies between.
TEST(TemplateParser, UnknownFiltersAndTests) {
  for (const char* bad :
       {"{{ x|nope }}", "{{ x is nope }}", "{% filter nope %}{% endfilter %}", "{% for a in b %}{{ x|nope }}{% endfor %}",
        "{% if 0 %}{% for a in b %}{{ x|nope }}{% endfor %}{% endif %}", "{% if 0 %}{% set x %}{{ x|nope }}{% endset %}{% endif %}",
        "{% if 0 %}{% macro f(a=b|nope) %}{% endmacro %}{% endif %}", "{% if 0 %}{% with %}{{ x is nope }}{% endwith %}{% endif %}"}) {
    EXPECT_THAT(ParseError(bad), HasSubstr("named 'nope'")) << bad;
  }
  for (const char* good :
       {"{% if x|nope %}{{ x is nope }}{% endif %}", "{{ x|nope if y is nope else z|nope }}",
        "{% if 0 %}{% for a in b|nope %}{% endfor %}{% endif %}", "{% if 0 %}{% call f(x|nope) %}{% endcall %}{% endif %}"}) {
    EXPECT_EQ(ParseError(good), "") << good;
  }
}

TEST(TemplateParser, NestingIsLimited) {
  const auto nest = [](int levels) {
    std::string source;
    for (int i = 0; i < levels; ++i) source += "{% if x %}";
    for (int i = 0; i < levels; ++i) source += "{% endif %}";
    return source;
  };
  EXPECT_EQ(ParseError(nest(9), {.depth = 12}), "");
  EXPECT_THAT(ParseError(nest(12), {.depth = 12}), HasSubstr("passed the limit depth of 12"));
  EXPECT_THAT(ParseError(nest(100'000)), HasSubstr("passed the limit depth of 128"));
}

}  // namespace
}  // namespace pith::jinja
