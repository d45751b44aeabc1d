#include "tokenizer/template_predicates.h"

#include "base/status.h"
#include "tokenizer/template_compare.h"
#include "tokenizer/template_filters.h"
#include "tokenizer/template_loop.h"
#include "tokenizer/template_operators.h"
#include "tokenizer/template_repr.h"
#include "tokenizer/template_unicode.h"

namespace pith::jinja {
namespace {

using Result = absl::StatusOr<Value>;

bool IsNumber(const Value& value) { return value.Is<int64_t>() || value.Is<double>() || value.Is<bool>(); }
bool IsTrue(const Value& value) { return value.Is<bool>() && *value.As<bool>(); }
bool IsFalse(const Value& value) { return value.Is<bool>() && !*value.As<bool>(); }
bool IsSequence(const Value& value) {
  return value.Is<TextPtr>() || value.Is<ListPtr>() || value.Is<DictPtr>() || value.Is<RangePtr>() || value.Is<Undefined>();
}
bool IsIterable(const Value& value) { return Iterate(value).ok() || value.Is<LoopPtr>(); }
bool IsCallable(const Value& value) { return value.Is<FunctionPtr>() || value.Is<MacroPtr>() || value.Is<Undefined>(); }
bool IsEscaped(const Value& value) { return value.Is<TextPtr>() && (*value.As<TextPtr>())->markup(); }
template <typename T> bool Holds(const Value& value) { return value.Is<T>(); }
bool IsDefined(const Value& value) { return !value.Is<Undefined>(); }

template <bool (*kPredicate)(const Value&)> Result Check(Runtime&, const Value& self, const BoundArguments&) {
  return Value(kPredicate(self));
}

// value % divisor == remainder
Result HasRemainder(Runtime& runtime, const Value& value, const Value& divisor, int64_t remainder) {
  ASSIGN_OR_RETURN(const Value rest, ApplyBinary(runtime, BinaryOperator::kRemainder, value, divisor));
  ASSIGN_OR_RETURN(const bool same, Equals(runtime.budget(), rest, Value(remainder)));
  return Value(same);
}

template <int64_t kRemainder> Result CheckParity(Runtime& runtime, const Value& self, const BoundArguments&) {
  return HasRemainder(runtime, self, Value(int64_t{2}), kRemainder);
}

Result DivisibleBy(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  return HasRemainder(runtime, self, *arguments.At(0), 0);
}

template <CompareOperator kOperator> Result Compare(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  Budget& budget = runtime.budget();
  const Value& other = *arguments.At(0);
  const bool ordered = kOperator != CompareOperator::kEqual && kOperator != CompareOperator::kNotEqual;
  if (ordered && self.Is<Undefined>()) return UndefinedError(self);
  if (ordered && other.Is<Undefined>()) return UndefinedError(other);
  bool holds = false;
  switch (kOperator) {
    case CompareOperator::kLess:
    case CompareOperator::kLessOrEqual: {
      ASSIGN_OR_RETURN(holds, Ordered(budget, self, other, kOperator == CompareOperator::kLessOrEqual));
      break;
    }
    case CompareOperator::kGreater:
    case CompareOperator::kGreaterOrEqual: {
      ASSIGN_OR_RETURN(holds, Ordered(budget, other, self, kOperator == CompareOperator::kGreaterOrEqual));
      break;
    }
    default: {
      ASSIGN_OR_RETURN(holds, Equals(budget, self, other));
      holds = holds == (kOperator == CompareOperator::kEqual);
    }
  }
  return Value(holds);
}

Result In(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const bool contained, Contains(runtime, *arguments.At(0), self));
  return Value(contained);
}

// Python's `is`: the same list, dict or object; equal scalars and texts of one type count as the same.
Result SameAs(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  const Value& other = *arguments.At(0);
  if (self.storage().index() != other.storage().index()) return Value(false);
  if (self.Is<ListPtr>()) return Value(*self.As<ListPtr>() == *other.As<ListPtr>());
  if (self.Is<DictPtr>()) return Value(*self.As<DictPtr>() == *other.As<DictPtr>());
  ASSIGN_OR_RETURN(const bool same, Equals(runtime.budget(), self, other));
  return Value(same);
}

// Whether str(value) is all lower or upper case.
template <bool kUpper> Result HasCase(Runtime& runtime, const Value& self, const BoundArguments&) {
  ASSIGN_OR_RETURN(const TextPtr text, ToText(runtime.budget(), self));
  RETURN_IF_ERROR(runtime.budget().SpendScan(text->bytes().size()));
  bool any = false;
  TextCursor cursor(*text);
  while (cursor.Next()) {
    const bool right = kUpper ? IsUpper(cursor.code_point) : IsLower(cursor.code_point);
    if (!right && IsCased(cursor.code_point)) return Value(false);
    any = any || right;
  }
  return Value(any);
}

template <const NativeFunction* (*kFind)(absl::string_view)> Result IsKnown(Runtime& runtime, const Value& self, const BoundArguments&) {
  RETURN_IF_ERROR(HashKey(runtime.budget(), self).status());  // Python looks the name up in a dict
  const TextPtr* name = self.As<TextPtr>();
  return Value(name != nullptr && kFind((*name)->bytes()) != nullptr);
}

using Op = CompareOperator;
constexpr NativeFunction kTests[] = {
    {.name = "!=", .parameters = {"other"}, .run = Compare<Op::kNotEqual>},
    {.name = "<", .parameters = {"other"}, .run = Compare<Op::kLess>},
    {.name = "<=", .parameters = {"other"}, .run = Compare<Op::kLessOrEqual>},
    {.name = "==", .parameters = {"other"}, .run = Compare<Op::kEqual>},
    {.name = ">", .parameters = {"other"}, .run = Compare<Op::kGreater>},
    {.name = ">=", .parameters = {"other"}, .run = Compare<Op::kGreaterOrEqual>},
    {.name = "boolean", .run = Check<Holds<bool>>},
    {.name = "callable", .run = Check<IsCallable>},
    {.name = "defined", .run = Check<IsDefined>},
    {.name = "divisibleby", .parameters = {"num"}, .run = DivisibleBy},
    {.name = "eq", .parameters = {"other"}, .run = Compare<Op::kEqual>},
    {.name = "equalto", .parameters = {"other"}, .run = Compare<Op::kEqual>},
    {.name = "escaped", .run = Check<IsEscaped>},
    {.name = "even", .run = CheckParity<0>},
    {.name = "false", .run = Check<IsFalse>},
    {.name = "filter", .run = IsKnown<FindFilter>},
    {.name = "float", .run = Check<Holds<double>>},
    {.name = "ge", .parameters = {"other"}, .run = Compare<Op::kGreaterOrEqual>},
    {.name = "greaterthan", .parameters = {"other"}, .run = Compare<Op::kGreater>},
    {.name = "gt", .parameters = {"other"}, .run = Compare<Op::kGreater>},
    {.name = "in", .parameters = {"seq"}, .run = In},
    {.name = "integer", .run = Check<Holds<int64_t>>},
    {.name = "iterable", .run = Check<IsIterable>},
    {.name = "le", .parameters = {"other"}, .run = Compare<Op::kLessOrEqual>},
    {.name = "lessthan", .parameters = {"other"}, .run = Compare<Op::kLess>},
    {.name = "lower", .run = HasCase<false>},
    {.name = "lt", .parameters = {"other"}, .run = Compare<Op::kLess>},
    {.name = "mapping", .run = Check<Holds<DictPtr>>},
    {.name = "ne", .parameters = {"other"}, .run = Compare<Op::kNotEqual>},
    {.name = "none", .run = Check<Holds<None>>},
    {.name = "number", .run = Check<IsNumber>},
    {.name = "odd", .run = CheckParity<1>},
    {.name = "sameas", .parameters = {"other"}, .run = SameAs},
    {.name = "sequence", .run = Check<IsSequence>},
    {.name = "string", .run = Check<Holds<TextPtr>>},
    {.name = "test", .run = IsKnown<FindTest>},
    {.name = "true", .run = Check<IsTrue>},
    {.name = "undefined", .run = Check<Holds<Undefined>>},
    {.name = "upper", .run = HasCase<true>},
};

}  // namespace

const NativeFunction* FindTest(absl::string_view name) { return FindFunction(kTests, name); }

}  // namespace pith::jinja
