// Filters that take or give numbers.
#include <cmath>
#include <optional>

#include "base/status.h"
#include "tokenizer/template_filters.h"
#include "tokenizer/template_number.h"
#include "tokenizer/template_operators.h"

namespace pith::jinja {
namespace {

using Result = absl::StatusOr<Value>;

Result Abs(Runtime&, const Value& self, const BoundArguments&) {
  if (const std::optional<int64_t> integer = AsIndex(self)) return *integer < 0 ? ApplySign(/*negate=*/true, self) : Value(*integer);
  if (const double* real = self.As<double>()) return Value(std::abs(*real));
  return UsageError("abs: expected a number, found ", TypeName(self));
}

Value DefaultOr(const BoundArguments& arguments, Value fallback) {
  return arguments.At(0) != nullptr ? *arguments.At(0) : std::move(fallback);
}

// int(value), then int(float(value)), then the default.
Result Int(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  if (self.Is<Undefined>()) return UndefinedError(self);
  if (const std::optional<int64_t> integer = AsIndex(self)) return Value(*integer);
  std::optional<double> real;
  if (const double* held = self.As<double>()) {
    if (std::isnan(*held)) return DefaultOr(arguments, Value(int64_t{0}));
    ASSIGN_OR_RETURN(const int64_t whole, TruncateToInteger(*held));
    return Value(whole);
  }
  if (const TextPtr* text = self.As<TextPtr>()) {
    RETURN_IF_ERROR(runtime.budget().SpendScan((*text)->bytes().size()));
    ASSIGN_OR_RETURN(const int64_t base, arguments.Integer(1, 10));
    if (base == 0 || (base >= 2 && base <= 36)) {
      ASSIGN_OR_RETURN(const std::optional<int64_t> parsed, ParseInteger((*text)->bytes(), base));
      if (parsed.has_value()) return Value(*parsed);
    }
    real = ParseFloat((*text)->bytes());
  }
  if (!real.has_value() || !std::isfinite(*real)) return DefaultOr(arguments, Value(int64_t{0}));
  ASSIGN_OR_RETURN(const int64_t whole, TruncateToInteger(*real));
  return Value(whole);
}

Result Float(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  if (self.Is<Undefined>()) return UndefinedError(self);
  if (const std::optional<int64_t> integer = AsIndex(self)) return Value(static_cast<double>(*integer));
  if (self.Is<double>()) return self;
  if (const TextPtr* text = self.As<TextPtr>()) {
    RETURN_IF_ERROR(runtime.budget().SpendScan((*text)->bytes().size()));
    if (const std::optional<double> parsed = ParseFloat((*text)->bytes())) return Value(*parsed);
  }
  return DefaultOr(arguments, Value(0.0));
}

// method(number * 10^precision) / 10^precision.
Result RoundTowards(double number, int64_t precision, bool up) {
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = number * scale;
  if (!std::isfinite(scaled)) return UsageError("round: expected a finite number, found ", FormatFloat(scaled));
  const double whole = up ? std::ceil(scaled) : std::floor(scaled);
  return Value((whole + 0.0) / scale);  // Python's whole number is an int, which has no -0
}

Result Round(Runtime&, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const int64_t precision, arguments.Integer(0, 0));
  std::string method = "common";
  if (arguments.At(1) != nullptr) {
    ASSIGN_OR_RETURN(const TextPtr name, arguments.String(1));
    method = name->bytes();
  }
  const std::optional<int64_t> integer = AsIndex(self);
  const double* real = self.As<double>();
  if (!integer.has_value() && real == nullptr) return UsageError("round: expected a number, found ", TypeName(self));
  if (method == "ceil" || method == "floor") {
    return RoundTowards(real != nullptr ? *real : static_cast<double>(*integer), precision, method == "ceil");
  }
  if (method != "common") return UsageError("round: expected the method common, ceil or floor, found '", Printable(method), "'");
  if (real != nullptr) return Value(RoundToDigits(*real, precision));
  ASSIGN_OR_RETURN(const int64_t rounded, RoundToDigits(*integer, precision));
  return Value(rounded);
}

constexpr NativeFunction kNumberFilters[] = {
    {.name = "abs", .run = Abs},
    {.name = "float", .parameters = {"?default"}, .run = Float},
    {.name = "int", .parameters = {"?default", "?base"}, .run = Int},
    {.name = "round", .parameters = {"?precision", "?method"}, .run = Round},
};

}  // namespace

absl::Span<const NativeFunction> NumberFilters() { return kNumberFilters; }

}  // namespace pith::jinja
