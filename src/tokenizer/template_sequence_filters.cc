// Filters that take a sequence and give a value or a list.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/status.h"
#include "tokenizer/template_compare.h"
#include "tokenizer/template_filters.h"
#include "tokenizer/template_loop.h"
#include "tokenizer/template_methods.h"
#include "tokenizer/template_operators.h"
#include "tokenizer/template_repr.h"
#include "tokenizer/template_text_operations.h"

namespace pith::jinja {
namespace {

using Result = absl::StatusOr<Value>;

// Text in lower case unless the filter is case-sensitive; anything else as it is.
Result FoldCase(Runtime& runtime, const Value& value, bool case_sensitive) {
  const TextPtr* text = value.As<TextPtr>();
  if (text == nullptr || case_sensitive) return value;
  ASSIGN_OR_RETURN(TextPtr lower, LowerText(runtime.budget(), *text));
  return Value(std::move(lower));
}

const Value& OrNone(const Value* value) {
  static const Value kNone{None{}};
  return value != nullptr ? *value : kNone;
}

Result CountItems(Runtime&, const Value& self, const BoundArguments&) {
  const int64_t length = Length(self);
  if (length < 0) return UsageError("length: expected a value with a length, found ", TypeName(self));
  return Value(length);
}

Result List(Runtime& runtime, const Value& self, const BoundArguments&) {
  ASSIGN_OR_RETURN(ValueList items, Collect(runtime, self));
  return MakeList(runtime.budget(), std::move(items));
}

Result First(Runtime& runtime, const Value& self, const BoundArguments&) {
  ASSIGN_OR_RETURN(const IteratorPtr iterator, Iterate(self));
  Value item;
  ASSIGN_OR_RETURN(const bool any, iterator->Next(runtime, &item));
  return any ? item : MakeUndefined("no first item, the sequence was empty");
}

Result Last(Runtime& runtime, const Value& self, const BoundArguments&) {
  if (Length(self) < 0) return UsageError("last: expected a sequence, found ", TypeName(self));
  const ViewPtr* view = self.As<ViewPtr>();
  if (self.Is<DictPtr>() || view != nullptr) {
    ASSIGN_OR_RETURN(const ValueList items, Collect(runtime, self));
    return items.empty() ? MakeUndefined("no last item, the sequence was empty") : items.back();
  }
  if (Length(self) == 0) return MakeUndefined("no last item, the sequence was empty");
  return GetItem(runtime, self, Value(int64_t{-1}));
}

Result Join(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  Budget& budget = runtime.budget();
  ASSIGN_OR_RETURN(const ValueList items, Collect(runtime, self));
  ASSIGN_OR_RETURN(const TextPtr separator, arguments.At(0) != nullptr ? ToText(budget, *arguments.At(0)) : MakeText(""));
  std::vector<TextPtr> texts;
  for (const Value& item : items) {
    if (!texts.empty()) texts.push_back(separator);
    ASSIGN_OR_RETURN(const Value held, GetPath(runtime, item, OrNone(arguments.At(1))));
    ASSIGN_OR_RETURN(TextPtr text, ToText(budget, held));
    texts.push_back(std::move(text));
  }
  ASSIGN_OR_RETURN(TextPtr joined, ConcatTexts(budget, texts, false));
  return Value(std::move(joined));
}

// Indices of `keys` in ascending or descending order, stable both ways.
absl::StatusOr<std::vector<size_t>> SortKeys(Runtime& runtime, const ValueList& keys, bool descending) {
  return StableSort(keys.size(), [&](size_t a, size_t b) {
    return descending ? Less(runtime.budget(), keys[b], keys[a]) : Less(runtime.budget(), keys[a], keys[b]);
  });
}

Result Reorder(Runtime& runtime, const ValueList& items, const std::vector<size_t>& order) {
  ValueList sorted;
  sorted.reserve(items.size());
  for (const size_t i : order) sorted.push_back(items[i]);
  return MakeList(runtime.budget(), std::move(sorted));
}

// The values of "a,b.c" as a list, each with its case folded.
Result SortKey(Runtime& runtime, const Value& item, const Value& attribute, bool case_sensitive) {
  std::vector<Value> paths;
  if (const TextPtr* text = attribute.As<TextPtr>()) {
    for (const absl::string_view path : absl::StrSplit((*text)->bytes(), ',')) paths.push_back(MakeString(path));
  } else {
    paths.push_back(attribute);
  }
  ValueList key;
  for (const Value& path : paths) {
    ASSIGN_OR_RETURN(const Value held, GetPath(runtime, item, path));
    ASSIGN_OR_RETURN(Value folded, FoldCase(runtime, held, case_sensitive));
    key.push_back(std::move(folded));
  }
  return MakeList(runtime.budget(), std::move(key));
}

Result Sort(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const ValueList items, Collect(runtime, self));
  ValueList keys;
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(Value key, SortKey(runtime, item, OrNone(arguments.At(2)), arguments.Boolean(1, false)));
    keys.push_back(std::move(key));
  }
  ASSIGN_OR_RETURN(const std::vector<size_t> order, SortKeys(runtime, keys, arguments.Boolean(0, false)));
  return Reorder(runtime, items, order);
}

