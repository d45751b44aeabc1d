// The parsed template: statements and expressions, as the interpreter walks them. Immutable after parsing, so threads may share it.
//
// Operators of one precedence form one flat node, so the height of an expression grows with brackets and postfixes only; the parser
// bounds it, and with it every recursion over the tree.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "tokenizer/template_function.h"
#include "tokenizer/template_value.h"

namespace pith::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<const Expr>;
using Symbol = int;  // index of a variable name in Template::symbols

struct ConstantExpr {
  Value value;
};
struct NameExpr {
  Symbol symbol;
};
struct SequenceExpr {
  ListObject::Type type;
  std::vector<ExprPtr> items;
};
struct DictExpr {
  std::vector<std::pair<ExprPtr, ExprPtr>> items;
};
struct UnaryExpr {
  enum class Operator { kNot, kNegate, kPlus };
  Operator op;
  ExprPtr operand;
};
enum class BinaryOperator { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kRemainder, kPower };
// first op operand op operand ..., from left to right.
struct ChainExpr {
  ExprPtr first;
  std::vector<std::pair<BinaryOperator, ExprPtr>> rest;
};
struct LogicExpr {
  bool is_and;
  std::vector<ExprPtr> operands;
};
enum class CompareOperator { kEqual, kNotEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual, kIn, kNotIn };
// a < b < c: every operand once, true when all hold.
struct CompareExpr {
  ExprPtr first;
  std::vector<std::pair<CompareOperator, ExprPtr>> rest;
};
struct ConcatExpr {  // a ~ b ~ c
  std::vector<ExprPtr> operands;
};
struct ConditionalExpr {
  ExprPtr condition, then;
  ExprPtr otherwise;  // may be null: undefined
};
struct AttributeExpr {
  ExprPtr object;
  std::string name;
};
struct SubscriptExpr {
  ExprPtr object, index;
};
struct SliceExpr {
  ExprPtr object;
  ExprPtr start, stop, step;  // may be null
};
struct ArgumentsExpr {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> keyword;
  ExprPtr more_positional, more_keyword;  // *args and **kwargs, may be null
};
struct CallExpr {
  ExprPtr callee;
  ArgumentsExpr arguments;
};
struct FilterExpr {
  ExprPtr input;  // null: the text of the filter block or set block it belongs to
  std::string name;
  const NativeFunction* filter;  // null when there is none of that name: an error once it runs
  ArgumentsExpr arguments;
};
struct TestExpr {
  ExprPtr input;
  std::string name;
  const NativeFunction* test;  // as FilterExpr::filter
  ArgumentsExpr arguments;
};

struct Expr {
  using Node = std::variant<ConstantExpr, NameExpr, SequenceExpr, DictExpr, UnaryExpr, ChainExpr, LogicExpr, CompareExpr, ConcatExpr,
                            ConditionalExpr, AttributeExpr, SubscriptExpr, SliceExpr, CallExpr, FilterExpr, TestExpr>;
  Node node;
  int line;
  int height;  // 1 for a leaf
};

// Computes the height.
ExprPtr MakeExpr(int line, Expr::Node node);
// Direct children, in the order jinja2 visits them. Null ones are left out.
void ForEachChild(const Expr& expr, absl::FunctionRef<void(const Expr&)> visit);

// What can be assigned to: a name, an attribute of a namespace, or a tuple of targets.
struct Target {
  enum class Type { kName, kAttribute, kTuple };
  Type type = Type::kName;
  Symbol symbol = 0;
  std::string attribute;
  std::vector<Target> items;
};

struct Statement;
using Body = std::vector<Statement>;
// Statements with scopes of their own have `unset` names: those that are undefined in the scope until it assigns them (template_symbols.h).

struct OutputStatement {
  std::vector<ExprPtr> expressions;
};
struct IfStatement {
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};
struct ForStatement {
  Target target;
  ExprPtr iterable;
  ExprPtr condition;  // may be null
  Body body, otherwise;
  std::vector<Symbol> body_unset, otherwise_unset;
};
struct SetStatement {
  Target target;
  ExprPtr value;
};
struct SetBlockStatement {
  Target target;
  ExprPtr filter;  // may be null
  Body body;
  std::vector<Symbol> unset;
};
struct FilterBlockStatement {
  ExprPtr filter;
  Body body;
  std::vector<Symbol> unset;
};
// The definition of a macro, or of the caller of a call block.
struct MacroDefinition {
  std::string name;
  std::vector<Symbol> parameters;
  std::vector<ExprPtr> defaults;  // of the last parameters
  Body body;
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;
  bool explicit_caller = false;  // caller is among the parameters
  std::vector<Symbol> unset;
};
struct MacroStatement {
  Symbol symbol;
  std::unique_ptr<MacroDefinition> macro;
};
struct CallBlockStatement {
  ExprPtr call;  // a CallExpr
  std::unique_ptr<MacroDefinition> caller;
};
// {% with %} and {% generation %}.
struct ScopeStatement {
  std::vector<std::pair<Target, ExprPtr>> bindings;
  Body body;
  std::vector<Symbol> unset;
};
struct LoopControlStatement {
  bool is_break;
};

struct Statement {
  using Node = std::variant<OutputStatement, IfStatement, ForStatement, SetStatement, SetBlockStatement, FilterBlockStatement,
                            MacroStatement, CallBlockStatement, ScopeStatement, LoopControlStatement>;
  Node node;
  int line;
};

struct ParsedTemplate {
  std::vector<std::string> symbols;
  Body body;
  std::vector<Symbol> unset;
};

// Those of `names` that `body` reads before it assigns them anywhere, in the order of the text.
std::vector<Symbol> FindUndeclared(const Body& body, std::vector<Symbol> names);

}  // namespace pith::jinja
