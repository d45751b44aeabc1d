// The methods of list, tuple, dict and range that change nothing.
#include <algorithm>
#include <utility>

#include "base/status.h"
#include "tokenizer/template_compare.h"
#include "tokenizer/template_methods.h"

namespace pith::jinja {
namespace {

using Result = absl::StatusOr<Value>;

Result CountEqual(Runtime& runtime, const ValueList& items, const Value& sought) {
  int64_t count = 0;
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(const bool same, Equals(runtime.budget(), item, sought));
    count += same ? 1 : 0;
  }
  return Value(count);
}

Result ListCount(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  return CountEqual(runtime, (*self.As<ListPtr>())->items, *arguments.At(0));
}

// Python's list.index(value, start, stop); bounds are clamped to the list.
Result ListIndex(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  const ValueList& items = (*self.As<ListPtr>())->items;
  const auto length = static_cast<int64_t>(items.size());
  ASSIGN_OR_RETURN(int64_t start, arguments.Integer(1, 0));
  ASSIGN_OR_RETURN(int64_t stop, arguments.Integer(2, length));
  if (start < 0) start = std::max<int64_t>(0, start + length);
  if (stop < 0) stop += length;
  for (int64_t i = start; i < std::min(stop, length); ++i) {
    ASSIGN_OR_RETURN(const bool same, Equals(runtime.budget(), items[static_cast<size_t>(i)], *arguments.At(0)));
    if (same) return Value(i);
  }
  return UsageError("index() expects a value that is in the list, found none");
}

Result ListCopy(Runtime& runtime, const Value& self, const BoundArguments&) {
  RETURN_IF_ERROR(runtime.budget().Spend(1));
  return Value(ListPtr(std::make_shared<const ListObject>(**self.As<ListPtr>())));
}

Result DictGet(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const Value* held, (*self.As<DictPtr>())->items.Find(runtime.budget(), *arguments.At(0)));
  if (held != nullptr) return *held;
  return arguments.At(1) != nullptr ? *arguments.At(1) : Value(None{});
}

template <ViewObject::Type kType> Result DictView(Runtime&, const Value& self, const BoundArguments&) {
  return Value(ViewPtr(std::make_shared<const ViewObject>(ViewObject{kType, *self.As<DictPtr>()})));
}

Result DictCopy(Runtime& runtime, const Value& self, const BoundArguments&) {
  RETURN_IF_ERROR(runtime.budget().Spend((*self.As<DictPtr>())->items.size()));
  return Value(DictPtr(std::make_shared<const DictObject>(**self.As<DictPtr>())));
}

Result RangeCount(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const bool contained, Contains(runtime, self, *arguments.At(0)));
  return Value(int64_t{contained ? 1 : 0});
}

Result RangeIndex(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  const RangeObject& range = **self.As<RangePtr>();
  for (int64_t i = 0; i < range.length; ++i) {
    ASSIGN_OR_RETURN(const bool same, Equals(runtime.budget(), Value(range.At(i)), *arguments.At(0)));
    if (same) return Value(i);
  }
  return UsageError("index() expects a value that is in the range, found none");
}

constexpr NativeFunction kListMethods[] = {
    {.name = "copy", .run = ListCopy},
    {.name = "count", .parameters = {"value"}, .run = ListCount, .positional_only = true},
    {.name = "index", .parameters = {"value", "?start", "?stop"}, .run = ListIndex, .positional_only = true},
};
constexpr NativeFunction kDictMethods[] = {
    {.name = "copy", .run = DictCopy},
    {.name = "get", .parameters = {"key", "?default"}, .run = DictGet, .positional_only = true},
    {.name = "items", .run = DictView<ViewObject::Type::kItems>},
    {.name = "keys", .run = DictView<ViewObject::Type::kKeys>},
    {.name = "values", .run = DictView<ViewObject::Type::kValues>},
};
constexpr NativeFunction kRangeMethods[] = {
    {.name = "count", .parameters = {"value"}, .run = RangeCount, .positional_only = true},
    {.name = "index", .parameters = {"value"}, .run = RangeIndex, .positional_only = true},
};

}  // namespace

absl::Span<const NativeFunction> ListMethods() { return kListMethods; }
absl::Span<const NativeFunction> TupleMethods() { return ListMethods().subspan(1); }  // all but copy
absl::Span<const NativeFunction> DictMethods() { return kDictMethods; }
absl::Span<const NativeFunction> RangeMethods() { return kRangeMethods; }

}  // namespace pith::jinja
