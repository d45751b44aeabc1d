#include "tokenizer/template_ast.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tokenizer/template_parser.h"

namespace pith::jinja {
namespace {

using ::testing::ElementsAre;

ExprPtr Name(Symbol symbol) { return MakeExpr(1, NameExpr{symbol}); }

TEST(TemplateAst, HeightIsThatOfTheTallestChild) {
  EXPECT_EQ(Name(0)->height, 1);
  ConcatExpr concat;
  concat.operands.push_back(Name(0));
  concat.operands.push_back(MakeExpr(1, UnaryExpr{UnaryExpr::Operator::kNot, Name(1)}));
  EXPECT_EQ(MakeExpr(1, std::move(concat))->height, 3);
}

TEST(TemplateAst, ChildrenComeInOrderAndWithoutNulls) {
  ConditionalExpr conditional{.condition = Name(1), .then = Name(2)};
  SliceExpr slice{.object = Name(0), .stop = MakeExpr(1, std::move(conditional))};
  std::vector<Symbol> names;
  const auto walk = [&](auto& self, const Expr& expr) -> void {
    if (const auto* name = std::get_if<NameExpr>(&expr.node)) names.push_back(name->symbol);
    ForEachChild(expr, [&](const Expr& child) { self(self, child); });
  };
  walk(walk, *MakeExpr(1, std::move(slice)));
  EXPECT_THAT(names, ElementsAre(0, 1, 2));
}

// The names of "caller", "kwargs" and "varargs" that a template uses undeclared.
std::string Undeclared(absl::string_view source) {
  const absl::StatusOr<ParsedTemplate> parsed = ParseTemplate(absl::StrCat("{{ 0 if 0 else caller }}{{ kwargs }}{{ varargs }}", source),
                                                              {});
  if (!parsed.ok()) return std::string(parsed.status().message());
  Body body;
  for (size_t i = 1; i < parsed->body.size(); ++i) body.push_back(std::move(const_cast<Statement&>(parsed->body[i])));
  std::string names;
  for (const Symbol symbol : FindUndeclared(body, {0, 1, 2})) absl::StrAppend(&names, parsed->symbols[static_cast<size_t>(symbol)], " ");
  return names;
}

TEST(TemplateAst, FindsNamesReadBeforeTheyAreAssigned) {
  EXPECT_EQ(Undeclared("{% if 1 %}{{ [varargs, caller()] }}{% endif %}"), "varargs caller ");
  EXPECT_EQ(Undeclared("{% set kwargs = 1 %}{{ kwargs }}"), "");
  EXPECT_EQ(Undeclared("{% set x = kwargs %}{% set kwargs = 1 %}"), "kwargs ");
  EXPECT_EQ(Undeclared("{% set kwargs = kwargs %}"), "");  // jinja2 visits the target first
  EXPECT_EQ(Undeclared("{% for caller in caller %}{{ caller }}{% endfor %}"), "");
  EXPECT_EQ(Undeclared("{% for x in y if varargs %}{% endfor %}"), "varargs ");
  EXPECT_EQ(Undeclared("{% macro f(caller=none) %}{{ caller }}{{ kwargs }}{% endmacro %}"), "kwargs ");
  EXPECT_EQ(Undeclared("{% call caller() %}{{ varargs }}{% endcall %}"), "caller varargs ");
  EXPECT_EQ(Undeclared("{% filter replace(kwargs, 1) %}{% endfilter %}{% with caller=1 %}{{ caller }}{% endwith %}"), "kwargs ");
}

}  // namespace
}  // namespace pith::jinja
