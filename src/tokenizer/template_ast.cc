#include "tokenizer/template_ast.h"

#include <algorithm>

namespace pith::jinja {
namespace {

using Visit = absl::FunctionRef<void(const Expr&)>;

void VisitOne(const ExprPtr& expr, Visit visit) {
  if (expr != nullptr) visit(*expr);
}

void VisitAll(const std::vector<ExprPtr>& expressions, Visit visit) {
  for (const ExprPtr& expr : expressions) VisitOne(expr, visit);
}

template <typename Operator> void VisitOperands(const ExprPtr& first, const std::vector<std::pair<Operator, ExprPtr>>& rest, Visit visit) {
  VisitOne(first, visit);
  for (const auto& [op, operand] : rest) VisitOne(operand, visit);
}

void VisitArguments(const ArgumentsExpr& arguments, Visit visit) {
  VisitAll(arguments.positional, visit);
  for (const auto& [name, value] : arguments.keyword) VisitOne(value, visit);
  VisitOne(arguments.more_positional, visit);
  VisitOne(arguments.more_keyword, visit);
}

void VisitChildren(const ConstantExpr&, Visit) {}
void VisitChildren(const NameExpr&, Visit) {}
void VisitChildren(const SequenceExpr& node, Visit visit) { VisitAll(node.items, visit); }
void VisitChildren(const DictExpr& node, Visit visit) {
  for (const auto& [key, value] : node.items) {
    VisitOne(key, visit);
    VisitOne(value, visit);
  }
}
void VisitChildren(const UnaryExpr& node, Visit visit) { VisitOne(node.operand, visit); }
void VisitChildren(const ChainExpr& node, Visit visit) { VisitOperands(node.first, node.rest, visit); }
void VisitChildren(const LogicExpr& node, Visit visit) { VisitAll(node.operands, visit); }
void VisitChildren(const CompareExpr& node, Visit visit) { VisitOperands(node.first, node.rest, visit); }
void VisitChildren(const ConcatExpr& node, Visit visit) { VisitAll(node.operands, visit); }
void VisitChildren(const ConditionalExpr& node, Visit visit) {
  VisitOne(node.condition, visit);
  VisitOne(node.then, visit);
  VisitOne(node.otherwise, visit);
}
void VisitChildren(const AttributeExpr& node, Visit visit) { VisitOne(node.object, visit); }
void VisitChildren(const SubscriptExpr& node, Visit visit) {
  VisitOne(node.object, visit);
  VisitOne(node.index, visit);
}
void VisitChildren(const SliceExpr& node, Visit visit) {
  VisitOne(node.object, visit);
  VisitOne(node.start, visit);
  VisitOne(node.stop, visit);
  VisitOne(node.step, visit);
}
void VisitChildren(const CallExpr& node, Visit visit) {
  VisitOne(node.callee, visit);
  VisitArguments(node.arguments, visit);
}
void VisitChildren(const FilterExpr& node, Visit visit) {
  VisitOne(node.input, visit);
  VisitArguments(node.arguments, visit);
}
void VisitChildren(const TestExpr& node, Visit visit) {
  VisitOne(node.input, visit);
  VisitArguments(node.arguments, visit);
}

// Follows jinja2's visitor of undeclared names, field by field in its order.
class UndeclaredFinder {
 public:
  explicit UndeclaredFinder(std::vector<Symbol> names) : names_(std::move(names)) {}

  void Walk(const Body& body) {
    for (const Statement& statement : body) {
      std::visit([&](const auto& node) { Walk(node); }, statement.node);
    }
  }
  std::vector<Symbol> Take() && { return std::move(undeclared_); }

 private:
  void Walk(const ExprPtr& expr) {
    if (expr != nullptr) Walk(*expr);
  }
  void Walk(const Expr& expr) {
    if (const auto* name = std::get_if<NameExpr>(&expr.node)) {
      const bool sought = std::find(names_.begin(), names_.end(), name->symbol) != names_.end();
      const bool known = std::find(undeclared_.begin(), undeclared_.end(), name->symbol) != undeclared_.end();
      if (sought && !known) undeclared_.push_back(name->symbol);
    }
    ForEachChild(expr, [&](const Expr& child) { Walk(child); });
  }
  void Declare(Symbol symbol) { names_.erase(std::remove(names_.begin(), names_.end(), symbol), names_.end()); }
  void Walk(const Target& target) {
    if (target.type == Target::Type::kName) Declare(target.symbol);
    for (const Target& item : target.items) Walk(item);
  }
  void Walk(const OutputStatement& node) {
    for (const ExprPtr& expr : node.expressions) Walk(expr);
  }
  void Walk(const IfStatement& node) {
    for (const auto& [condition, body] : node.branches) {
      Walk(condition);
      Walk(body);
    }
    Walk(node.otherwise);
  }
  void Walk(const ForStatement& node) {
    Walk(node.target);
    Walk(node.iterable);
    Walk(node.body);
    Walk(node.otherwise);
    Walk(node.condition);
  }
  void Walk(const SetStatement& node) {
    Walk(node.target);
    Walk(node.value);
  }
  void Walk(const SetBlockStatement& node) {
    Walk(node.target);
    Walk(node.filter);
    Walk(node.body);
  }
  void Walk(const FilterBlockStatement& node) {
    Walk(node.body);
    Walk(node.filter);
  }
  void Walk(const MacroDefinition& macro) {
    for (const Symbol parameter : macro.parameters) Declare(parameter);
    for (const ExprPtr& value : macro.defaults) Walk(value);
    Walk(macro.body);
  }
  void Walk(const MacroStatement& node) { Walk(*node.macro); }
  void Walk(const CallBlockStatement& node) {
    Walk(node.call);
    Walk(*node.caller);
  }
  void Walk(const ScopeStatement& node) {
    for (const auto& [target, value] : node.bindings) Walk(target);
    for (const auto& [target, value] : node.bindings) Walk(value);
    Walk(node.body);
  }
  void Walk(const LoopControlStatement&) {}

  std::vector<Symbol> names_, undeclared_;
};

}  // namespace

ExprPtr MakeExpr(int line, Expr::Node node) {
  auto expr = std::make_unique<Expr>(Expr{std::move(node), line, 1});
  int children = 0;
  ForEachChild(*expr, [&](const Expr& child) { children = std::max(children, child.height); });
  expr->height = children + 1;
  return expr;
}

void ForEachChild(const Expr& expr, Visit visit) {
  std::visit([&](const auto& node) { VisitChildren(node, visit); }, expr.node);
}

std::vector<Symbol> FindUndeclared(const Body& body, std::vector<Symbol> names) {
  UndeclaredFinder finder(std::move(names));
  finder.Walk(body);
  return std::move(finder).Take();
}

}  // namespace pith::jinja
