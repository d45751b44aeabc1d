#include "tokenizer/template_expression_parser.h"

#include <algorithm>
#include <optional>

#include "base/status.h"
#include "tokenizer/template_filters.h"
#include "tokenizer/template_predicates.h"

namespace pith::jinja {
namespace {

bool IsReserved(absl::string_view name) {
  return name == "true" || name == "false" || name == "none" || name == "True" || name == "False" || name == "None";
}

bool EndsTuple(const Token& token, absl::string_view end_name) {
  return token.kind == TokenKind::kVariableEnd || token.kind == TokenKind::kBlockEnd || token.IsOperator(")") ||
         (!end_name.empty() && token.IsName(end_name));
}

std::optional<CompareOperator> AsCompareOperator(const Token& token) {
  if (token.IsName("in")) return CompareOperator::kIn;
  if (token.kind != TokenKind::kOperator) return std::nullopt;
  if (token.text == "==") return CompareOperator::kEqual;
  if (token.text == "!=") return CompareOperator::kNotEqual;
  if (token.text == "<") return CompareOperator::kLess;
  if (token.text == "<=") return CompareOperator::kLessOrEqual;
  if (token.text == ">") return CompareOperator::kGreater;
  if (token.text == ">=") return CompareOperator::kGreaterOrEqual;
  return std::nullopt;
}

std::optional<BinaryOperator> AsSumOperator(const Token& token) {
  if (token.IsOperator("+")) return BinaryOperator::kAdd;
  if (token.IsOperator("-")) return BinaryOperator::kSubtract;
  return std::nullopt;
}

std::optional<BinaryOperator> AsProductOperator(const Token& token) {
  if (token.kind != TokenKind::kOperator) return std::nullopt;
  if (token.text == "*") return BinaryOperator::kMultiply;
  if (token.text == "/") return BinaryOperator::kDivide;
  if (token.text == "//") return BinaryOperator::kFloorDivide;
  if (token.text == "%") return BinaryOperator::kRemainder;
  return std::nullopt;
}

std::optional<BinaryOperator> AsPowerOperator(const Token& token) {
  return token.IsOperator("**") ? std::optional<BinaryOperator>(BinaryOperator::kPower) : std::nullopt;
}

// A test's argument may follow without brackets, if it starts like this.
bool StartsBareArgument(const Token& token) {
  switch (token.kind) {
    case TokenKind::kName: return token.text != "else" && token.text != "or" && token.text != "and";
    case TokenKind::kString:
    case TokenKind::kInteger:
    case TokenKind::kFloat: return true;
    default: return token.IsOperator("[") || token.IsOperator("{");
  }
}

}  // namespace

absl::Status ExpressionParser::Nested::status() const {
  if (parser_.depth_ <= parser_.max_depth_) return absl::OkStatus();
  return FailAt(parser_.Current().line, "passed the limit depth of ", parser_.max_depth_);
}

Token ExpressionParser::Take() {
  const Token& token = Current();
  if (position_ + 1 < tokens_.size()) ++position_;
  return token;
}

bool ExpressionParser::SkipName(absl::string_view name) {
  if (!Current().IsName(name)) return false;
  Take();
  return true;
}

bool ExpressionParser::SkipOperator(absl::string_view symbol) {
  if (!Current().IsOperator(symbol)) return false;
  Take();
  return true;
}

absl::Status ExpressionParser::Unexpected(absl::string_view expected) const {
  return FailAt(Current().line, "expected ", expected, ", found ", Describe(Current()));
}

absl::Status ExpressionParser::ExpectName(absl::string_view name) {
  return SkipName(name) ? absl::OkStatus() : Unexpected(absl::StrCat("'", name, "'"));
}

absl::Status ExpressionParser::ExpectOperator(absl::string_view symbol) {
  return SkipOperator(symbol) ? absl::OkStatus() : Unexpected(absl::StrCat("'", symbol, "'"));
}

absl::Status ExpressionParser::ExpectKind(TokenKind kind, absl::string_view what) {
  if (Current().kind != kind) return Unexpected(what);
  Take();
  return absl::OkStatus();
}

Symbol ExpressionParser::Intern(absl::string_view name) {
  const auto [at, inserted] = symbol_index_.emplace(name, static_cast<Symbol>(symbols_.size()));
  if (inserted) symbols_.emplace_back(name);
  return at->second;
}

absl::StatusOr<ExprPtr> ExpressionParser::Make(int line, Expr::Node node) const {
  ExprPtr expr = MakeExpr(line, std::move(node));
  if (expr->height > max_depth_) return FailAt(line, "passed the limit depth of ", max_depth_);
  return expr;
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseExpression(bool with_conditional) {
  const Nested nested(*this);
  RETURN_IF_ERROR(nested.status());
  const size_t mark = UnknownNamesMark();
  const int line = Current().line;
  ASSIGN_OR_RETURN(ExprPtr then, ParseOr());
  while (with_conditional && SkipName("if")) {
    ASSIGN_OR_RETURN(ExprPtr condition, ParseOr());
    ExprPtr otherwise;
    if (SkipName("else")) {
      ASSIGN_OR_RETURN(otherwise, ParseExpression());
    }
    ForgetUnknownNames(mark);
    ASSIGN_OR_RETURN(then, Make(line, ConditionalExpr{std::move(condition), std::move(then), std::move(otherwise)}));
  }
  return then;
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseOr() {
  const int line = Current().line;
  ASSIGN_OR_RETURN(ExprPtr first, ParseAnd());
  if (!Current().IsName("or")) return first;
  LogicExpr logic{.is_and = false};
  logic.operands.push_back(std::move(first));
  while (SkipName("or")) {
    ASSIGN_OR_RETURN(ExprPtr operand, ParseAnd());
    logic.operands.push_back(std::move(operand));
  }
  return Make(line, std::move(logic));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseAnd() {
  const int line = Current().line;
  ASSIGN_OR_RETURN(ExprPtr first, ParseNot());
  if (!Current().IsName("and")) return first;
  LogicExpr logic{.is_and = true};
  logic.operands.push_back(std::move(first));
  while (SkipName("and")) {
    ASSIGN_OR_RETURN(ExprPtr operand, ParseNot());
    logic.operands.push_back(std::move(operand));
  }
  return Make(line, std::move(logic));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseNot() {
  if (!Current().IsName("not")) return ParseCompare();
  const Nested nested(*this);
  RETURN_IF_ERROR(nested.status());
  const int line = Take().line;
  ASSIGN_OR_RETURN(ExprPtr operand, ParseNot());
  return Make(line, UnaryExpr{UnaryExpr::Operator::kNot, std::move(operand)});
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseCompare() {
  const int line = Current().line;
  ASSIGN_OR_RETURN(ExprPtr first, ParseSum());
  CompareExpr compare{.first = std::move(first)};
  while (true) {
    std::optional<CompareOperator> op = AsCompareOperator(Current());
    if (!op.has_value()) {
      if (!Current().IsName("not") || !LookAhead().IsName("in")) break;
      Take();
      op = CompareOperator::kNotIn;
    }
    Take();
    ASSIGN_OR_RETURN(ExprPtr operand, ParseSum());
    compare.rest.emplace_back(*op, std::move(operand));
  }
  if (compare.rest.empty()) return std::move(compare.first);
  return Make(line, std::move(compare));
}

template <typename Operator, typename Match, typename ParseOperand, typename Wrap>
absl::StatusOr<ExprPtr> ExpressionParser::ParseChain(Match match, ParseOperand parse_operand, Wrap wrap) {
  const int line = Current().line;
  ASSIGN_OR_RETURN(ExprPtr first, parse_operand());
  std::vector<std::pair<Operator, ExprPtr>> rest;
  while (const std::optional<Operator> op = match(Current())) {
    Take();
    ASSIGN_OR_RETURN(ExprPtr operand, parse_operand());
    rest.emplace_back(*op, std::move(operand));
  }
  if (rest.empty()) return first;
  return Make(line, wrap(std::move(first), std::move(rest)));
}

namespace {

ChainExpr WrapChain(ExprPtr first, std::vector<std::pair<BinaryOperator, ExprPtr>> rest) { return {std::move(first), std::move(rest)}; }

}  // namespace

absl::StatusOr<ExprPtr> ExpressionParser::ParseSum() {
  return ParseChain<BinaryOperator>(
      AsSumOperator, [&] { return ParseConcat(); }, WrapChain);
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseConcat() {
  const int line = Current().line;
  ASSIGN_OR_RETURN(ExprPtr first, ParseProduct());
  if (!Current().IsOperator("~")) return first;
  ConcatExpr concat;
  concat.operands.push_back(std::move(first));
  while (SkipOperator("~")) {
    ASSIGN_OR_RETURN(ExprPtr operand, ParseProduct());
    concat.operands.push_back(std::move(operand));
  }
  return Make(line, std::move(concat));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseProduct() {
  return ParseChain<BinaryOperator>(
      AsProductOperator, [&] { return ParsePower(); }, WrapChain);
}

absl::StatusOr<ExprPtr> ExpressionParser::ParsePower() {
  return ParseChain<BinaryOperator>(
      AsPowerOperator, [&] { return ParseSigned(/*with_filters=*/true); }, WrapChain);
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseSigned(bool with_filters) {
  ExprPtr expr;
  const int line = Current().line;
  if (const std::optional<BinaryOperator> sign = AsSumOperator(Current())) {
    const Nested nested(*this);
    RETURN_IF_ERROR(nested.status());
    Take();
    ASSIGN_OR_RETURN(ExprPtr operand, ParseSigned(/*with_filters=*/false));
    const auto op = *sign == BinaryOperator::kAdd ? UnaryExpr::Operator::kPlus : UnaryExpr::Operator::kNegate;
    ASSIGN_OR_RETURN(expr, Make(line, UnaryExpr{op, std::move(operand)}));
  } else {
    ASSIGN_OR_RETURN(expr, ParsePrimary());
  }
  ASSIGN_OR_RETURN(expr, ParsePostfixes(std::move(expr)));
  return with_filters ? ParseFiltersAndTests(std::move(expr)) : std::move(expr);
}

absl::StatusOr<ExprPtr> ExpressionParser::ParsePrimary() {
  if (Current().IsOperator("(")) {
    Take();
    ASSIGN_OR_RETURN(ExprPtr expr, ParseTuple(/*with_conditional=*/true, "", /*in_parentheses=*/true));
    RETURN_IF_ERROR(ExpectOperator(")"));
    return expr;
  }
  if (Current().IsOperator("[")) return ParseList();
  if (Current().IsOperator("{")) return ParseDict();
  return ParseNameOrLiteral();
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseNameOrLiteral() {
  const int line = Current().line;
  switch (Current().kind) {
    case TokenKind::kName: {
      const std::string name = Take().text;
      if (name == "true" || name == "True") return Make(line, ConstantExpr{Value(true)});
      if (name == "false" || name == "False") return Make(line, ConstantExpr{Value(false)});
      if (IsReserved(name)) return Make(line, ConstantExpr{Value(None{})});
      return Make(line, NameExpr{Intern(name)});
    }
    case TokenKind::kString: {
      std::string text = Take().text;
      while (Current().kind == TokenKind::kString) text += Take().text;
      return Make(line, ConstantExpr{MakeString(text)});
    }
    case TokenKind::kInteger: return Make(line, ConstantExpr{Value(Take().integer)});
    case TokenKind::kFloat: return Make(line, ConstantExpr{Value(Take().real)});
    default: return Unexpected("an expression");
  }
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseTuple(bool with_conditional, absl::string_view end_name, bool in_parentheses) {
  const int line = Current().line;
  SequenceExpr tuple{.type = ListObject::Type::kTuple};
  bool has_comma = false;
  while (!EndsTuple(Current(), end_name)) {
    ASSIGN_OR_RETURN(ExprPtr item, ParseExpression(with_conditional));
    tuple.items.push_back(std::move(item));
    if (!SkipOperator(",")) break;
    has_comma = true;
  }
  if (!has_comma && tuple.items.size() == 1) return std::move(tuple.items[0]);
  if (!has_comma && !in_parentheses) return Unexpected("an expression");
  return Make(line, std::move(tuple));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseList() {
  const int line = Take().line;
  SequenceExpr list{.type = ListObject::Type::kList};
  while (!Current().IsOperator("]")) {
    if (!list.items.empty()) RETURN_IF_ERROR(ExpectOperator(","));
    if (Current().IsOperator("]")) break;
    ASSIGN_OR_RETURN(ExprPtr item, ParseExpression());
    list.items.push_back(std::move(item));
  }
  Take();
  return Make(line, std::move(list));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseDict() {
  const int line = Take().line;
  DictExpr dict;
  while (!Current().IsOperator("}")) {
    if (!dict.items.empty()) RETURN_IF_ERROR(ExpectOperator(","));
    if (Current().IsOperator("}")) break;
    ASSIGN_OR_RETURN(ExprPtr key, ParseExpression());
    RETURN_IF_ERROR(ExpectOperator(":"));
    ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    dict.items.emplace_back(std::move(key), std::move(value));
  }
  Take();
  return Make(line, std::move(dict));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParsePostfixes(ExprPtr object) {
  while (true) {
    if (Current().IsOperator(".")) {
      ASSIGN_OR_RETURN(object, ParseAttribute(std::move(object)));
    } else if (Current().IsOperator("[")) {
      ASSIGN_OR_RETURN(object, ParseSubscript(std::move(object)));
    } else if (Current().IsOperator("(")) {
      ASSIGN_OR_RETURN(object, ParseCall(std::move(object)));
    } else {
      return object;
    }
  }
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseAttribute(ExprPtr object) {
  const int line = Take().line;
  if (Current().kind == TokenKind::kName) return Make(line, AttributeExpr{std::move(object), Take().text});
  if (Current().kind != TokenKind::kInteger) return Unexpected("a name or number after '.'");
  ASSIGN_OR_RETURN(ExprPtr index, Make(line, ConstantExpr{Value(Take().integer)}));
  return Make(line, SubscriptExpr{std::move(object), std::move(index)});
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseSubscript(ExprPtr object) {
  const int line = Take().line;
  SequenceExpr indices{.type = ListObject::Type::kTuple};
  while (!Current().IsOperator("]")) {
    if (!indices.items.empty()) RETURN_IF_ERROR(ExpectOperator(","));
    ExprPtr index;
    if (!Current().IsOperator(":")) {
      ASSIGN_OR_RETURN(index, ParseExpression());
    }
    if (Current().IsOperator(":")) {
      if (!indices.items.empty()) return Unexpected("']'");
      return ParseSlice(std::move(object), std::move(index), line);
    }
    indices.items.push_back(std::move(index));
  }
  Take();
  if (indices.items.size() == 1) return Make(line, SubscriptExpr{std::move(object), std::move(indices.items[0])});
  ASSIGN_OR_RETURN(ExprPtr index, Make(line, std::move(indices)));
  return Make(line, SubscriptExpr{std::move(object), std::move(index)});
}

// At the first ":" of "object[start:stop:step]".
absl::StatusOr<ExprPtr> ExpressionParser::ParseSlice(ExprPtr object, ExprPtr start, int line) {
  SliceExpr slice{.object = std::move(object), .start = std::move(start)};
  for (ExprPtr* bound : {&slice.stop, &slice.step}) {
    if (!SkipOperator(":")) break;
    if (Current().IsOperator(":") || Current().IsOperator("]")) continue;
    ASSIGN_OR_RETURN(*bound, ParseExpression());
  }
  RETURN_IF_ERROR(ExpectOperator("]"));
  return Make(line, std::move(slice));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseCall(ExprPtr callee) {
  const int line = Current().line;
  ASSIGN_OR_RETURN(ArgumentsExpr arguments, ParseArguments());
  return Make(line, CallExpr{std::move(callee), std::move(arguments)});
}

absl::StatusOr<ArgumentsExpr> ExpressionParser::ParseArguments() {
  RETURN_IF_ERROR(ExpectOperator("("));
  ArgumentsExpr arguments;
  for (bool first = true; !Current().IsOperator(")"); first = false) {
    if (!first) {
      RETURN_IF_ERROR(ExpectOperator(","));
      if (Current().IsOperator(")")) break;
    }
    RETURN_IF_ERROR(ParseArgument(&arguments));
  }
  Take();
  return arguments;
}

absl::Status ExpressionParser::ParseArgument(ArgumentsExpr* arguments) {
  const int line = Current().line;
  const bool after_more = arguments->more_positional != nullptr || arguments->more_keyword != nullptr;
  if (SkipOperator("*")) {
    if (after_more) return FailAt(line, "unexpected '*' in a call");
    ASSIGN_OR_RETURN(arguments->more_positional, ParseExpression());
    return absl::OkStatus();
  }
  if (arguments->more_keyword != nullptr) return FailAt(line, "unexpected argument after '**' in a call");
  if (SkipOperator("**")) {
    ASSIGN_OR_RETURN(arguments->more_keyword, ParseExpression());
    return absl::OkStatus();
  }
  if (Current().kind == TokenKind::kName && LookAhead().IsOperator("=")) {
    std::string name = Take().text;
    Take();
    for (const auto& [other, value] : arguments->keyword) {
      if (other == name) return FailAt(line, "keyword argument '", name, "' is given twice");
    }
    ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    arguments->keyword.emplace_back(std::move(name), std::move(value));
    return absl::OkStatus();
  }
  if (after_more || !arguments->keyword.empty()) return FailAt(line, "positional argument after a keyword argument in a call");
  ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
  arguments->positional.push_back(std::move(value));
  return absl::OkStatus();
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseFiltersAndTests(ExprPtr input) {
  while (true) {
    if (Current().IsOperator("|")) {
      ASSIGN_OR_RETURN(input, ParseFilters(std::move(input), /*inline_start=*/false));
    } else if (Current().IsName("is")) {
      ASSIGN_OR_RETURN(input, ParseTest(std::move(input)));
    } else if (Current().IsOperator("(")) {
      ASSIGN_OR_RETURN(input, ParseCall(std::move(input)));
    } else {
      return input;
    }
  }
}

absl::StatusOr<std::string> ExpressionParser::ParseDottedName() {
  if (Current().kind != TokenKind::kName) return Unexpected("a name");
  std::string name = Take().text;
  while (SkipOperator(".")) {
    if (Current().kind != TokenKind::kName) return Unexpected("a name");
    absl::StrAppend(&name, ".", Take().text);
  }
  return name;
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseFilters(ExprPtr input, bool inline_start) {
  while (inline_start || SkipOperator("|")) {
    inline_start = false;
    const int line = Current().line;
    ASSIGN_OR_RETURN(std::string name, ParseDottedName());
    ArgumentsExpr arguments;
    if (Current().IsOperator("(")) {
      ASSIGN_OR_RETURN(arguments, ParseArguments());
    }
    const NativeFunction* filter = FindFilter(name);
    if (filter == nullptr) unknown_names_.push_back(FailAt(line, "no filter named '", name, "'"));
    ASSIGN_OR_RETURN(input, Make(line, FilterExpr{std::move(input), std::move(name), filter, std::move(arguments)}));
  }
  return input;
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseTest(ExprPtr input) {
  const int line = Take().line;
  const bool negated = SkipName("not");
  ASSIGN_OR_RETURN(std::string name, ParseDottedName());
  ArgumentsExpr arguments;
  if (Current().IsOperator("(")) {
    ASSIGN_OR_RETURN(arguments, ParseArguments());
  } else if (StartsBareArgument(Current())) {
    if (Current().IsName("is")) return FailAt(line, "tests cannot be chained with 'is'");
    ASSIGN_OR_RETURN(ExprPtr argument, ParsePrimary());
    ASSIGN_OR_RETURN(argument, ParsePostfixes(std::move(argument)));
    arguments.positional.push_back(std::move(argument));
  }
  const NativeFunction* test = FindTest(name);
  if (test == nullptr) unknown_names_.push_back(FailAt(line, "no test named '", name, "'"));
  ASSIGN_OR_RETURN(ExprPtr expr, Make(line, TestExpr{std::move(input), std::move(name), test, std::move(arguments)}));
  return negated ? Make(line, UnaryExpr{UnaryExpr::Operator::kNot, std::move(expr)}) : std::move(expr);
}

absl::StatusOr<Target> ExpressionParser::NameTarget(Symbol symbol, int line) {
  if (IsReserved(symbols_[symbol])) return FailAt(line, "cannot assign to '", symbols_[symbol], "'");
  if (symbols_[symbol] == "loop") ++loop_assignments_;
  return Target{.type = Target::Type::kName, .symbol = symbol};
}

absl::StatusOr<Symbol> ExpressionParser::ParseTargetName() {
  if (Current().kind != TokenKind::kName) return Unexpected("a name");
  if (IsReserved(Current().text)) return FailAt(Current().line, "cannot assign to '", Current().text, "'");
  return Intern(Take().text);
}

absl::StatusOr<Target> ExpressionParser::ToTarget(const Expr& expr) {
  if (const auto* name = std::get_if<NameExpr>(&expr.node)) return NameTarget(name->symbol, expr.line);
  const auto* tuple = std::get_if<SequenceExpr>(&expr.node);
  if (tuple == nullptr || tuple->type != ListObject::Type::kTuple) return FailAt(expr.line, "cannot assign to this expression");
  Target target{.type = Target::Type::kTuple};
  for (const ExprPtr& item : tuple->items) {
    ASSIGN_OR_RETURN(Target item_target, ToTarget(*item));
    target.items.push_back(std::move(item_target));
  }
  return target;
}

absl::StatusOr<Target> ExpressionParser::ParseTargetItem(bool with_namespace) {
  const int line = Current().line;
  if (Current().kind == TokenKind::kName && !IsReserved(Current().text)) {
    const Symbol symbol = Intern(Take().text);
    if (!with_namespace || !SkipOperator(".")) return NameTarget(symbol, line);
    if (Current().kind != TokenKind::kName) return Unexpected("a name after '.'");
    return Target{.type = Target::Type::kAttribute, .symbol = symbol, .attribute = Take().text};
  }
  ASSIGN_OR_RETURN(const ExprPtr expr, ParsePrimary());
  return ToTarget(*expr);
}

absl::StatusOr<Target> ExpressionParser::ParseTarget(bool with_namespace, absl::string_view end_name) {
  Target tuple{.type = Target::Type::kTuple};
  bool has_comma = false;
  while (!EndsTuple(Current(), end_name)) {
    ASSIGN_OR_RETURN(Target item, ParseTargetItem(with_namespace));
    tuple.items.push_back(std::move(item));
    if (!SkipOperator(",")) break;
    has_comma = true;
  }
  if (has_comma) return tuple;
  if (tuple.items.empty()) return Unexpected("a name to assign to");
  return std::move(tuple.items[0]);
}

}  // namespace pith::jinja
