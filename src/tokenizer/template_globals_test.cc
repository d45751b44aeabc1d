#include "tokenizer/template_globals.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tokenizer/template_test_render.h"

namespace pith::jinja {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Expected values: jinja2 3.1 on Python 3.11.
TEST(TemplateGlobals, Range) {
  constexpr Example kExamples[] = {
      {"range(3)|list ~ range(1, 4)|list ~ range(5, 0, -2)|list ~ range(3, 3)|list ~ range(true)|list", "[0, 1, 2][1, 2, 3][5, 3, 1][][0]"},
      {"range(3) ~ range(1, 9, 3) ~ range(3)|length ~ (range(0) and 1)", "range(0, 3)range(1, 9, 3)3range(0, 0)"},
      {"[2 in range(3), 7 in range(1, 9, 3), 1.0 in range(3), range(0, 3, 2) == range(0, 4, 2)]", "[True, True, True, True]"},
      {"(-9223372036854775807 in range(-9223372036854775807, 9223372036854775807, 1000000000000000000)) ~ range(100000)|length",
       "True100000"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_THAT(Evaluate(expression), StartsWith(expected)) << expression;
  EXPECT_THAT(Evaluate("range(100001)"), HasSubstr("passed the limit range of 100000 items, found 100001"));
  EXPECT_THAT(Evaluate("range(-9223372036854775807, 9223372036854775807)"), HasSubstr("passed the limit range"));
  for (const char* bad :
       {"range()", "range(1.5)", "range('3')", "range(1, 2, 0)", "range(1, 2, 3, 4)", "range(stop=3)", "range(missing)"}) {
    EXPECT_THAT(Evaluate(bad), StartsWith("ERROR: ")) << bad;
  }
}

TEST(TemplateGlobals, Dict) {
  constexpr Example kExamples[] = {
      {"dict(a=1, b=2)", "{'a': 1, 'b': 2}"},
      {"dict([('a', 1), 'xy'], b=2)", "{'a': 1, 'x': 'y', 'b': 2}"},
      {"dict({'a': 1}, a=2)", "{'a': 2}"},
      {"dict()", "{}"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_EQ(Evaluate(expression), expected) << expression;
  for (const char* bad : {"dict(1)", "dict([1])", "dict({}, {})", "dict(['abc'])", "dict([([], 1)])"})
    EXPECT_THAT(Evaluate(bad), StartsWith("ERROR: ")) << bad;
}

TEST(TemplateGlobals, Namespace) {
  EXPECT_EQ(Evaluate("namespace(a=1).a ~ namespace({'b': 2}).b ~ namespace(a=1).zz"), "12");
  EXPECT_EQ(Evaluate("namespace() == namespace()"), "False");
  EXPECT_THAT(Evaluate("namespace(_a=1)"), HasSubstr("leading underscore"));
  EXPECT_THAT(Evaluate("namespace({'__class__': 1})"), HasSubstr("leading underscore"));
  EXPECT_THAT(Evaluate("namespace(a=1)|list"), HasSubstr("iterate"));
}

TEST(TemplateGlobals, RaiseException) {
  EXPECT_EQ(Render("a\n{{ raise_exception('Roles must ' ~ 'alternate\n!') }}"), "ERROR: chat template: line 2: Roles must alternate\\x0A!");
  EXPECT_EQ(Render("{% if false %}{{ raise_exception('x') }}{% endif %}ok"), "ok");
  EXPECT_THAT(Evaluate("raise_exception()"), HasSubstr("misses the argument 'message'"));
}

TEST(TemplateGlobals, StrftimeNow) {
  EXPECT_EQ(Evaluate("strftime_now('%Y-%m-%d %H:%M:%S')"), "2024-07-31 23:05:45");
  EXPECT_EQ(Evaluate("strftime_now('%d %b %Y')"), "31 Jul 2024");
  EXPECT_THAT(Evaluate("strftime_now(5)"), HasSubstr("expected a str"));
}

TEST(TemplateGlobals, OthersAreUndefined) {
  for (const char* name : {"lipsum", "cycler", "joiner", "self", "request", "config", "open", "__builtins__"}) {
    EXPECT_EQ(FindGlobal(name), nullptr) << name;
    EXPECT_EQ(Evaluate(absl::StrCat(name, " is defined")), "False") << name;
  }
}

}  // namespace
}  // namespace pith::jinja
