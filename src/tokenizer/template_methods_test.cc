#include "tokenizer/template_methods.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tokenizer/template_test_render.h"

namespace pith::jinja {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Expected values: jinja2 3.1 on Python 3.11.
TEST(TemplateMethods, TextMethods) {
  constexpr Example kExamples[] = {
      {"'aBc'.upper() ~ 'aBc'.lower() ~ 'aBc'.swapcase() ~ 'aBC dE'.capitalize()", "ABCabcAbCAbc de"},
      {"\"it's a-b\".title()", "It'S A-B"},
      {"s.upper() ~ '|' ~ s.lower() ~ '|' ~ s.title()", "STRASSE FI ΑΣ|straße ﬁ ας|Straße Fi Ας"},
      {"'[' ~ ' \\t x\\n'.strip() ~ '][' ~ ' x '.lstrip() ~ '][' ~ ' x '.rstrip() ~ ']'", "[x][x ][ x]"},
      {"'xyaxy'.strip('yx') ~ 'xyaxy'.lstrip('x') ~ 'xyaxy'.rstrip('y')", "ayaxyxyax"},
      {"' a b  c '.split()", "['a', 'b', 'c']"},
      {"' a b  c '.split(none, 1)", "['a', 'b  c ']"},
      {"' a b  c '.rsplit(none, 1)", "[' a b', 'c']"},
      {"'a,b,,c'.split(',')", "['a', 'b', '', 'c']"},
      {"'a,b,c'.split(',', 1)", "['a', 'b,c']"},
      {"'a,b,c'.rsplit(',', maxsplit=1)", "['a,b', 'c']"},
      {"'aaa'.split('aa') ~ 'aaa'.rsplit('aa')", "['', 'a']['a', '']"},
      {"''.split() ~ ''.split(',')", "[]['']"},
      {"'a\\nb\\r\\nc\\n'.splitlines() ~ 'a\\nb'.splitlines(true)", "['a', 'b', 'c']['a\\n', 'b']"},
      {"'abcabc'.find('c') ~ 'abcabc'.rfind('c') ~ 'abc'.find('z') ~ 'abcabc'.find('c', 3) ~ 'abcabc'.find('c', 3, -1)", "25-15-1"},
      {"'hé😀x'.find('x') ~ 'hé😀x'.index('😀') ~ 'héhé'.rindex('h')", "322"},
      {"'abab'.count('ab') ~ 'abc'.count('') ~ 'aaa'.count('a', 1)", "242"},
      {"'abc'.replace('b', 'X') ~ 'abc'.replace('', '-') ~ 'aaa'.replace('a', 'b', 2)", "aXc-a-b-c-bba"},
      {"'abc'.startswith('ab') ~ 'abc'.startswith(('x', 'a')) ~ 'abc'.startswith('b', 1) ~ 'abc'.endswith('bc') ~ 'abc'.endswith(())",
       "TrueTrueTrueTrueFalse"},
      {"'abc'.removeprefix('a') ~ 'abc'.removesuffix('c') ~ 'abc'.removeprefix('b')", "bcababc"},
      {"'-'.join(['a', 'b']) ~ ','.join('xyz') ~ '+'.join({'k': 1})", "a-bx,y,zk"},
      {"'a-b-c'.partition('-') ~ 'a-b-c'.rpartition('-')", "('a', '-', 'b-c')('a-b', '-', 'c')"},
      {"'abc'.partition('x') ~ 'abc'.rpartition('x')", "('abc', '', '')('', '', 'abc')"},
      {"'42'.zfill(5) ~ '-42'.zfill(5) ~ 'a'.ljust(3, '.') ~ 'b'.rjust(3) ~ 'ab'.center(5, '*')", "00042-0042a..  b**ab*"},
      {"'a\\tb\\n\\tc'.expandtabs(4)", "a   b\n    c"},
      {"'12'.isdigit() ~ '²'.isdigit() ~ '²'.isdecimal() ~ '½'.isnumeric() ~ ''.isdigit()", "TrueTrueFalseTrueFalse"},
      {"'ab'.isalpha() ~ 'a1'.isalnum() ~ ' \\n'.isspace() ~ 'é'.isascii() ~ ''.isascii()", "TrueTrueTrueFalseTrue"},
      {"'A1'.isupper() ~ 'a1'.islower() ~ '1'.islower() ~ 'Ab Cd'.istitle() ~ 'AB'.istitle()", "TrueTrueFalseTrueFalse"},
      {"'a_1'.isidentifier() ~ '1a'.isidentifier() ~ 'a\\n'.isprintable()", "TrueFalseFalse"},
      {"'{}-{}'.format(1, 'a') ~ '{a}'.format_map({'a': 2})", "1-a2"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_EQ(Evaluate(expression), expected) << expression;
}

TEST(TemplateMethods, TextMethodErrors) {
  for (const char* expression :
       {"'a'.split('')", "'a'.index('b')", "'-'.join([1])", "'a'.center(5, 'ab')", "'a'.startswith(1)", "'a'.replace('a')",
        "'a'.replace(old='a', new='b')", "'a'.strip(1)", "'a'.upper(1)", "'a'.partition('')", "'a'.find(1)"}) {
    EXPECT_THAT(Evaluate(expression), StartsWith("ERROR: chat template: line 1: ")) << expression;
  }
}

TEST(TemplateMethods, CollectionMethods) {
  constexpr Example kExamples[] = {
      {"[3, 1, 3].index(3) ~ [3, 1, 3].index(3, 1) ~ [3, 1, 3].count(3) ~ (1, 2).index(2)", "0221"},
      {"[1].copy() ~ {'a': 1}.copy()", "[1]{'a': 1}"},
      {"d.get('a') ~ d.get('x') ~ d.get('x', 7)", "1None7"},
      {"d.keys() ~ d.values() ~ d.items()", "dict_keys(['b', 'a', 'C'])dict_values([2, 1, 3])dict_items([('b', 2), ('a', 1), ('C', 3)])"},
      {"range(2, 10, 3).index(8) ~ range(5).count(3) ~ range(5).count(9)", "210"},
      {"range(2, 10, 3).start ~ range(2, 10, 3).stop ~ range(2, 10, 3).step", "2103"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_EQ(Evaluate(expression), expected) << expression;
}

TEST(TemplateMethods, AttributesPreferMethodsAndSubscriptsPreferItems) {
  EXPECT_EQ(Evaluate("{'items': 3}.items() | list"), "[('items', 3)]");
  EXPECT_EQ(Evaluate("{'items': 3}['items']"), "3");
  EXPECT_EQ(Evaluate("{'a': 1}['keys']() | list"), "['a']");
  EXPECT_EQ(Evaluate("'abc'['upper']()"), "ABC");
  EXPECT_EQ(Evaluate("d.a ~ d['a'] ~ d.zz ~ l.0 ~ l[-1] ~ l[9] ~ l['x'] ~ l[true]"), "11321");
  EXPECT_EQ(Evaluate("'héy'[1] ~ 'héy'[-1] ~ 'héy'[3] ~ range(5)[-2] ~ (1, 2)[0]"), "éy31");
  EXPECT_EQ(Evaluate("{1: 'a', none: 'b', (1, 2): 'c'}[1.0] ~ {1: 'a', none: 'b'}[none] ~ {(1, 2): 'c'}[(1, 2)] ~ d[[1]]"), "abc");
  EXPECT_EQ(Evaluate("nil.foo ~ n.foo"), "");
  EXPECT_THAT(Evaluate("nil.foo.bar"), HasSubstr("line 1: a NoneType has no attribute 'foo'"));
  EXPECT_THAT(Evaluate("missing.foo"), HasSubstr("'missing' is undefined"));
}

TEST(TemplateMethods, MethodsThatWouldChangeAreUnsafe) {
  for (const char* name : {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"}) {
    EXPECT_THAT(Evaluate(absl::StrCat("l.", name, "(1)")), HasSubstr(absl::StrCat("attribute '", name, "' of a list is unsafe"))) << name;
    EXPECT_EQ(Evaluate(absl::StrCat("l.", name)), "") << name;
  }
  for (const char* name : {"clear", "pop", "popitem", "setdefault", "update"}) {
    EXPECT_THAT(Evaluate(absl::StrCat("d.", name, "('a')")), HasSubstr(absl::StrCat("attribute '", name, "' of a dict is unsafe"))) << name;
  }
}

TEST(TemplateMethods, Slices) {
  constexpr Example kExamples[] = {
      {"[1, 2, 3, 4][1:3] ~ [1, 2, 3][::-1] ~ [1, 2, 3][-2:] ~ [1, 2, 3][10:] ~ [1, 2, 3, 4][::2] ~ [1, 2, 3][2:0:-1]",
       "[2, 3][3, 2, 1][2, 3][][1, 3][3, 2]"},
      {"'héllo'[1:3] ~ 'héllo'[::-1] ~ 'héllo'[-2:] ~ 'hello'[::2] ~ 'hello'[:-1]", "élolléhlohlohell"},
      {"range(10)[2:8:2] ~ range(10)[::-3] ~ range(0, 10, 2)[1:]", "range(2, 8, 2)range(9, -1, -3)range(2, 10, 2)"},
      {"(1, 2, 3)[1:] ~ [1, 2, 3][none:none] ~ [1, 2][-100:100]", "(2, 3)[1, 2, 3][1, 2]"},
      {"[1, 2, 3][::9223372036854775807] ~ [1, 2, 3][::-9223372036854775807]", "[1][3]"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_EQ(Evaluate(expression), expected) << expression;
  for (const char* expression : {"l[::0]", "l['a':]", "d[1:2]", "n[1:2]", "missing[1:2]", "l[1.5:]"}) {
    EXPECT_THAT(Evaluate(expression), StartsWith("ERROR: ")) << expression;
  }
}

TEST(TemplateMethods, PathsOfFilters) {
  EXPECT_EQ(Evaluate("[{'a': {'b': [5, 6]}}] | map(attribute='a.b.1') | list"), "[6]");
  EXPECT_EQ(Evaluate("[[7, 8]] | map(attribute=1) | list"), "[8]");
  EXPECT_EQ(Evaluate("[{'a': 1}, {}] | map(attribute='a', default='x') | list"), "[1, 'x']");
  EXPECT_EQ(Evaluate("l | attr('index') is callable"), "True");
  EXPECT_EQ(Evaluate("d | attr('a') is defined"), "False");
}

}  // namespace
}  // namespace pith::jinja
