#include "tokenizer/template_function.h"

#include <algorithm>
#include <optional>

#include "base/status.h"

namespace pith::jinja {
namespace {

absl::string_view ParameterName(absl::string_view parameter) { return parameter.substr(parameter.substr(0, 1) == "?" ? 1 : 0); }

size_t CountParameters(const NativeFunction& function) {
  return std::find(function.parameters.begin(), function.parameters.end(), "") - function.parameters.begin();
}

absl::StatusOr<BoundArguments> Bind(const NativeFunction& function, Arguments arguments) {
  const size_t count = CountParameters(function);
  if (arguments.positional.size() > count) {
    return UsageError(function.name, "() takes at most ", count, " arguments, found ", arguments.positional.size());
  }
  std::vector<std::optional<Value>> values(count);
  for (size_t i = 0; i < arguments.positional.size(); ++i) values[i] = std::move(arguments.positional[i]);
  for (auto& [name, value] : arguments.keyword) {
    size_t i = 0;
    while (i < count && ParameterName(function.parameters[i]) != name) ++i;
    if (i == count || function.positional_only) return UsageError(function.name, "() takes no keyword argument '", Printable(name), "'");
    if (values[i].has_value()) return UsageError(function.name, "() got two values for argument '", name, "'");
    values[i] = std::move(value);
  }
  for (size_t i = 0; i < count; ++i) {
    if (!values[i].has_value() && function.parameters[i][0] != '?') {
      return UsageError(function.name, "() misses the argument '", function.parameters[i], "'");
    }
  }
  return BoundArguments(std::move(values));
}

}  // namespace

Value Arguments::TakeKeyword(absl::string_view name, bool* found) {
  const auto at = std::find_if(keyword.begin(), keyword.end(), [&](const auto& item) { return item.first == name; });
  *found = at != keyword.end();
  if (!*found) return Value();
  Value value = std::move(at->second);
  keyword.erase(at);
  return value;
}

const Value* BoundArguments::NotNone(size_t i) const {
  const Value* value = At(i);
  return value != nullptr && !value->Is<None>() ? value : nullptr;
}

absl::StatusOr<int64_t> BoundArguments::Integer(size_t i, int64_t default_value) const {
  const Value* value = At(i);
  if (value == nullptr) return default_value;
  const std::optional<int64_t> integer = AsIndex(*value);
  if (!integer.has_value()) return UsageError("expected an int as argument ", i + 1, ", found ", TypeName(*value));
  return *integer;
}

absl::StatusOr<TextPtr> BoundArguments::String(size_t i) const {
  const Value* value = At(i);
  const TextPtr* text = value != nullptr ? value->As<TextPtr>() : nullptr;
  if (text == nullptr) return UsageError("expected a str as argument ", i + 1, ", found ", value == nullptr ? "nothing" : TypeName(*value));
  return *text;
}

bool BoundArguments::Boolean(size_t i, bool default_value) const {
  const Value* value = At(i);
  return value == nullptr ? default_value : Truth(*value);
}

const NativeFunction* FindFunction(absl::Span<const NativeFunction> table, absl::string_view name) {
  const auto at = std::find_if(table.begin(), table.end(), [&](const NativeFunction& row) { return row.name == name; });
  return at != table.end() ? &*at : nullptr;
}

absl::StatusOr<Value> CallNative(Runtime& runtime, const NativeFunction& function, const Value& self, Arguments arguments) {
  const BudgetFrame frame(runtime.budget());
  RETURN_IF_ERROR(frame.status());
  RETURN_IF_ERROR(runtime.budget().Spend(1));
  if (function.run_variadic != nullptr) return function.run_variadic(runtime, self, std::move(arguments));
  ASSIGN_OR_RETURN(const BoundArguments bound, Bind(function, std::move(arguments)));
  return function.run(runtime, self, bound);
}

}  // namespace pith::jinja
