#include "tokenizer/template_expression_parser.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tokenizer/template_repr.h"

namespace pith::jinja {
namespace {

using ::testing::HasSubstr;

// The tree in brackets: "a + b * c" is "(a + (b * c))".
class Shower {
 public:
  explicit Shower(std::vector<std::string> symbols) : symbols_(std::move(symbols)) {}
  std::string Show(const ExprPtr& expr) {
    return expr == nullptr ? "_" : std::visit([&](const auto& node) { return Node(node); }, expr->node);
  }

 private:
  std::string All(const std::vector<ExprPtr>& items, absl::string_view separator) {
    return absl::StrJoin(items, separator, [&](std::string* out, const ExprPtr& item) { *out += Show(item); });
  }
  std::string Node(const ConstantExpr& node) {
    Budget budget({});
    return (*Repr(budget, node.value))->bytes();
  }
  std::string Node(const NameExpr& node) { return symbols_[static_cast<size_t>(node.symbol)]; }
  std::string Node(const SequenceExpr& node) {
    return node.type == ListObject::Type::kList ? absl::StrCat("[", All(node.items, ", "), "]")
                                                : absl::StrCat("<", All(node.items, ", "), ">");
  }
  std::string Node(const DictExpr& node) {
    std::string shown = "{";
    for (const auto& [key, value] : node.items) absl::StrAppend(&shown, Show(key), ":", Show(value), ";");
    return shown + "}";
  }
  std::string Node(const UnaryExpr& node) {
    return absl::StrCat("(",
                        node.op == UnaryExpr::Operator::kNot      ? "not "
                        : node.op == UnaryExpr::Operator::kNegate ? "-"
                                                                  : "+",
                        Show(node.operand), ")");
  }
  std::string Node(const ChainExpr& node) {
    constexpr absl::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};
    std::string shown = "(" + Show(node.first);
    for (const auto& [op, operand] : node.rest) absl::StrAppend(&shown, " ", kSymbols[static_cast<int>(op)], " ", Show(operand));
    return shown + ")";
  }
  std::string Node(const LogicExpr& node) { return absl::StrCat("(", All(node.operands, node.is_and ? " and " : " or "), ")"); }
  std::string Node(const CompareExpr& node) {
    constexpr absl::string_view kSymbols[] = {"==", "!=", "<", "<=", ">", ">=", "in", "not in"};
    std::string shown = "(" + Show(node.first);
    for (const auto& [op, operand] : node.rest) absl::StrAppend(&shown, " ", kSymbols[static_cast<int>(op)], " ", Show(operand));
    return shown + ")";
  }
  std::string Node(const ConcatExpr& node) { return absl::StrCat("(", All(node.operands, " ~ "), ")"); }
  std::string Node(const ConditionalExpr& node) {
    return absl::StrCat("(", Show(node.then), " if ", Show(node.condition), " else ", Show(node.otherwise), ")");
  }
  std::string Node(const AttributeExpr& node) { return absl::StrCat(Show(node.object), ".", node.name); }
  std::string Node(const SubscriptExpr& node) { return absl::StrCat(Show(node.object), "[", Show(node.index), "]"); }
  std::string Node(const SliceExpr& node) {
    return absl::StrCat(Show(node.object), "[", Show(node.start), ":", Show(node.stop), ":", Show(node.step), "]");
  }
  std::string Node(const CallExpr& node) { return absl::StrCat(Show(node.callee), "(", Arguments(node.arguments), ")"); }
  std::string Node(const FilterExpr& node) {
    return absl::StrCat("(", Show(node.input), "|", node.name, "(", Arguments(node.arguments), "))");
  }
  std::string Node(const TestExpr& node) {
    return absl::StrCat("(", Show(node.input), " is ", node.name, "(", Arguments(node.arguments), "))");
  }
  std::string Arguments(const ArgumentsExpr& arguments) {
    std::string shown = All(arguments.positional, ", ");
    for (const auto& [name, value] : arguments.keyword) absl::StrAppend(&shown, ", ", name, "=", Show(value));
    if (arguments.more_positional != nullptr) absl::StrAppend(&shown, ", *", Show(arguments.more_positional));
    if (arguments.more_keyword != nullptr) absl::StrAppend(&shown, ", **", Show(arguments.more_keyword));
    return shown;
  }

