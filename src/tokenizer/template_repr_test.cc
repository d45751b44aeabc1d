#include "tokenizer/template_repr.h"

#include "gtest/gtest.h"
#include "tokenizer/template_test_render.h"

namespace pith::jinja {
namespace {

// Expected values: jinja2 3.1 on Python 3.11.
TEST(TemplateRepr, Values) {
  constexpr Example kExamples[] = {
      {"[none, true, false, 1, -2, 1.0, 'a', missing]", "[None, True, False, 1, -2, 1.0, 'a', Undefined]"},
      {"(1,)", "(1,)"},
      {"[(), (1, 2), [], {}, {1: {'a': (3,)}}]", "[(), (1, 2), [], {}, {1: {'a': (3,)}}]"},
      {"[range(3), range(1, 5, 2), d.keys(), {}.items(), {'a': 1}.items(), d.values()]",
       "[range(0, 3), range(1, 5, 2), dict_keys(['b', 'a', 'C']), dict_items([]), dict_items([('a', 1)]), dict_values([2, 1, 3])]"},
      {"['<'|e, namespace(a='x')]", "[Markup('&lt;'), <Namespace {'a': 'x'}>]"},
      {"[{'k': 1}, {'k': 2}]|groupby('k')", "[(1, [{'k': 1}]), (2, [{'k': 2}])]"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_EQ(Evaluate(expression), expected) << expression;
}

TEST(TemplateRepr, Quotes) {
  const auto quoted = [](absl::string_view text, bool ascii_only = false) {
    std::string out;
    AppendQuoted(text, ascii_only, &out);
    return out;
  };
  EXPECT_EQ(quoted("a"), "'a'");
  EXPECT_EQ(quoted("it's"), "\"it's\"");
  EXPECT_EQ(quoted("say \"hi\""), "'say \"hi\"'");
  EXPECT_EQ(quoted("it's \"x\""), "'it\\'s \"x\"'");
  EXPECT_EQ(quoted("\n\r\t\\\x01\x7f\u0085\u00a0"), "'\\n\\r\\t\\\\\\x01\\x7f\\x85\\xa0'");
  EXPECT_EQ(quoted("é€😀\u200b\U000E0001"), "'é€😀\\u200b\\U000e0001'");
  EXPECT_EQ(quoted("é€😀", true), "'\\xe9\\u20ac\\U0001f600'");
}

TEST(TemplateRepr, OriginOfPrintedValues) {
  EXPECT_EQ(RenderOrigins("{{ [1, 'a'] }}{{ [s[:1]] }}{{ {'k': [s[:1]]} }}{{ l }}{{ n }}{{ [n] }}{{ d.keys() }}"),
            "[1, 'a'][['S']{'k': ['S']}[3, 1, 2]]5[5][dict_keys(['b', 'a', 'C'])]");
  EXPECT_EQ(RenderOrigins("{{ namespace(a=s[:1]) }}{{ namespace(a='b') }}{{ nil }}{{ yes }}"),
            "[<Namespace {'a': 'S'}>]<Namespace {'a': 'b'}>NoneTrue");
}

TEST(TemplateRepr, CostsSteps) {
  Budget budget({.steps = 20});
  ValueList items(30, Value(int64_t{1}));
  auto list = std::make_shared<ListObject>();
  list->items = items;
  EXPECT_FALSE(Repr(budget, Value(ListPtr(list))).ok());
}

}  // namespace
}  // namespace pith::jinja