Result DictSort(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  const DictPtr* dict = self.As<DictPtr>();
  if (dict == nullptr) return UsageError("dictsort: expected a dict, found ", TypeName(self));
  std::string by = "key";
  if (arguments.At(1) != nullptr) {
    ASSIGN_OR_RETURN(const TextPtr name, arguments.String(1));
    by = name->bytes();
  }
  if (by != "key" && by != "value") return UsageError("dictsort: expected by to be key or value, found '", Printable(by), "'");
  ValueList items, keys;
  for (const auto& [key, value] : (*dict)->items.items()) {
    ASSIGN_OR_RETURN(Value sort_key, FoldCase(runtime, by == "key" ? key : value, arguments.Boolean(0, false)));
    keys.push_back(std::move(sort_key));
    ASSIGN_OR_RETURN(Value item, MakeList(runtime.budget(), {key, value}, ListObject::Type::kTuple));
    items.push_back(std::move(item));
  }
  ASSIGN_OR_RETURN(const std::vector<size_t> order, SortKeys(runtime, keys, arguments.Boolean(2, false)));
  return Reorder(runtime, items, order);
}

// Runs of equal keys in the sorted sequence, as (grouper, list) pairs.
Result GroupBy(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  Budget& budget = runtime.budget();
  const Value& attribute = *arguments.At(0);
  const Value* default_value = arguments.NotNone(1);
  const bool case_sensitive = arguments.Boolean(2, false);
  ASSIGN_OR_RETURN(const ValueList items, Collect(runtime, self));
  ValueList keys;
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(const Value held, GetPath(runtime, item, attribute, default_value));
    ASSIGN_OR_RETURN(Value key, FoldCase(runtime, held, case_sensitive));
    keys.push_back(std::move(key));
  }
  ASSIGN_OR_RETURN(const std::vector<size_t> order, SortKeys(runtime, keys, /*descending=*/false));
  ValueList groups;
  for (size_t begin = 0; begin < order.size();) {
    ValueList members;
    size_t end = begin;
    for (bool same = true; end < order.size(); ++end) {
      ASSIGN_OR_RETURN(same, Equals(budget, keys[order[begin]], keys[order[end]]));
      if (!same) break;
      members.push_back(items[order[end]]);
    }
    if (members.empty()) members.push_back(items[order[end++]]);  // NaN equals nothing
    ASSIGN_OR_RETURN(Value grouper, GetPath(runtime, members[0], attribute, default_value));
    ASSIGN_OR_RETURN(Value list, MakeList(budget, std::move(members)));
    ASSIGN_OR_RETURN(Value group, MakeList(budget, {std::move(grouper), std::move(list)}, ListObject::Type::kGroup));
    groups.push_back(std::move(group));
    begin = end;
  }
  return MakeList(budget, std::move(groups));
}

template <bool kMax> Result Extreme(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const ValueList items, Collect(runtime, self));
  std::optional<Value> best, best_key;
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(const Value held, GetPath(runtime, item, OrNone(arguments.At(1))));
    ASSIGN_OR_RETURN(const Value key, FoldCase(runtime, held, arguments.Boolean(0, false)));
    bool better = !best.has_value();
    if (!better) {
      ASSIGN_OR_RETURN(better, kMax ? Less(runtime.budget(), *best_key, key) : Less(runtime.budget(), key, *best_key));
    }
    if (better) {
      best = item;
      best_key = key;
    }
  }
  return best.has_value() ? *best : MakeUndefined("no aggregated item, the sequence was empty");
}

Result Sum(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const ValueList items, Collect(runtime, self));
  Value sum = arguments.At(1) != nullptr ? *arguments.At(1) : Value(int64_t{0});
  if (sum.Is<TextPtr>()) return UsageError("sum: expected a start that is no str");
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(const Value held, GetPath(runtime, item, OrNone(arguments.At(0))));
    ASSIGN_OR_RETURN(sum, ApplyBinary(runtime, BinaryOperator::kAdd, sum, held));
  }
  return sum;
}

constexpr NativeFunction kSequenceFilters[] = {
    {.name = "count", .run = CountItems},
    {.name = "dictsort", .parameters = {"?case_sensitive", "?by", "?reverse"}, .run = DictSort},
    {.name = "first", .run = First},
    {.name = "groupby", .parameters = {"attribute", "?default", "?case_sensitive"}, .run = GroupBy},
    {.name = "join", .parameters = {"?d", "?attribute"}, .run = Join},
    {.name = "last", .run = Last},
    {.name = "length", .run = CountItems},
    {.name = "list", .run = List},
    {.name = "max", .parameters = {"?case_sensitive", "?attribute"}, .run = Extreme<true>},
    {.name = "min", .parameters = {"?case_sensitive", "?attribute"}, .run = Extreme<false>},
    {.name = "sort", .parameters = {"?reverse", "?case_sensitive", "?attribute"}, .run = Sort},
    {.name = "sum", .parameters = {"?attribute", "?start"}, .run = Sum},
};

}  // namespace

absl::Span<const NativeFunction> SequenceFilters() { return kSequenceFilters; }

}  // namespace pith::jinja
