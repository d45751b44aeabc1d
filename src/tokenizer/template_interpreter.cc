#include "tokenizer/template_interpreter.h"

#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "base/status.h"
#include "tokenizer/template_globals.h"
#include "tokenizer/template_loop.h"
#include "tokenizer/template_repr.h"

namespace pith::jinja {

void Scope::Set(Symbol symbol, Value value) {
  for (auto& [name, held] : variables) {
    if (name == symbol) {
      held = std::move(value);
      return;
    }
  }
  variables.emplace_back(symbol, std::move(value));
}

const Value* Scope::Find(Symbol symbol) const {
  for (const auto& [name, held] : variables) {
    if (name == symbol) return &held;
  }
  return nullptr;
}

// The items of a for statement that pass its condition. The condition is evaluated when an item is asked for, so it sees what the
// iterations before it did.
class ConditionIterator : public IteratorObject {
 public:
  ConditionIterator(Interpreter& interpreter, const ForStatement& statement, IteratorPtr source)
      : IteratorObject(source->depth + 1),
        interpreter_(interpreter),
        statement_(statement),
        source_(std::move(source)),
        outer_(interpreter.scope_) {}

  absl::StatusOr<bool> Next(Runtime& runtime, Value* value) override {
    const ScopePtr scope = std::make_shared<Scope>(outer_);
    const absl::Cleanup restore = [this, saved = interpreter_.scope_] { interpreter_.scope_ = saved; };
    interpreter_.scope_ = scope;
    while (true) {
      RETURN_IF_ERROR(runtime.budget().Spend(1));
      ASSIGN_OR_RETURN(const bool more, source_->Next(runtime, value));
      if (!more) return false;
      RETURN_IF_ERROR(interpreter_.Assign(statement_.target, *value));
      ASSIGN_OR_RETURN(const Value passes, interpreter_.Evaluate(*statement_.condition));
      if (Truth(passes)) return true;
    }
  }

 private:
  Interpreter& interpreter_;
  const ForStatement& statement_;
  const IteratorPtr source_;
  const ScopePtr outer_;
};

Interpreter::Interpreter(const ParsedTemplate& parsed, Runtime& runtime, const Variables& inputs)
    : parsed_(parsed), runtime_(runtime), top_(parsed.symbols.size()), scope_(std::make_shared<Scope>(nullptr)) {
  for (size_t i = 0; i < parsed.symbols.size(); ++i) {
    const std::string& name = parsed.symbols[i];
    const auto symbol = static_cast<Symbol>(i);
    unknown_names_.push_back(MakeUndefined(absl::StrCat("'", name, "' is undefined")));
    if (name == "loop") loop_ = symbol;
    if (name == "caller") caller_ = symbol;
    if (name == "kwargs") kwargs_ = symbol;
    if (name == "varargs") varargs_ = symbol;
    const auto input = inputs.find(name);
    if (input != inputs.end()) {
      top_[i] = input->second;
    } else if (const NativeFunction* global = FindGlobal(name)) {
      top_[i] = Value(FunctionPtr(std::make_shared<const FunctionObject>(FunctionObject{global, Value()})));
    }
  }
}

absl::StatusOr<TextPtr> Interpreter::Run() {
  TextBuilder out;
  out_ = &out;
  for (const Symbol symbol : parsed_.unset) top_[static_cast<size_t>(symbol)] = UnknownName(symbol);
  const absl::StatusOr<Flow> flow = Execute(parsed_.body);
  if (!flow.ok()) return Annotate(flow.status(), absl::StrCat("line ", error_line_ > 0 ? error_line_ : 1));
  return std::move(out).Build();
}

Value Interpreter::Lookup(Symbol symbol) const {
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
    if (const Value* held = scope->Find(symbol)) return *held;
  }
  const auto index = static_cast<size_t>(symbol);
  return top_[index].has_value() ? *top_[index] : UnknownName(symbol);
}

ScopePtr Interpreter::NewScope(ScopePtr outer, const std::vector<Symbol>& unset) const {
  auto scope = std::make_shared<Scope>(std::move(outer));
  for (const Symbol symbol : unset) scope->Set(symbol, UnknownName(symbol));
  return scope;
}

