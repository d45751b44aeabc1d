#include "tokenizer/template_predicates.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tokenizer/template_test_render.h"

namespace pith::jinja {
namespace {

using ::testing::StartsWith;

// Every test on every kind of value: T, F, or E for an error. Expected values: jinja2 3.1 on Python 3.11.
TEST(TemplatePredicates, TableOfKinds) {
  constexpr const char* kValues[] = {"missing", "none",     "true",     "5",         "2.5",      "'ab'",        "[1]",
                                     "(1,)",    "{'a': 1}", "range(2)", "d.items()", "l|select", "namespace()", "range"};
  constexpr Example kRows[] = {
      {"defined", "FTTTTTTTTTTTTT"},  {"undefined", "TFFFFFFFFFFFFF"}, {"none", "FTFFFFFFFFFFFF"},    {"boolean", "FFTFFFFFFFFFFF"},
      {"true", "FFTFFFFFFFFFFF"},     {"false", "FFFFFFFFFFFFFF"},     {"integer", "FFFTFFFFFFFFFF"}, {"float", "FFFFTFFFFFFFFF"},
      {"number", "FFTTTFFFFFFFFF"},   {"string", "FFFFFTFFFFFFFF"},    {"mapping", "FFFFFFFFTFFFFF"}, {"sequence", "TFFFFTTTTTFFFF"},
      {"iterable", "TFFFFTTTTTTTFF"}, {"callable", "TFFFFFFFFFFFFT"},  {"odd", "EETTFEEEEEEEEE"},     {"even", "EEFFFEEEEEEEEE"},
      {"escaped", "FFFFFFFFFFFFFF"},  {"lower", "FFFFFTFFTTF"},        {"upper", "FFFFFFFFFFF"},
  };
  for (const auto& [test, expected] : kRows) {
    std::string row;
    for (size_t i = 0; i < std::string(expected).size(); ++i) {  // lower and upper print the last ones, with an address in Python
      const std::string result = Evaluate(absl::StrCat("(", kValues[i], ") is ", test));
      row += result == "True" ? 'T' : result == "False" ? 'F' : 'E';
    }
    EXPECT_EQ(row, expected) << test;
  }
}

TEST(TemplatePredicates, Comparisons) {
  constexpr Example kExamples[] = {
      {"n is eq 5 ~ n is ne 5 ~ n is gt 4 ~ n is ge 5 ~ n is lt 5 ~ n is le 5", "TrueFalseTrueTrueFalseTrue"},
      {"n is equalto(5) ~ n is greaterthan(5) ~ n is lessthan(6) ~ n is divisibleby 5 ~ n is divisibleby(2)", "TrueFalseTrueTrueFalse"},
      {"'a' is in ['a'] ~ 'b' is in 'abc' ~ n is in d ~ n is not in [1]", "TrueTrueFalseTrue"},
      {"n is sameas 5 ~ true is sameas true ~ 1 is sameas true ~ none is sameas none ~ l is sameas l ~ [] is sameas []",
       "TrueTrueFalseTrueTrueFalse"},
      {"'upper' is filter ~ 'nope' is filter ~ 'even' is test ~ 5 is test", "TrueFalseTrueFalse"},
      {"'<'|e is escaped ~ 'é1' is lower ~ 'É' is upper ~ 'Aa' is upper ~ '1' is upper", "TrueTrueTrueFalseFalse"},
      {"n is not none and n is not string ~ ''", "True"},
      {"missing is eq missing ~ missing is eq none ~ l|select('==', 3)|list ~ l|select('>=', 2)|list", "TrueFalse[3][3, 2]"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_EQ(Evaluate(expression), expected) << expression;
  for (const char* expression : {"missing is lt 1", "1 is gt missing", "'a' is gt 1", "n is divisibleby 0", "n is in 5", "n is in 'abc'",
                                 "n is eq", "n is odd(1)", "[{}] is test"}) {
    EXPECT_THAT(Evaluate(expression), StartsWith("ERROR: chat template: line 1: ")) << expression;
  }
}

}  // namespace
}  // namespace pith::jinja
