// Walks a parsed template and collects its output.
//
// Scopes follow jinja2: a for iteration, macro, call, set block, filter block, with and generation each have one; if has none. An
// assignment goes to the innermost scope, a look-up outwards to the variables of the template and then to its inputs and globals.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "tokenizer/template_ast.h"
#include "tokenizer/template_runtime.h"

namespace pith::jinja {

// The outermost one, without a parent, holds nothing itself: the interpreter keeps its variables by symbol.
struct Scope {
  explicit Scope(std::shared_ptr<Scope> outer) : parent(std::move(outer)) {}
  void Set(Symbol symbol, Value value);
  const Value* Find(Symbol symbol) const;  // here only

  std::shared_ptr<Scope> parent;
  absl::InlinedVector<std::pair<Symbol, Value>, 4> variables;
};
using ScopePtr = std::shared_ptr<Scope>;

// A macro as a value, with the scope it was defined in.
struct MacroObject : MutableObject {
  MacroObject(const MacroDefinition* definition_in, ScopePtr closure_in) : definition(definition_in), closure(std::move(closure_in)) {}
  void Release() override { closure = nullptr; }

  const MacroDefinition* definition;
  ScopePtr closure;
};

using Variables = absl::flat_hash_map<std::string, Value>;

// One rendering. `parsed` and `runtime` must outlive it. Not thread-safe.
class Interpreter {
 public:
  Interpreter(const ParsedTemplate& parsed, Runtime& runtime, const Variables& inputs);

  // Errors: kInvalidArgument "line N: ..." for what the template does wrong, its own raise_exception, or a passed limit. Call once.
  absl::StatusOr<TextPtr> Run();

 private:
  friend class ConditionIterator;
  enum class Flow { kNext, kBreak, kContinue };

  absl::StatusOr<Flow> Execute(const Body& body);
  absl::StatusOr<Flow> Execute(const OutputStatement& statement);
  absl::StatusOr<Flow> Execute(const IfStatement& statement);
  absl::StatusOr<Flow> Execute(const ForStatement& statement);
  absl::StatusOr<Flow> Execute(const SetStatement& statement);
  absl::StatusOr<Flow> Execute(const SetBlockStatement& statement);
  absl::StatusOr<Flow> Execute(const FilterBlockStatement& statement);
  absl::StatusOr<Flow> Execute(const MacroStatement& statement);
  absl::StatusOr<Flow> Execute(const CallBlockStatement& statement);
  absl::StatusOr<Flow> Execute(const ScopeStatement& statement);
  absl::StatusOr<Flow> Execute(const LoopControlStatement& statement);
  absl::StatusOr<Flow> ExecuteLoop(const ForStatement& statement, const LoopPtr& loop, bool* completed);
  // Runs `body` in `scope` with its output in `*text`; no text after a break or continue.
  absl::StatusOr<Flow> Capture(const Body& body, ScopePtr scope, TextPtr* text);
  absl::StatusOr<Flow> ExecuteIn(ScopePtr scope, const Body& body);

  absl::StatusOr<Value> Evaluate(const Expr& expr);
  absl::StatusOr<Value> EvaluateOr(const ExprPtr& expr, Value otherwise);  // `otherwise` for a null expression
  absl::StatusOr<Value> EvaluateNode(const ConstantExpr& node);
  absl::StatusOr<Value> EvaluateNode(const NameExpr& node);
  absl::StatusOr<Value> EvaluateNode(const SequenceExpr& node);
  absl::StatusOr<Value> EvaluateNode(const DictExpr& node);
  absl::StatusOr<Value> EvaluateNode(const UnaryExpr& node);
  absl::StatusOr<Value> EvaluateNode(const ChainExpr& node);
  absl::StatusOr<Value> EvaluateNode(const LogicExpr& node);
  absl::StatusOr<Value> EvaluateNode(const CompareExpr& node);
  absl::StatusOr<Value> EvaluateNode(const ConcatExpr& node);
  absl::StatusOr<Value> EvaluateNode(const ConditionalExpr& node);
  absl::StatusOr<Value> EvaluateNode(const AttributeExpr& node);
  absl::StatusOr<Value> EvaluateNode(const SubscriptExpr& node);
  absl::StatusOr<Value> EvaluateNode(const SliceExpr& node);
  absl::StatusOr<Value> EvaluateNode(const CallExpr& node);
  absl::StatusOr<Value> EvaluateNode(const FilterExpr& node);
  absl::StatusOr<Value> EvaluateNode(const TestExpr& node);
  absl::StatusOr<bool> Compare(CompareOperator op, const Value& a, const Value& b);
  absl::StatusOr<Arguments> EvaluateArguments(const ArgumentsExpr& arguments);
  absl::StatusOr<Value> Call(const Value& callee, Arguments arguments);
  absl::StatusOr<Value> CallMacro(const MacroObject& macro, Arguments arguments);
  absl::Status BindParameters(const MacroDefinition& macro, Arguments arguments, Scope* scope, std::vector<size_t>* missing);

  Value Lookup(Symbol symbol) const;
  Value UnknownName(Symbol symbol) const { return unknown_names_[static_cast<size_t>(symbol)]; }
  absl::Status Assign(const Target& target, Value value);
  absl::Status Write(const Value& value);
  // The same for a filter or call block, which print text only.
  absl::Status WriteText(const Value& value, absl::string_view block);
  // A scope inside `outer` in which the names `unset` are undefined.
  ScopePtr NewScope(ScopePtr outer, const std::vector<Symbol>& unset) const;
  void Set(Symbol symbol, Value value);  // in the current scope
  MacroPtr MakeMacro(const MacroDefinition& definition);
  // Remembers where the error that is on its way up happened.
  void NoteLine(int line) { error_line_ = error_line_ == 0 ? line : error_line_; }

  const ParsedTemplate& parsed_;
  Runtime& runtime_;
  std::vector<std::optional<Value>> top_;  // by symbol: inputs and globals, and what the outermost scope sets over them
  std::vector<Value> unknown_names_;       // by symbol: what a name is that is nowhere set
  Symbol loop_ = -1, caller_ = -1, kwargs_ = -1, varargs_ = -1;
  ScopePtr scope_;
  TextBuilder* out_ = nullptr;
  TextPtr block_text_;  // input of the filter of a block
  int macro_depth_ = 0;
  int error_line_ = 0;
};

}  // namespace pith::jinja