void Interpreter::Set(Symbol symbol, Value value) {
  if (scope_->parent != nullptr) {
    scope_->Set(symbol, std::move(value));
  } else {
    top_[static_cast<size_t>(symbol)] = std::move(value);
  }
}

absl::Status Interpreter::Assign(const Target& target, Value value) {
  switch (target.type) {
    case Target::Type::kName: Set(target.symbol, std::move(value)); return absl::OkStatus();
    case Target::Type::kAttribute: {
      const Value object = Lookup(target.symbol);
      const NamespacePtr* ns = object.As<NamespacePtr>();
      if (ns == nullptr) return UsageError("only a namespace takes new attributes, found ", TypeName(object));
      if (absl::StartsWith(target.attribute, "_")) return UsageError("a namespace takes no attribute with a leading underscore");
      return (*ns)->attributes.Set(runtime_.budget(), MakeString(target.attribute), std::move(value));
    }
    default: {
      ASSIGN_OR_RETURN(ValueList items, Collect(runtime_, value));
      if (items.size() != target.items.size())
        return UsageError("expected ", target.items.size(), " values to unpack, found ", items.size());
      for (size_t i = 0; i < items.size(); ++i) RETURN_IF_ERROR(Assign(target.items[i], std::move(items[i])));
      return absl::OkStatus();
    }
  }
}

absl::Status Interpreter::Write(const Value& value) {
  ASSIGN_OR_RETURN(const TextPtr text, ToText(runtime_.budget(), value));
  RETURN_IF_ERROR(runtime_.budget().CheckText(out_->size() + text->bytes().size()));
  RETURN_IF_ERROR(runtime_.budget().SpendScan(text->bytes().size()));
  out_->Append(*text);
  return absl::OkStatus();
}

absl::Status Interpreter::WriteText(const Value& value, absl::string_view block) {
  if (!value.Is<TextPtr>()) return UsageError("expected the ", block, " block to give a str, found ", TypeName(value));
  return Write(value);
}

