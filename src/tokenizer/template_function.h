// Functions a template can call that are not macros: globals, methods, and (by the same table rows) filters and tests.
//
// A row names its parameters, so positional and keyword arguments are matched in one place, as Python does.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tokenizer/template_runtime.h"
#include "tokenizer/template_value.h"

namespace pith::jinja {

struct Arguments {
  ValueList positional;
  std::vector<std::pair<std::string, Value>> keyword;

  // Removes and returns the keyword argument; undefined and `*found` false when absent.
  Value TakeKeyword(absl::string_view name, bool* found);
};

// Arguments by parameter. At(i) is nullptr for an omitted one.
class BoundArguments {
 public:
  explicit BoundArguments(std::vector<std::optional<Value>> values) : values_(std::move(values)) {}
  const Value* At(size_t i) const { return i < values_.size() && values_[i].has_value() ? &*values_[i] : nullptr; }
  // The argument, or nullptr when omitted or None.
  const Value* NotNone(size_t i) const;
  // With a default when omitted. Errors: another type.
  absl::StatusOr<int64_t> Integer(size_t i, int64_t default_value) const;
  absl::StatusOr<TextPtr> String(size_t i) const;    // required, a str
  bool Boolean(size_t i, bool default_value) const;  // bool(argument)

 private:
  std::vector<std::optional<Value>> values_;
};

struct NativeFunction {
  static constexpr size_t kMaxParameters = 5;

  absl::string_view name;
  std::array<absl::string_view, kMaxParameters> parameters = {};  // "" ends the list; a leading "?" marks an optional one
  // Exactly one of the two. `self` is the object of a method, the input of a filter or test, undefined for a global.
  absl::StatusOr<Value> (*run)(Runtime& runtime, const Value& self, const BoundArguments& arguments) = nullptr;
  absl::StatusOr<Value> (*run_variadic)(Runtime& runtime, const Value& self, Arguments arguments) = nullptr;
  bool positional_only = false;
};

// A function as a value. For a method, `self` is what it was looked up on.
struct FunctionObject {
  const NativeFunction* native;
  Value self;
};

// nullptr when the table has no such name. Tables are small; linear.
const NativeFunction* FindFunction(absl::Span<const NativeFunction> table, absl::string_view name);

// Binds and runs. Errors: the arguments do not fit the parameters; whatever the function says.
absl::StatusOr<Value> CallNative(Runtime& runtime, const NativeFunction& function, const Value& self, Arguments arguments);

}  // namespace pith::jinja