  const std::vector<std::string> symbols_;
};

std::string Parse(absl::string_view expression, int max_depth = 20) {
  absl::StatusOr<std::vector<Token>> tokens = Tokenize(absl::StrCat("{{ ", expression, " }}"));
  if (!tokens.ok()) return absl::StrCat("ERROR: ", tokens.status().message());
  ExpressionParser parser(*std::move(tokens), max_depth);
  parser.Take();
  const absl::StatusOr<ExprPtr> expr = parser.ParseTuple();
  if (!expr.ok()) return absl::StrCat("ERROR: ", expr.status().message());
  if (parser.Current().kind != TokenKind::kVariableEnd) return absl::StrCat("ERROR: left over: ", Describe(parser.Current()));
  return Shower(std::move(parser).TakeSymbols()).Show(*expr);
}

TEST(TemplateExpressionParser, Precedence) {
  EXPECT_EQ(Parse("a + b * c - d"), "(a + (b * c) - d)");
  EXPECT_EQ(Parse("a ~ b + c ~ d * e"), "((a ~ b) + (c ~ (d * e)))");
  EXPECT_EQ(Parse("a ** b ** -c"), "(a ** b ** (-c))");
  EXPECT_EQ(Parse("-a ** b"), "((-a) ** b)");
  EXPECT_EQ(Parse("a or b and not c or d"), "(a or (b and (not c)) or d)");
  EXPECT_EQ(Parse("not a in b"), "(not (a in b))");
  EXPECT_EQ(Parse("a < b <= c not in d"), "(a < b <= c not in d)");
  EXPECT_EQ(Parse("a if b else c if d else e"), "(a if b else (c if d else e))");
  EXPECT_EQ(Parse("a if b if c"), "((a if b else _) if c else _)");
  EXPECT_EQ(Parse("a or b if c and d else e"), "((a or b) if (c and d) else e)");
  EXPECT_EQ(Parse("(a or b) and c"), "((a or b) and c)");
}

TEST(TemplateExpressionParser, PostfixesFiltersAndTests) {
  EXPECT_EQ(Parse("a.b['c'].0[1](d).e"), "a.b['c'][0][1](d).e");
  EXPECT_EQ(Parse("a|b|c(1)|d.e"), "(((a|b())|c(1))|d.e())");
  EXPECT_EQ(Parse("-a|b"), "((-a)|b())");
  EXPECT_EQ(Parse("a + b|c"), "(a + (b|c()))");
  EXPECT_EQ(Parse("a.b|c.d is e"), "((a.b|c.d()) is e())");
  EXPECT_EQ(Parse("a is b and a is not c d or e"), "(((a is b()) and (not (a is c(d)))) or e)");
  EXPECT_EQ(Parse("a is in [1] and a is divisibleby(3)"), "((a is in([1])) and (a is divisibleby(3)))");
  EXPECT_EQ(Parse("a is eq b.c[0] + 1"), "((a is eq(b.c[0])) + 1)");
  EXPECT_EQ(Parse("a is b else c"), "ERROR: left over: name 'else'");
  EXPECT_EQ(Parse("a|b(c)(d)"), "(a|b(c))(d)");
}

TEST(TemplateExpressionParser, Slices) {
  EXPECT_EQ(Parse("a[1:2:3]"), "a[1:2:3]");
  EXPECT_EQ(Parse("a[:]"), "a[_:_:_]");
  EXPECT_EQ(Parse("a[::2]"), "a[_:_:2]");
  EXPECT_EQ(Parse("a[b:]"), "a[b:_:_]");
  EXPECT_EQ(Parse("a[:-1]"), "a[_:(-1):_]");
  EXPECT_EQ(Parse("a[1, 2]"), "a[<1, 2>]");
  EXPECT_EQ(Parse("a[]"), "a[<>]");
  EXPECT_THAT(Parse("a[1:2, 3]"), HasSubstr("expected ']', found ','"));
  EXPECT_THAT(Parse("a[3, 1:2]"), HasSubstr("ERROR"));
}

TEST(TemplateExpressionParser, LiteralsAndCalls) {
  EXPECT_EQ(Parse("[1, 'a' 'b', none, True, 1.5,]"), "[1, 'ab', None, True, 1.5]");
  EXPECT_EQ(Parse("{'a': 1, b: c,}"), "{'a':1;b:c;}");
  EXPECT_EQ(Parse("(), (1,), (2)"), "<<>, <1>, 2>");
  EXPECT_EQ(Parse("f(a, *b, c=d, **e)"), "f(a, c=d, *b, **e)");
  EXPECT_EQ(Parse("f(a=1,)"), "f(, a=1)");
}

TEST(TemplateExpressionParser, Errors) {
  EXPECT_THAT(Parse(""), HasSubstr("line 1: expected an expression, found '}}'"));
  EXPECT_THAT(Parse("\n1 +"), HasSubstr("line 2: expected an expression, found '}}'"));
  EXPECT_EQ(Parse("a b"), "ERROR: left over: name 'b'");
  EXPECT_THAT(Parse("{'a' 1}"), HasSubstr("expected ':', found a number"));
  EXPECT_THAT(Parse("f(a=1, b)"), HasSubstr("positional argument after a keyword"));
  EXPECT_THAT(Parse("f(**a, b=1)"), HasSubstr("after '**'"));
  EXPECT_THAT(Parse("f(*a, *b)"), HasSubstr("unexpected '*'"));
  EXPECT_THAT(Parse("f(a=1, a=2)"), HasSubstr("'a' is given twice"));
  EXPECT_THAT(Parse("a.'b'"), HasSubstr("a name or number after '.'"));
  EXPECT_THAT(Parse("a is b is c"), HasSubstr("cannot be chained"));
  EXPECT_THAT(Parse("a|1"), HasSubstr("expected a name"));
}

TEST(TemplateExpressionParser, DepthIsLimited) {
  const auto nest = [](int levels) {
    return std::string(static_cast<size_t>(levels), '(') + "a" + std::string(static_cast<size_t>(levels), ')');
  };
  EXPECT_EQ(Parse(nest(18)), "a");
  EXPECT_THAT(Parse(nest(20)), HasSubstr("passed the limit depth of 20"));
  EXPECT_THAT(Parse("a" + std::string(20, 'x')), HasSubstr("axx"));
  std::string chain = "a";
  for (int i = 0; i < 20; ++i) chain += ".b";
  EXPECT_THAT(Parse(chain), HasSubstr("passed the limit depth of 20"));
  std::string flat = "a";
  for (int i = 0; i < 1000; ++i) flat += " + b";
  EXPECT_THAT(Parse(flat), HasSubstr("(a + b + b"));
  std::string nots;
  for (int i = 0; i < 21; ++i) nots += "not ";
  EXPECT_THAT(Parse(nots + "a"), HasSubstr("passed the limit depth of 20"));
  EXPECT_THAT(Parse(std::string(21, '-') + "a"), HasSubstr("passed the limit depth of 20"));
}

TEST(TemplateExpressionParser, Targets) {
  const auto parse = [](absl::string_view source) -> std::string {
    ExpressionParser parser(*Tokenize(absl::StrCat("{{ ", source, " }}")), 20);
    parser.Take();
    const absl::StatusOr<Target> target = parser.ParseTarget(/*with_namespace=*/true, "in");
    if (!target.ok()) return absl::StrCat("ERROR: ", target.status().message());
    const auto show = [](auto& self, const Target& t) -> std::string {
      if (t.type == Target::Type::kName) return absl::StrCat("s", t.symbol);
      if (t.type == Target::Type::kAttribute) return absl::StrCat("s", t.symbol, ".", t.attribute);
      std::string shown = "(";
      for (const Target& item : t.items) absl::StrAppend(&shown, self(self, item), ",");
      return shown + ")";
    };
    return show(show, *target);
  };
  EXPECT_EQ(parse("a in x"), "s0");
  EXPECT_EQ(parse("a, (b, c), d.e"), "(s0,(s1,s2,),s3.e,)");
  EXPECT_EQ(parse("a,"), "(s0,)");
  for (const char* bad : {"1", "'a'", "true", "a.b.c[0]", "(a, b.c)", "[a]", "(1, a)", "in x"}) {
    const std::string result = parse(bad);
    EXPECT_TRUE(result.substr(0, 5) == "ERROR" || result == "s0.b") << bad << ": " << result;
  }
}

}  // namespace
}  // namespace pith::jinja
