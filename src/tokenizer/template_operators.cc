#include "tokenizer/template_operators.h"

#include <cmath>
#include <utility>

#include "base/status.h"
#include "tokenizer/template_format.h"
#include "tokenizer/template_number.h"
#include "tokenizer/template_text_operations.h"

namespace pith::jinja {
namespace {

using Result = absl::StatusOr<Value>;

absl::string_view Symbol(BinaryOperator op) {
  constexpr absl::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};
  return kSymbols[static_cast<int>(op)];
}

template <typename T> Result ToValue(absl::StatusOr<T> number) {
  if (!number.ok()) return number.status();
  return Value(*std::move(number));
}

Result ApplyToIntegers(BinaryOperator op, int64_t a, int64_t b) {
  switch (op) {
    case BinaryOperator::kAdd: return ToValue(AddIntegers(a, b));
    case BinaryOperator::kSubtract: return ToValue(SubtractIntegers(a, b));
    case BinaryOperator::kMultiply: return ToValue(MultiplyIntegers(a, b));
    case BinaryOperator::kDivide:
      if (b == 0) return UsageError("division by zero");
      return Value(static_cast<double>(a) / static_cast<double>(b));
    case BinaryOperator::kFloorDivide: return ToValue(FloorDivideIntegers(a, b));
    case BinaryOperator::kRemainder: return ToValue(RemainderOfIntegers(a, b));
    default:
      if (b < 0) return ToValue(PowerOfFloats(static_cast<double>(a), static_cast<double>(b)));
      return ToValue(PowerOfIntegers(a, b));
  }
}

Result ApplyToFloats(BinaryOperator op, double a, double b) {
  switch (op) {
    case BinaryOperator::kAdd: return Value(a + b);
    case BinaryOperator::kSubtract: return Value(a - b);
    case BinaryOperator::kMultiply: return Value(a * b);
    case BinaryOperator::kDivide:
      if (b == 0) return UsageError("division by zero");
      return Value(a / b);
    case BinaryOperator::kFloorDivide: return ToValue(FloorDivideFloats(a, b));
    case BinaryOperator::kRemainder: return ToValue(RemainderOfFloats(a, b));
    default: return ToValue(PowerOfFloats(a, b));
  }
}

std::optional<double> AsFloat(const Value& value) {
  if (const double* real = value.As<double>()) return *real;
  const std::optional<int64_t> integer = AsIndex(value);
  return integer.has_value() ? std::optional<double>(static_cast<double>(*integer)) : std::nullopt;
}

// Markup escapes the text it is added to.
Result AddTexts(Runtime& runtime, TextPtr a, TextPtr b) {
  const bool markup = a->markup() || b->markup();
  if (markup) {
    ASSIGN_OR_RETURN(a, EscapeText(runtime.budget(), a));
    ASSIGN_OR_RETURN(b, EscapeText(runtime.budget(), b));
  }
  ASSIGN_OR_RETURN(TextPtr sum, ConcatTexts(runtime.budget(), {a, b}, markup));
  return Value(std::move(sum));
}

Result AddLists(Runtime& runtime, const ListObject& a, const ListObject& b) {
  RETURN_IF_ERROR(runtime.budget().Spend(static_cast<int64_t>(a.items.size() + b.items.size())));
  ValueList items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return MakeList(runtime.budget(), std::move(items), a.is_list() ? ListObject::Type::kList : ListObject::Type::kTuple);
}

Result RepeatList(Runtime& runtime, const ListObject& list, int64_t count) {
  const auto size = static_cast<int64_t>(list.items.size());
  const int64_t copies = size == 0 || count < 0 ? 0 : count;
  int64_t total = 0;
  if (__builtin_mul_overflow(size, copies, &total)) total = runtime.budget().limits().steps;
  RETURN_IF_ERROR(runtime.budget().Spend(total));
  ValueList items;
  items.reserve(static_cast<size_t>(total));
  for (int64_t i = 0; i < copies; ++i) items.insert(items.end(), list.items.begin(), list.items.end());
  return MakeList(runtime.budget(), std::move(items), list.is_list() ? ListObject::Type::kList : ListObject::Type::kTuple);
}

// Sequence * int, either way round; nullopt for other types.
absl::StatusOr<std::optional<Value>> Repeat(Runtime& runtime, const Value& sequence, const Value& count) {
  const std::optional<int64_t> copies = AsIndex(count);
  if (!copies.has_value()) return std::optional<Value>();
  if (const TextPtr* text = sequence.As<TextPtr>()) {
    ASSIGN_OR_RETURN(TextPtr repeated, RepeatText(runtime.budget(), *text, *copies));
    return std::optional<Value>(std::move(repeated));
  }
  if (const ListPtr* list = sequence.As<ListPtr>()) {
    ASSIGN_OR_RETURN(Value repeated, RepeatList(runtime, **list, *copies));
    return std::optional<Value>(std::move(repeated));
  }
  return std::optional<Value>();
}

absl::Status TypeMismatch(BinaryOperator op, const Value& a, const Value& b) {
  if (a.Is<Undefined>()) return UndefinedError(a);
  if (b.Is<Undefined>()) return UndefinedError(b);
  return UsageError("operator ", Symbol(op), " does not take ", TypeName(a), " and ", TypeName(b));
}

}  // namespace

absl::Status UndefinedError(const Value& undefined) {
  const Undefined* why = undefined.As<Undefined>();
  return UsageError(why != nullptr && why->message != nullptr ? *why->message : "a value is undefined");
}

Result ApplyBinary(Runtime& runtime, BinaryOperator op, const Value& a, const Value& b) {
  RETURN_IF_ERROR(runtime.budget().Spend(1));
  const std::optional<int64_t> left = AsIndex(a), right = AsIndex(b);
  if (left.has_value() && right.has_value()) return ApplyToIntegers(op, *left, *right);
  const std::optional<double> x = AsFloat(a), y = AsFloat(b);
  if (x.has_value() && y.has_value()) return ApplyToFloats(op, *x, *y);

  const TextPtr *text = a.As<TextPtr>(), *other_text = b.As<TextPtr>();
  if (text != nullptr && op == BinaryOperator::kRemainder) {
    ASSIGN_OR_RETURN(TextPtr formatted, FormatPercent(runtime, *text, b));
    return Value(std::move(formatted));
  }
  const ListPtr *list = a.As<ListPtr>(), *other_list = b.As<ListPtr>();
  if (op == BinaryOperator::kAdd && text != nullptr && other_text != nullptr) return AddTexts(runtime, *text, *other_text);
  if (op == BinaryOperator::kAdd && list != nullptr && other_list != nullptr && (*list)->is_list() == (*other_list)->is_list()) {
    return AddLists(runtime, **list, **other_list);
  }
  if (op == BinaryOperator::kMultiply) {
    ASSIGN_OR_RETURN(std::optional<Value> repeated, Repeat(runtime, a, b));
    if (repeated.has_value()) return *std::move(repeated);
    ASSIGN_OR_RETURN(repeated, Repeat(runtime, b, a));
    if (repeated.has_value()) return *std::move(repeated);
  }
  return TypeMismatch(op, a, b);
}

Result ApplySign(bool negate, const Value& operand) {
  if (const std::optional<int64_t> integer = AsIndex(operand))
    return negate ? ToValue(SubtractIntegers(0, *integer)) : Result(Value(*integer));
  if (const double* real = operand.As<double>()) return Value(negate ? -*real : *real);
  if (operand.Is<Undefined>()) return UndefinedError(operand);
  return UsageError("a sign expects a number, found ", TypeName(operand));
}

}  // namespace pith::jinja
