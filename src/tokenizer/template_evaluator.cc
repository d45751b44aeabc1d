// The expressions of the interpreter.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "tokenizer/template_compare.h"
#include "tokenizer/template_interpreter.h"
#include "tokenizer/template_loop.h"
#include "tokenizer/template_methods.h"
#include "tokenizer/template_operators.h"
#include "tokenizer/template_repr.h"
#include "tokenizer/template_text_operations.h"

namespace pith::jinja {

absl::StatusOr<Value> Interpreter::Evaluate(const Expr& expr) {
  const BudgetFrame frame(runtime_.budget());
  absl::Status status = frame.status();
  if (status.ok()) status = runtime_.budget().Spend(1);
  if (!status.ok()) {
    NoteLine(expr.line);
    return status;
  }
  absl::StatusOr<Value> value = std::visit([this](const auto& node) { return EvaluateNode(node); }, expr.node);
  if (!value.ok()) NoteLine(expr.line);
  return value;
}

absl::StatusOr<Value> Interpreter::EvaluateOr(const ExprPtr& expr, Value otherwise) {
  if (expr != nullptr) return Evaluate(*expr);
  return otherwise;
}

absl::StatusOr<Value> Interpreter::EvaluateNode(const ConstantExpr& node) { return node.value; }

absl::StatusOr<Value> Interpreter::EvaluateNode(const NameExpr& node) { return Lookup(node.symbol); }

absl::StatusOr<Value> Interpreter::EvaluateNode(const SequenceExpr& node) {
  ValueList items;
  items.reserve(node.items.size());
  for (const ExprPtr& expr : node.items) {
    ASSIGN_OR_RETURN(Value item, Evaluate(*expr));
    items.push_back(std::move(item));
  }
  return MakeList(runtime_.budget(), std::move(items), node.type);
}

absl::StatusOr<Value> Interpreter::EvaluateNode(const DictExpr& node) {
  DictItems items;
  for (const auto& [key_expr, value_expr] : node.items) {
    ASSIGN_OR_RETURN(Value key, Evaluate(*key_expr));
    ASSIGN_OR_RETURN(Value value, Evaluate(*value_expr));
    RETURN_IF_ERROR(items.Set(runtime_.budget(), std::move(key), std::move(value)));
  }
  return MakeDict(runtime_.budget(), std::move(items));
}

absl::StatusOr<Value> Interpreter::EvaluateNode(const UnaryExpr& node) {
  ASSIGN_OR_RETURN(const Value operand, Evaluate(*node.operand));
  if (node.op == UnaryExpr::Operator::kNot) return Value(!Truth(operand));
  return ApplySign(node.op == UnaryExpr::Operator::kNegate, operand);
}

absl::StatusOr<Value> Interpreter::EvaluateNode(const ChainExpr& node) {
  ASSIGN_OR_RETURN(Value value, Evaluate(*node.first));
  for (const auto& [op, expr] : node.rest) {
    ASSIGN_OR_RETURN(const Value operand, Evaluate(*expr));
    ASSIGN_OR_RETURN(value, ApplyBinary(runtime_, op, value, operand));
  }
  return value;
}

absl::StatusOr<Value> Interpreter::EvaluateNode(const LogicExpr& node) {
  Value value;
  for (const ExprPtr& expr : node.operands) {
    ASSIGN_OR_RETURN(value, Evaluate(*expr));
    if (Truth(value) != node.is_and) break;
  }
  return value;
}

absl::StatusOr<bool> Interpreter::Compare(CompareOperator op, const Value& a, const Value& b) {
  Budget& budget = runtime_.budget();
  switch (op) {
    case CompareOperator::kEqual: return Equals(budget, a, b);
    case CompareOperator::kNotEqual: {
      ASSIGN_OR_RETURN(const bool same, Equals(budget, a, b));
      return !same;
    }
    case CompareOperator::kIn: return Contains(runtime_, b, a);
    case CompareOperator::kNotIn: {
      ASSIGN_OR_RETURN(const bool contained, Contains(runtime_, b, a));
      return !contained;
    }
    default: break;
  }
  if (a.Is<Undefined>() || b.Is<Undefined>()) return UndefinedError(a.Is<Undefined>() ? a : b);
  if (op == CompareOperator::kLess || op == CompareOperator::kLessOrEqual)
    return Ordered(budget, a, b, op == CompareOperator::kLessOrEqual);
  return Ordered(budget, b, a, op == CompareOperator::kGreaterOrEqual);
}

absl::StatusOr<Value> Interpreter::EvaluateNode(const CompareExpr& node) {
  ASSIGN_OR_RETURN(Value left, Evaluate(*node.first));
  for (const auto& [op, expr] : node.rest) {
    ASSIGN_OR_RETURN(Value right, Evaluate(*expr));
    ASSIGN_OR_RETURN(const bool holds, Compare(op, left, right));
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

absl::StatusOr<Value> Interpreter::EvaluateNode(const ConcatExpr& node) {
  std::vector<TextPtr> texts;
  texts.reserve(node.operands.size());
  for (const ExprPtr& expr : node.operands) {
    ASSIGN_OR_RETURN(const Value value, Evaluate(*expr));
    ASSIGN_OR_RETURN(TextPtr text, ToText(runtime_.budget(), value));
    texts.push_back(std::move(text));
  }
  ASSIGN_OR_RETURN(TextPtr joined, ConcatTexts(runtime_.budget(), texts, /*markup=*/false));
  return Value(std::move(joined));
}

absl::StatusOr<Value> Interpreter::EvaluateNode(const ConditionalExpr& node) {
  ASSIGN_OR_RETURN(const Value condition, Evaluate(*node.condition));
  if (Truth(condition)) return Evaluate(*node.then);
  return EvaluateOr(node.otherwise, MakeUndefined("an inline if without else evaluated to false"));
}

absl::StatusOr<Value> Interpreter::EvaluateNode(const AttributeExpr& node) {
  ASSIGN_OR_RETURN(const Value object, Evaluate(*node.object));
  return GetAttribute(runtime_, object, node.name);
}

absl::StatusOr<Value> Interpreter::EvaluateNode(const SubscriptExpr& node) {
  ASSIGN_OR_RETURN(const Value object, Evaluate(*node.object));
  ASSIGN_OR_RETURN(const Value index, Evaluate(*node.index));
  return GetItem(runtime_, object, index);
}

absl::StatusOr<Value> Interpreter::EvaluateNode(const SliceExpr& node) {
  ASSIGN_OR_RETURN(const Value object, Evaluate(*node.object));
  ASSIGN_OR_RETURN(const Value start, EvaluateOr(node.start, Value(None{})));
  ASSIGN_OR_RETURN(const Value stop, EvaluateOr(node.stop, Value(None{})));
  ASSIGN_OR_RETURN(const Value step, EvaluateOr(node.step, Value(None{})));
  return GetSlice(runtime_, object, start, stop, step);
}

absl::StatusOr<Arguments> Interpreter::EvaluateArguments(const ArgumentsExpr& expr) {
  Arguments arguments;
  for (const ExprPtr& argument : expr.positional) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*argument));
    arguments.positional.push_back(std::move(value));
  }
  for (const auto& [name, argument] : expr.keyword) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*argument));
    arguments.keyword.emplace_back(name, std::move(value));
  }
  if (expr.more_positional != nullptr) {
    ASSIGN_OR_RETURN(const Value more, Evaluate(*expr.more_positional));
    ASSIGN_OR_RETURN(const ValueList items, Collect(runtime_, more));
    arguments.positional.insert(arguments.positional.end(), items.begin(), items.end());
  }
  if (expr.more_keyword != nullptr) {
    ASSIGN_OR_RETURN(const Value more, Evaluate(*expr.more_keyword));
    const DictPtr* dict = more.As<DictPtr>();
    if (dict == nullptr) return UsageError("expected a dict behind '**', found ", TypeName(more));
    for (const auto& [key, value] : (*dict)->items.items()) {
      const TextPtr* name = key.As<TextPtr>();
      if (name == nullptr) return UsageError("expected keys that are str behind '**', found ", TypeName(key));
      const auto same = [&](const auto& given) { return given.first == (*name)->bytes(); };
      if (std::any_of(arguments.keyword.begin(), arguments.keyword.end(), same)) {
        return UsageError("keyword argument '", Printable((*name)->bytes()), "' is given twice");
      }
      RETURN_IF_ERROR(runtime_.budget().Spend(1 + static_cast<int64_t>(arguments.keyword.size())));
      arguments.keyword.emplace_back((*name)->bytes(), value);
    }
  }
  return arguments;
}