MacroPtr Interpreter::MakeMacro(const MacroDefinition& definition) {
  auto macro = std::make_shared<MacroObject>(&definition, scope_);
  runtime_.Retain(macro);
  return macro;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const Body& body) {
  const BudgetFrame frame(runtime_.budget());
  RETURN_IF_ERROR(frame.status());
  for (const Statement& statement : body) {
    RETURN_IF_ERROR(runtime_.budget().Spend(1));
    const absl::StatusOr<Flow> flow = std::visit([this](const auto& node) { return Execute(node); }, statement.node);
    if (!flow.ok()) NoteLine(statement.line);
    if (!flow.ok() || *flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::ExecuteIn(ScopePtr scope, const Body& body) {
  const absl::Cleanup restore = [this, saved = scope_] { scope_ = saved; };
  scope_ = std::move(scope);
  return Execute(body);
}

absl::StatusOr<Interpreter::Flow> Interpreter::Capture(const Body& body, ScopePtr scope, TextPtr* text) {
  TextBuilder captured;
  const absl::Cleanup restore = [this, saved = out_] { out_ = saved; };
  out_ = &captured;
  ASSIGN_OR_RETURN(const Flow flow, ExecuteIn(std::move(scope), body));
  *text = std::move(captured).Build();
  return flow;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const OutputStatement& statement) {
  for (const ExprPtr& expr : statement.expressions) {
    ASSIGN_OR_RETURN(const Value value, Evaluate(*expr));
    const absl::Status status = Write(value);
    if (!status.ok()) NoteLine(expr->line);
    RETURN_IF_ERROR(status);
  }
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const IfStatement& statement) {
  for (const auto& [condition, body] : statement.branches) {
    ASSIGN_OR_RETURN(const Value holds, Evaluate(*condition));
    if (Truth(holds)) return Execute(body);
  }
  return Execute(statement.otherwise);
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const ForStatement& statement) {
  ASSIGN_OR_RETURN(const Value iterable, Evaluate(*statement.iterable));
  ASSIGN_OR_RETURN(IteratorPtr source, Iterate(iterable));
  int64_t length = Length(iterable);
  if (statement.condition != nullptr) {
    source = std::make_shared<ConditionIterator>(*this, statement, std::move(source));
    length = -1;
  }
  const LoopPtr loop = std::make_shared<LoopObject>(std::move(source), length);
  bool completed = false;
  ASSIGN_OR_RETURN(const Flow flow, ExecuteLoop(statement, loop, &completed));
  if (flow != Flow::kNext || completed) return flow;
  return ExecuteIn(NewScope(scope_, statement.otherwise_unset), statement.otherwise);
}

// `*completed`: whether any iteration reached the end of the body; jinja2 runs the else branch otherwise, even after break or continue.
absl::StatusOr<Interpreter::Flow> Interpreter::ExecuteLoop(const ForStatement& statement, const LoopPtr& loop, bool* completed) {
  const absl::Cleanup restore = [this, saved = scope_] { scope_ = saved; };
  const ScopePtr outer = scope_;
  Value item;
  while (true) {
    scope_ = outer;
    RETURN_IF_ERROR(runtime_.budget().Spend(1));
    ASSIGN_OR_RETURN(const bool more, loop->Advance(runtime_, &item));
    if (!more) return Flow::kNext;
    scope_ = NewScope(outer, statement.body_unset);
    if (loop_ >= 0) scope_->Set(loop_, Value(loop));
    RETURN_IF_ERROR(Assign(statement.target, std::move(item)));
    ASSIGN_OR_RETURN(const Flow flow, Execute(statement.body));
    if (flow == Flow::kBreak) return Flow::kNext;
    *completed = *completed || flow == Flow::kNext;
  }
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const SetStatement& statement) {
  ASSIGN_OR_RETURN(Value value, Evaluate(*statement.value));
  RETURN_IF_ERROR(Assign(statement.target, std::move(value)));
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const SetBlockStatement& statement) {
  const ScopePtr scope = NewScope(scope_, statement.unset);
  TextPtr text;
  ASSIGN_OR_RETURN(const Flow flow, Capture(statement.body, scope, &text));
  if (flow != Flow::kNext) return flow;
  Value value(text);
  if (statement.filter != nullptr) {
    const absl::Cleanup restore = [this, saved = scope_, saved_text = block_text_] {
      scope_ = saved;
      block_text_ = saved_text;
    };
    scope_ = scope;
    block_text_ = text;
    ASSIGN_OR_RETURN(value, Evaluate(*statement.filter));
  }
  RETURN_IF_ERROR(Assign(statement.target, std::move(value)));
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const FilterBlockStatement& statement) {
  const absl::Cleanup restore = [this, saved = scope_, saved_text = block_text_] {
    scope_ = saved;
    block_text_ = saved_text;
  };
  const ScopePtr scope = NewScope(scope_, statement.unset);
  TextPtr text;
  ASSIGN_OR_RETURN(const Flow flow, Capture(statement.body, scope, &text));
  if (flow != Flow::kNext) return flow;
  scope_ = scope;
  block_text_ = text;
  ASSIGN_OR_RETURN(const Value value, Evaluate(*statement.filter));
  RETURN_IF_ERROR(WriteText(value, "filter"));
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const MacroStatement& statement) {
  Set(statement.symbol, Value(MakeMacro(*statement.macro)));
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const CallBlockStatement& statement) {
  const MacroPtr caller = MakeMacro(*statement.caller);
  const auto& call = std::get<CallExpr>(statement.call->node);
  ASSIGN_OR_RETURN(const Value callee, Evaluate(*call.callee));
  ASSIGN_OR_RETURN(Arguments arguments, EvaluateArguments(call.arguments));
  arguments.keyword.emplace_back("caller", Value(caller));
  ASSIGN_OR_RETURN(const Value value, Call(callee, std::move(arguments)));
  RETURN_IF_ERROR(WriteText(value, "call"));
  return Flow::kNext;
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const ScopeStatement& statement) {
  std::vector<Value> values;
  for (const auto& [target, expr] : statement.bindings) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*expr));
    values.push_back(std::move(value));
  }
  const absl::Cleanup restore = [this, saved = scope_] { scope_ = saved; };
  scope_ = NewScope(scope_, statement.unset);
  for (size_t i = 0; i < values.size(); ++i) RETURN_IF_ERROR(Assign(statement.bindings[i].first, std::move(values[i])));
  return Execute(statement.body);
}

absl::StatusOr<Interpreter::Flow> Interpreter::Execute(const LoopControlStatement& statement) {
  return statement.is_break ? Flow::kBreak : Flow::kContinue;
}

}  // namespace pith::jinja
