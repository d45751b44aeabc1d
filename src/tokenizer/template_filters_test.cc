#include "tokenizer/template_filters.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tokenizer/template_test_render.h"

namespace pith::jinja {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Expected values: jinja2 3.1 on Python 3.11.
TEST(TemplateFilters, Text) {
  constexpr Example kExamples[] = {
      {"'aBc'|upper ~ 'aBc'|lower ~ 'aBC'|capitalize ~ 5|upper", "ABCabcAbc5"},
      {"\"it's a-b (c) [d] straße\"|title", "It's A-B (C) [D] Straße"},
      {"'[' ~ '  x '|trim ~ ']' ~ 'xxaxx'|trim('x') ~ 7|trim", "[x]a7"},
      {"'aaa'|replace('a', 'b') ~ 'aaa'|replace('a', 'b', 2) ~ 11|replace(1, 2)", "bbbbba22"},
      {"'a\\nb\\n\\nc'|indent", "a\n    b\n\n    c"},
      {"'a\\n\\nc\\n'|indent(2, true, true)", "  a\n  \n  c\n  "},
      {"'a\\nb'|indent('> ', first=true)", "> a\n> b"},
      {"'[' ~ 'abc'|center(8) ~ ']'", "[  abc   ]"},
      {"'foo bar baz qux'|truncate(9) ~ '|' ~ 'foo bar baz qux'|truncate(9, true) ~ '|' ~ 'foo bar baz qux'|truncate(11)",
       "foo...|foo ba...|foo bar baz qux"},
      {"'foo bar baz qux'|truncate(11, false, '~', 0)", "foo bar~"},
      {"'foo bar-baz_q'|wordcount ~ '%s %05.1f'|format('a', 2) ~ '%(x)s'|format(x=3)", "3a 002.03"},
      {"'<a href=\"x\">\\'&'|e ~ '<'|safe ~ '<'|e|e ~ '<'|e|forceescape", "&lt;a href=&#34;x&#34;&gt;&#39;&amp;<&lt;&amp;lt;"},
      {"missing|default('x') ~ ''|default('x') ~ ''|d('x', true) ~ none|d('x') ~ missing|d", "xxNone"},
      {"[1, {'a': none}]|string|length ~ 5|string + 'x'", "165x"},
      {"messages[0]|tojson ~ s|tojson ~ tools|tojson(indent=1)|length",
       "{\"role\": \"system\", \"content\": \"Be brief.\"}\"Straße ﬁ ΑΣ\"94"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_EQ(Evaluate(expression), expected) << expression;
}

TEST(TemplateFilters, Numbers) {
  constexpr Example kExamples[] = {
      {"-5|abs ~ (-5)|abs ~ (-2.5)|abs ~ true|abs", "552.51"},
      {"'42'|int ~ ' 4_2 '|int ~ '42.9'|int ~ 'x'|int ~ 'x'|int(7) ~ 'ff'|int(0, 16) ~ '0x1f'|int(base=16) ~ -2.9|int ~ true|int",
       "4242420725531-21"},
      {"'1e3'|int ~ none|int ~ []|int(default=3) ~ 'inf'|int", "1000030"},
      {"'1.5'|float ~ 2|float ~ 'x'|float ~ 'x'|float(1.25) ~ none|float", "1.52.00.01.250.0"},
      {"2.5|round ~ 3.5|round ~ 42.55|round(1, 'floor') ~ 42.51|round(1, 'ceil') ~ -0.01|round(1, 'ceil') ~ 42|round ~ 1250|round(-2) ~ "
       "2.675|round(2)",
       "2.04.042.542.60.04212002.67"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_EQ(Evaluate(expression), expected) << expression;
}

TEST(TemplateFilters, Sequences) {
  constexpr Example kExamples[] = {
      {"'héy'|length ~ d|count ~ range(7)|length ~ missing|length", "3370"},
      {"'abc'|list ~ d|list ~ range(3)|list ~ missing|list", "['a', 'b', 'c']['b', 'a', 'C'][0, 1, 2][]"},
      {"l|first ~ l|last ~ 'ab'|first ~ 'ab'|last ~ []|first ~ []|last ~ d|first ~ d|last ~ range(4)|last", "32abbC3"},
      {"[1, 'a', none]|join('-') ~ [1, 2]|join ~ messages|join(',', attribute='role') ~ 'abc'|join('.')",
       "1-a-None12system,user,assistanta.b.c"},
      {"[3, 1, 2]|sort ~ [3, 1, 2]|sort(reverse=true) ~ ['b', 'A', 'c']|sort ~ ['b', 'A', 'c']|sort(case_sensitive=true)",
       "[1, 2, 3][3, 2, 1]['A', 'b', 'c']['A', 'b', 'c']"},
      {"['b', 'A', 'a', 'B']|sort ~ ['b', 'A', 'a', 'B']|sort(true)", "['A', 'a', 'b', 'B']['b', 'B', 'A', 'a']"},
      {"[{'a': 2, 'b': 1}, {'a': 1, 'b': 2}, {'a': 1, 'b': 1}]|sort(attribute='a,b')",
       "[{'a': 1, 'b': 1}, {'a': 1, 'b': 2}, {'a': 2, 'b': 1}]"},
      {"d|dictsort ~ d|dictsort(true) ~ d|dictsort(by='value', reverse=true)",
       "[('a', 1), ('b', 2), ('C', 3)][('C', 3), ('a', 1), ('b', 2)][('C', 3), ('b', 2), ('a', 1)]"},
      {"[1, 5, 3]|max ~ ['b', 'C']|min ~ []|max ~ ['a', 'B']|max(case_sensitive=true) ~ messages|max(attribute='role')|length", "5ba2"},
      {"[1, 2.5]|sum ~ [[1], [2]]|sum(start=[]) ~ [{'a': 1}, {'a': 2}]|sum('a', 10) ~ []|sum", "3.5[1, 2]130"},
      {"[{'k': 'b', 'v': 1}, {'k': 'A', 'v': 2}, {'k': 'B', 'v': 3}]|groupby('k')",
       "[('A', [{'k': 'A', 'v': 2}]), ('b', [{'k': 'b', 'v': 1}, {'k': 'B', 'v': 3}])]"},
      {"[{'k': 1}, {}]|groupby('k', default=0)|map(attribute='grouper')|list ", "[0, 1]"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_EQ(Evaluate(expression), expected) << expression;
}

TEST(TemplateFilters, Selections) {
  constexpr Example kExamples[] = {
      {"messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|list", "[' Hi <b>you</b> ']"},
      {"messages|rejectattr('role', 'in', ['user', 'system'])|map(attribute='role')|join", "assistant"},
      {"messages|selectattr('tool_calls')|list|length ~ messages|rejectattr('tool_calls', 'defined')|list|length", "12"},
      {"[1, 2, 3, 4]|select('even')|list ~ [1, 2, 3]|reject('odd')|list ~ [0, 1, '']|select|list ~ [0, 1]|reject|list", "[2, 4][2][1][0]"},
      {"['a', 'b']|map('upper')|list ~ [1.25, 2]|map('round', 1)|list ~ ['x']|map('replace', 'x', 'y')|first", "['A', 'B'][1.2, 2]y"},
      {"[1, 1, 'A', 'a', true]|unique|list ~ ['A', 'a']|unique(case_sensitive=true)|list ~ messages|unique(attribute='role')|list|length",
       "[1, 'A']['A', 'a']3"},
      {"[1, 2, 3, 4, 5]|batch(2)|list ~ [1, 2, 3]|batch(2, 'x')|list", "[[1, 2], [3, 4], [5]][[1, 2], [3, 'x']]"},
      {"[1, 2, 3, 4, 5]|slice(3)|list ~ [1, 2, 3, 4]|slice(3, 'x')|list", "[[1, 2], [3, 4], [5]][[1, 2], [3, 'x'], [4, 'x']]"},
      {"[1, 2, 3]|reverse|list ~ 'abc'|reverse ~ range(3)|reverse|list ~ d|reverse|list", "[3, 2, 1]cba[2, 1, 0]['C', 'a', 'b']"},
      {"d|items|list ~ missing|items|list", "[('b', 2), ('a', 1), ('C', 3)][]"},
      {"none|map('upper')|list ~ none|select|list ~ missing|map('nope')|list", "[][][]"},
      {"(l|select) is iterable ~ (l|select) is sequence ~ (1 if l|select('gt', 9) else 0)", "TrueFalse1"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_EQ(Evaluate(expression), expected) << expression;
}

TEST(TemplateFilters, IteratorsAreUsedUpAndLazy) {
  EXPECT_EQ(Render("{% set it = [1, 2, 3]|select %}{{ it|first }}{{ it|list }}{{ it|list }}"), "1[2, 3][]");
  EXPECT_EQ(Render("{% set it = [1, 'a']|map('abs') %}{{ it|first }}"), "1");
  EXPECT_EQ(Render("{% set it = 5|map('upper') %}x"), "x");
  EXPECT_THAT(Render("{% set it = [1]|map('nope') %}{{ it|list }}"), HasSubstr("no filter named 'nope'"));
  EXPECT_THAT(Evaluate("[1]|select('nope')|list"), HasSubstr("no test named 'nope'"));
}

TEST(TemplateFilters, Errors) {
  for (const char* expression : {"5|length",
                                 "(l|select)|length",
                                 "(l|select)|last",
                                 "5|list",
                                 "none|unique|list",
                                 "5|map('upper')|list",
                                 "[1, 'a']|sort",
                                 "[{}, {'a': 1}]|sort",
                                 "[[1]]|unique|list",
                                 "l|dictsort",
                                 "d|dictsort(by='x')",
                                 "[1, 'a']|max",
                                 "['a']|sum",
                                 "'a'|abs",
                                 "missing|abs",
                                 "missing|int",
                                 "missing|float",
                                 "'a'|round",
                                 "1|round(0, 'x')",
                                 "1e400|int",
                                 "'99999999999999999999'|int",
                                 "l|items|list",
                                 "l|groupby(0)",
                                 "l|map()|list",
                                 "l|map(attribute='a', x=1)|list",
                                 "l|selectattr()|list",
                                 "l|batch|list",
                                 "l|slice(0)|list",
                                 "5|indent",
                                 "'abcdefghijkl'|truncate(2)",
                                 "missing|tojson",
                                 "range(3)|tojson",
                                 "d|items|tojson",
                                 "{(1, 2): 3}|tojson",
                                 "l|tojson(indent=1.5)",
                                 "l|tojson(separators=',')",
                                 "'%s'|format(1, x=2)",
                                 "l|upper(1)",
                                 "l|join(',', 'a', 'b')",
                                 "l|sort(nope=1)",
                                 "'a'|replace('a')"}) {
    EXPECT_THAT(Evaluate(expression), StartsWith("ERROR: chat template: line 1: ")) << expression;
  }
}

}  // namespace
}  // namespace pith::jinja