absl::StatusOr<Value> Interpreter::Call(const Value& callee, Arguments arguments) {
  if (const FunctionPtr* function = callee.As<FunctionPtr>()) {
    return CallNative(runtime_, *(*function)->native, (*function)->self, std::move(arguments));
  }
  if (const MacroPtr* macro = callee.As<MacroPtr>()) return CallMacro(**macro, std::move(arguments));
  if (callee.Is<Undefined>()) return UndefinedError(callee);
  return UsageError("expected something to call, found ", TypeName(callee));
}

absl::StatusOr<Value> Interpreter::EvaluateNode(const CallExpr& node) {
  ASSIGN_OR_RETURN(const Value callee, Evaluate(*node.callee));
  ASSIGN_OR_RETURN(Arguments arguments, EvaluateArguments(node.arguments));
  return Call(callee, std::move(arguments));
}

absl::StatusOr<Value> Interpreter::EvaluateNode(const FilterExpr& node) {
  ASSIGN_OR_RETURN(const Value input, EvaluateOr(node.input, Value(block_text_)));
  ASSIGN_OR_RETURN(Arguments arguments, EvaluateArguments(node.arguments));
  if (node.filter == nullptr) return UsageError("no filter named '", node.name, "'");
  return CallNative(runtime_, *node.filter, input, std::move(arguments));
}

