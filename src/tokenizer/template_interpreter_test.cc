#include "tokenizer/template_interpreter.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tokenizer/template_test_render.h"

namespace pith::jinja {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Expected values: jinja2 3.1 on Python 3.11.
TEST(TemplateInterpreter, Loops) {
  EXPECT_EQ(Render("{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ x }} {% endfor %}"),
            "1032"
            "3 2121"
            "1 3210"
            "2 ");
  EXPECT_EQ(Render("{% for x in l %}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}"),
            "TrueFalse310 FalseFalse310 FalseTrue310 ");
  EXPECT_EQ(Render("{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}"), "<3>1 3<1>2 1<2> ");
  EXPECT_EQ(Render("{% for x in range(4) %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x // 2) }} {% endfor %}"),
            "aTrue bFalse aTrue bFalse ");
  EXPECT_EQ(Render("{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}"), "b=2;a=1;C=3;");
  EXPECT_EQ(Render("{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}"), "123");
  EXPECT_EQ(Render("{% for c in 'hé😀' %}[{{ c }}]{% endfor %}"), "[h][é][😀]");
  EXPECT_EQ(Render("{% for x in [] %}a{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(Render("{% for x in missing %}a{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(Render("{% for x in l if x > 1 %}{{ x }}{{ loop.index }}{{ loop.length }}{{ loop.last }} {% endfor %}"), "312False 222True ");
  EXPECT_EQ(Render("{% for i in range(2) %}{% for j in range(2) %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}"), "121 122 ");
}

TEST(TemplateInterpreter, LoopConditionsSeeEarlierIterations) {
  EXPECT_EQ(Render("{% set ns = namespace(on=true) %}{% for x in [1, 2, 3] if ns.on %}{{ x }}{% if x == 2 %}{% set ns.on = false %}{% "
                   "endif %}{% endfor %}"),
            "12");
  EXPECT_EQ(Render("{% set ns = namespace(on=true) %}{% for x in [1, 2, 3] if ns.on %}{{ x }}{{ loop.last }}{% if x == 2 %}{% set ns.on = "
                   "false %}{% endif %}{% endfor %}"),
            "1False2False3True");
}

TEST(TemplateInterpreter, BreakAndContinue) {
  EXPECT_EQ(Render("{% for x in [1, 2, 3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}"), "13");
  EXPECT_EQ(Render("{% for x in [1, 2, 3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}"), "1");
  // The else branch runs unless some iteration came to its end.
  EXPECT_EQ(Render("{% for x in [1] %}{% break %}{% else %}E{% endfor %}"), "E");
  EXPECT_EQ(Render("{% for x in [1, 2] %}{% if x == 1 %}{% continue %}{% endif %}{% else %}E{% endfor %}"), "");
  // A block that is left this way prints and sets nothing.
  EXPECT_EQ(Render("{% for x in [1, 2] %}{% filter upper %}a{% if x == 1 %}{% continue %}{% endif %}{% endfilter %}b{% endfor %}"), "Ab");
  EXPECT_EQ(Render("{% for x in [1, 2] %}{% set y %}{{ x }}{% if x == 1 %}{% continue %}{% endif %}{% endset %}{{ y }}{% endfor %}"), "2");
}

TEST(TemplateInterpreter, Scopes) {
  EXPECT_EQ(Render("{% set x = 1 %}{% for i in l %}{% set x = i %}{{ x }}{% endfor %}{{ x }}"), "3121");
  EXPECT_EQ(Render("{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}"), "2");
  EXPECT_EQ(Render("{% set x = 'a' %}{% filter upper %}{% set x = 'b' %}{{ x }}{% endfilter %}{{ x }}"), "Ba");
  EXPECT_EQ(Render("{% set x = 'a' %}{% set y %}{% set x = 'b' %}{{ x }}{% endset %}{{ x }}{{ y }}"), "ab");
  EXPECT_EQ(Render("{% set x = 'a' %}{% with %}{% set x = 'b' %}{{ x }}{% endwith %}{{ x }}"), "ba");
  EXPECT_EQ(Render("{% set x = 'a' %}{% generation %}{% set x = 'b' %}{{ x }}{% endgeneration %}{{ x }}"), "ba");
  EXPECT_EQ(Render("{% with a=1, b=a %}{{ a }}[{{ b }}]{% endwith %}{{ a }}"), "1[]");
  EXPECT_EQ(Render("{% set x = [1, 2] %}{% for x in x %}{{ x }}{% endfor %}{{ x }}"), "12[1, 2]");
  EXPECT_EQ(Render("{{ loop is defined }}{% for i in [1] %}{{ loop is defined }}{% endfor %}"), "FalseTrue");
}

TEST(TemplateInterpreter, Assignments) {
  EXPECT_EQ(Render("{% set a, b = 1, 2 %}{% set (c, d) = 'xy' %}{{ a }}{{ b }}{{ c }}{{ d }}"), "12xy");
  EXPECT_EQ(Render("{% set a %} hi {{ n }} {% endset %}[{{ a }}]{% set a | trim | upper %} hi {% endset %}[{{ a }}]"), "[ hi 5 ][HI]");
  EXPECT_EQ(Render("{% set ns = namespace(a=1) %}{% set ns.a, ns.b = 2, 3 %}{{ ns.a }}{{ ns.b }}{{ ns.c }}{{ ns['a'] }}{{ ns }}"),
            "232<Namespace {'a': 2, 'b': 3}>");
  EXPECT_THAT(Render("{% set a, b = [1] %}"), HasSubstr("line 1: expected 2 values to unpack, found 1"));
  EXPECT_THAT(Render("{% set a, b = 5 %}"), HasSubstr("iterate"));
  EXPECT_THAT(Render("{% set d.x = 5 %}"), HasSubstr("only a namespace takes new attributes, found dict"));
  EXPECT_THAT(Render("{% set ns = namespace() %}{% set ns._a = 5 %}"), HasSubstr("leading underscore"));
}

TEST(TemplateInterpreter, Macros) {
  EXPECT_EQ(
      Render("{% macro f(a, b=2, c='x') %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ f(1) }}{{ f(1, c=3) }}{{ f(b=1) }}{{ f(1, 2, 3) }}"),
      "[12x][123][1x][123]");
  EXPECT_EQ(Render("{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, x=3) }}"), "(1, 2){'x': 3}");
  EXPECT_EQ(Render("{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1, 2) }}"), "1112");
  EXPECT_EQ(Render("{% macro f(a=b, b=2) %}[{{ a }}]{{ b }}{% endmacro %}{{ f() }}{{ f(b=3) }}"), "[]2[3]3");
  EXPECT_EQ(Render("{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}"), "3210");
  EXPECT_EQ(Render("{% macro f(a) %}<{{ caller(a) }}>{% endmacro %}{% call(x) f(5) %}{{ x + 1 }}{% endcall %}"), "<6>");
  EXPECT_EQ(Render("{% macro f() %}{{ caller is defined }}{% endmacro %}{{ f() }}{% call f() %}{% endcall %}"), "FalseTrue");
  EXPECT_EQ(Render("{% macro f(caller=none) %}{{ caller() if caller }}{% endmacro %}{% call f() %}x{% endcall %}{{ f() }}"), "x");
  EXPECT_EQ(Render("{% macro outer() %}{% macro inner() %}{{ q }}{% endmacro %}{% set q = 3 %}{{ inner() }}{% endmacro %}{{ outer() }}"),
            "3");
  EXPECT_EQ(Render("{% macro f() %}{{ y }}{% endmacro %}{% for y in [1] %}[{{ f() }}]{% endfor %}"), "[]");
  EXPECT_EQ(Render("{% set g = namespace() %}{% macro f(x) %}{{ x }}{% endmacro %}{% set g.f = f %}{{ g.f(*[1]) }}{{ g.f(**{'x': 2}) }}"),
            "12");
}

TEST(TemplateInterpreter, MacroErrors) {
  EXPECT_THAT(Render("{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}"), HasSubstr("macro 'f' takes not more than 1 arguments"));
  EXPECT_THAT(Render("{% macro f(a) %}{% endmacro %}{{ f(b=2) }}"), HasSubstr("takes no keyword argument 'b'"));
  EXPECT_THAT(Render("{% macro f(a) %}{% endmacro %}{{ f(1, a=2) }}"), HasSubstr("takes no keyword argument 'a'"));
  EXPECT_THAT(Render("{% macro f() %}{% endmacro %}{% call f() %}{% endcall %}"), HasSubstr("takes no keyword argument 'caller'"));
  EXPECT_THAT(Render("{% macro f() %}{{ caller() }}{% endmacro %}{{ f() }}"), HasSubstr("no caller defined"));
  EXPECT_THAT(Render("{{ g() }}{% macro g() %}{% endmacro %}"), HasSubstr("'g' is undefined"));
  EXPECT_THAT(Render("{{ 5() }}"), HasSubstr("expected something to call, found int"));
  EXPECT_THAT(Render("{{ dict(**5) }}"), HasSubstr("expected a dict behind '**'"));
  EXPECT_THAT(Render("{{ dict(a=1, **{'a': 2}) }}"), HasSubstr("given twice"));
}

TEST(TemplateInterpreter, BlocksPrintTextOnly) {
  EXPECT_EQ(Render("{% filter upper|replace('A', 'x') %}abc{% endfilter %}"), "xBC");
  EXPECT_THAT(Render("{% filter length %}abc{% endfilter %}"), HasSubstr("filter block to give a str, found int"));
  EXPECT_THAT(Render("{% call dict() %}{% endcall %}"), HasSubstr("call block to give a str, found dict"));
}

TEST(TemplateInterpreter, Expressions) {
  constexpr Example kExamples[] = {
      {"1 < 2 < 3 and 3 > 2 >= 2 != 1", "True"},
      {"1 == 1.0 == true != '1'", "True"},
      {"none or 0 or 'x' ~ 'y'", "xy"},
      {"[] and 1", "[]"},
      {"not n in l", "True"},
      {"'yes' if n > 3 else 'no'", "yes"},
      {"'yes' if n > 30", ""},
      {"{'a': 1, 2: [none], (1, 2): 'c', 'a': 3}", "{'a': 3, 2: [None], (1, 2): 'c'}"},
      {"(1,) ~ () ~ [1, (2, 3)]", "(1,)()[1, (2, 3)]"},
      {"undefined_name ~ d.x ~ (d.x is defined)", "False"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_THAT(Evaluate(expression), StartsWith(expected)) << expression;
  EXPECT_THAT(Evaluate("{[1]: 2}"), HasSubstr("unhashable type: 'list'"));
  EXPECT_THAT(Evaluate("missing < 1"), HasSubstr("'missing' is undefined"));
  EXPECT_THAT(Evaluate("('x' if false) + 'y'"), HasSubstr("an inline if without else"));
}

TEST(TemplateInterpreter, ErrorsNameTheLineTheyHappenOn) {
  EXPECT_THAT(Render("a\nb\n{{ 1 // 0 }}"), HasSubstr("chat template: line 3: division by zero"));
  EXPECT_THAT(Render("{% macro f() %}\n{{ 1 // 0 }}\n{% endmacro %}\n\n{{ f() }}"), HasSubstr("line 2: "));
  EXPECT_THAT(Render("\n{% for a, b in [1] %}{% endfor %}"), HasSubstr("line 2: "));
  EXPECT_THAT(Render("{{ [1,\n missing.x,\n 3] }}"), HasSubstr("line 2: 'missing' is undefined"));
}

// Values that hold themselves, or each other through mutable objects, must neither leak nor overflow the stack when they go.
TEST(TemplateInterpreter, CyclesAndChainsAreTakenApart) {
  EXPECT_EQ(Render("{% set ns = namespace() %}{% set ns.x = [ns] %}{% set ns.f = ns %}ok"), "ok");
  EXPECT_EQ(Render("{% set ns = namespace() %}{% macro f() %}{% endmacro %}{% set ns.f = f %}ok"), "ok");
  EXPECT_EQ(
      Render("{% set ns = namespace() %}{% for i in l %}{{ loop.changed(loop) }}{% set ns.l = loop %}{% endfor %}{{ ns.l.changed(ns.l) }}"),
      "TrueFalseFalseFalse");
  EXPECT_EQ(Render("{% set ns = namespace(x=1) %}{% for i in range(20000) %}{% set ns.x = namespace(x=ns.x) %}{% endfor %}ok"), "ok");
  EXPECT_EQ(
      Render(
          "{% set ns = namespace(x=1) %}{% for i in range(20000) %}{% macro f() %}{{ ns }}{% endmacro %}{% set ns.x = f %}{% endfor %}ok"),
      "ok");
  EXPECT_EQ(Render("{% set ns = namespace(x=1) %}{% for i in range(9999) %}{% for j in [1] %}{% if loop.changed(ns.x) %}{% set ns.x = loop "
                   "%}{% endif %}{% endfor %}{% endfor %}ok"),
            "ok");
}

}  // namespace
}  // namespace pith::jinja
