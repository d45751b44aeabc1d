#include "tokenizer/template_symbols.h"

#include "absl/container/flat_hash_set.h"

namespace pith::jinja {
namespace {

class ScopeAnalyzer {
 public:
  explicit ScopeAnalyzer(size_t num_symbols) : mentions_(num_symbols, 0) {}

  // A scope with `parameters`, and expressions it evaluates before its body.
  void Analyze(const std::vector<Symbol>& parameters, const std::vector<const Expr*>& first, Body* body, std::vector<Symbol>* unset) {
    Level level{.unset = unset};
    for (const Symbol parameter : parameters) level.seen.insert(parameter);
    for (const Expr* expr : first) Load(*expr, &level);
    Walk(*body, /*in_branch=*/false, &level);
    for (const Symbol symbol : level.seen) ++mentions_[static_cast<size_t>(symbol)];
    WalkInner(body);
    for (const Symbol symbol : level.seen) --mentions_[static_cast<size_t>(symbol)];
  }

 private:
  struct Level {
    std::vector<Symbol>* unset;
    absl::flat_hash_set<Symbol> seen;
  };

  void Load(const Expr& expr, Level* level) {
    if (const auto* name = std::get_if<NameExpr>(&expr.node)) level->seen.insert(name->symbol);
    ForEachChild(expr, [&](const Expr& child) { Load(child, level); });
  }
  void Load(const ExprPtr& expr, Level* level) {
    if (expr != nullptr) Load(*expr, level);
  }
  void Store(Symbol symbol, bool in_branch, Level* level) {
    const bool is_new = level->seen.insert(symbol).second;
    if (is_new && !in_branch && mentions_[static_cast<size_t>(symbol)] == 0) level->unset->push_back(symbol);
  }
  void Store(const Target& target, bool in_branch, Level* level) {
    if (target.type == Target::Type::kName) Store(target.symbol, in_branch, level);
    if (target.type == Target::Type::kAttribute) level->seen.insert(target.symbol);
    for (const Target& item : target.items) Store(item, in_branch, level);
  }

  // What the statements do in their own scope, in jinja2's order.
  void Walk(const Body& body, bool in_branch, Level* level) {
    for (const Statement& statement : body) {
      std::visit([&](const auto& node) { Visit(node, in_branch, level); }, statement.node);
    }
  }
  void Visit(const OutputStatement& node, bool, Level* level) {
    for (const ExprPtr& expr : node.expressions) Load(expr, level);
  }
  void Visit(const IfStatement& node, bool, Level* level) {
    for (const auto& [condition, body] : node.branches) {
      Load(condition, level);
      Walk(body, /*in_branch=*/true, level);
    }
    Walk(node.otherwise, /*in_branch=*/true, level);
  }
  void Visit(const ForStatement& node, bool, Level* level) { Load(node.iterable, level); }
  void Visit(const SetStatement& node, bool in_branch, Level* level) {
    Load(node.value, level);
    Store(node.target, in_branch, level);
  }
  void Visit(const SetBlockStatement& node, bool in_branch, Level* level) { Store(node.target, in_branch, level); }
  void Visit(const FilterBlockStatement& node, bool, Level* level) { Load(node.filter, level); }
  void Visit(const MacroStatement& node, bool in_branch, Level* level) { Store(node.symbol, in_branch, level); }
  void Visit(const CallBlockStatement& node, bool, Level* level) { Load(node.call, level); }
  void Visit(const ScopeStatement& node, bool, Level* level) {
    for (const auto& [target, value] : node.bindings) Load(value, level);
  }
  void Visit(const LoopControlStatement&, bool, Level*) {}

  // The scopes that the statements open.
  void WalkInner(Body* body) {
    for (Statement& statement : *body) {
      std::visit([&](auto& node) { Open(node); }, statement.node);
    }
  }
  void Open(IfStatement& node) {
    for (auto& [condition, body] : node.branches) WalkInner(&body);
    WalkInner(&node.otherwise);
  }
  void Open(ForStatement& node) {
    std::vector<Symbol> targets;
    AppendNames(node.target, &targets);
    Analyze(targets, {}, &node.body, &node.body_unset);
    Analyze({}, {}, &node.otherwise, &node.otherwise_unset);
  }
  void Open(SetBlockStatement& node) { Analyze({}, {}, &node.body, &node.unset); }
  void Open(FilterBlockStatement& node) { Analyze({}, {}, &node.body, &node.unset); }
  void Open(MacroDefinition& macro) {
    std::vector<const Expr*> defaults;
    for (const ExprPtr& value : macro.defaults) defaults.push_back(value.get());
    Analyze(macro.parameters, defaults, &macro.body, &macro.unset);
  }
  void Open(MacroStatement& node) { Open(*node.macro); }
  void Open(CallBlockStatement& node) { Open(*node.caller); }
  void Open(ScopeStatement& node) {
    std::vector<Symbol> targets;
    for (const auto& [target, value] : node.bindings) AppendNames(target, &targets);
    Analyze(targets, {}, &node.body, &node.unset);
  }
  template <typename T> void Open(T&) {}

  static void AppendNames(const Target& target, std::vector<Symbol>* names) {
    if (target.type == Target::Type::kName) names->push_back(target.symbol);
    for (const Target& item : target.items) AppendNames(item, names);
  }

  std::vector<int> mentions_;  // by symbol: how many scopes around the current one mention it
};

}  // namespace

void FindUnsetNames(ParsedTemplate* parsed) { ScopeAnalyzer(parsed->symbols.size()).Analyze({}, {}, &parsed->body, &parsed->unset); }

}  // namespace pith::jinja