absl::StatusOr<Value> Interpreter::EvaluateNode(const TestExpr& node) {
  ASSIGN_OR_RETURN(const Value input, Evaluate(*node.input));
  ASSIGN_OR_RETURN(Arguments arguments, EvaluateArguments(node.arguments));
  if (node.test == nullptr) return UsageError("no test named '", node.name, "'");
  return CallNative(runtime_, *node.test, input, std::move(arguments));
}

// The rules of jinja2's Macro.__call__. `*missing`: parameters to fill with their defaults; until then they are undefined.
absl::Status Interpreter::BindParameters(const MacroDefinition& macro, Arguments arguments, Scope* scope, std::vector<size_t>* missing) {
  const size_t count = macro.parameters.size();
  bool has_caller = macro.explicit_caller;
  for (size_t i = 0; i < count; ++i) {
    const std::string& name = parsed_.symbols[static_cast<size_t>(macro.parameters[i])];
    bool found = i < arguments.positional.size();
    Value value = found ? std::move(arguments.positional[i]) : arguments.TakeKeyword(name, &found);
    if (!found) {
      missing->push_back(i);
      value = MakeUndefined(absl::StrCat("parameter '", name, "' was not provided"));
    }
    scope->Set(macro.parameters[i], std::move(value));
  }
  if (macro.uses_caller && !has_caller) {
    Value caller = arguments.TakeKeyword("caller", &has_caller);
    scope->Set(caller_, has_caller && !caller.Is<None>() ? std::move(caller) : MakeUndefined("no caller defined"));
  }
  if (macro.uses_kwargs) {
    DictItems items;
    for (auto& [name, value] : arguments.keyword) RETURN_IF_ERROR(items.Set(runtime_.budget(), MakeString(name), std::move(value)));
    ASSIGN_OR_RETURN(Value kwargs, MakeDict(runtime_.budget(), std::move(items)));
    scope->Set(kwargs_, std::move(kwargs));
  } else if (!arguments.keyword.empty()) {
    return UsageError("macro '", macro.name, "' takes no keyword argument '", Printable(arguments.keyword[0].first), "'");
  }
  const size_t bound = std::min(count, arguments.positional.size());
  arguments.positional.erase(arguments.positional.begin(), arguments.positional.begin() + static_cast<int64_t>(bound));
  if (macro.uses_varargs) {
    ASSIGN_OR_RETURN(Value varargs, MakeList(runtime_.budget(), std::move(arguments.positional), ListObject::Type::kTuple));
    scope->Set(varargs_, std::move(varargs));
  } else if (!arguments.positional.empty()) {
    return UsageError("macro '", macro.name, "' takes not more than ", count, " arguments");
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> Interpreter::CallMacro(const MacroObject& macro, Arguments arguments) {
  const MacroDefinition& definition = *macro.definition;
  const absl::Cleanup restore = [this, saved = scope_] {
    scope_ = saved;
    --macro_depth_;
  };
  ++macro_depth_;
  RETURN_IF_ERROR(runtime_.budget().CheckDepth(macro_depth_));
  const ScopePtr scope = NewScope(macro.closure, definition.unset);
  std::vector<size_t> missing;
  RETURN_IF_ERROR(BindParameters(definition, std::move(arguments), scope.get(), &missing));
  scope_ = scope;
  const size_t required = definition.parameters.size() - definition.defaults.size();
  for (const size_t i : missing) {
    if (i < required) continue;
    ASSIGN_OR_RETURN(Value value, Evaluate(*definition.defaults[i - required]));
    scope->Set(definition.parameters[i], std::move(value));
  }
  TextPtr text;
  ASSIGN_OR_RETURN(const Flow flow, Capture(definition.body, scope, &text));
  (void)flow;  // loop controls do not reach out of a macro
  return Value(std::move(text));
}

}  // namespace pith::jinja
