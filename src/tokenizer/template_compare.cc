#include "tokenizer/template_compare.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/status.h"
#include "tokenizer/template_loop.h"

namespace pith::jinja {
namespace {

// An int (or bool) or a float.
struct Number {
  bool is_float;
  int64_t integer;
  double real;
};

std::optional<Number> AsNumber(const Value& value) {
  if (const std::optional<int64_t> integer = AsIndex(value)) return Number{false, *integer, 0};
  if (const double* real = value.As<double>()) return Number{true, 0, *real};
  return std::nullopt;
}

std::optional<int> Compare(const Number& a, const Number& b) {
  if (!a.is_float && !b.is_float) return a.integer < b.integer ? -1 : a.integer > b.integer;
  if (!a.is_float) return CompareNumbers(a.integer, b.real);
  if (!b.is_float) {
    const std::optional<int> reversed = CompareNumbers(b.integer, a.real);
    return reversed.has_value() ? std::optional<int>(-*reversed) : std::nullopt;
  }
  if (std::isnan(a.real) || std::isnan(b.real)) return std::nullopt;
  return a.real < b.real ? -1 : a.real > b.real;
}

absl::StatusOr<bool> ListsEqual(Budget& budget, const ListObject& a, const ListObject& b) {
  if (a.is_list() != b.is_list() || a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    ASSIGN_OR_RETURN(const bool same, Equals(budget, a.items[i], b.items[i]));
    if (!same) return false;
  }
  return true;
}

absl::StatusOr<bool> DictsEqual(Budget& budget, const DictItems& a, const DictItems& b, bool compare_values) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a.items()) {
    ASSIGN_OR_RETURN(const Value* other, b.Find(budget, key));
    if (other == nullptr) return false;
    if (!compare_values) continue;
    ASSIGN_OR_RETURN(const bool same, Equals(budget, value, *other));
    if (!same) return false;
  }
  return true;
}

absl::StatusOr<bool> ViewsEqual(Budget& budget, const ViewPtr& a, const ViewPtr& b) {
  if (a->type != b->type || a->type == ViewObject::Type::kValues) return a == b;
  return DictsEqual(budget, a->dict->items, b->dict->items, a->type == ViewObject::Type::kItems);
}

bool RangesEqual(const RangeObject& a, const RangeObject& b) {
  if (a.length != b.length) return false;
  return a.length == 0 || (a.start == b.start && (a.length == 1 || a.step == b.step));
}

absl::StatusOr<bool> ListsOrdered(Budget& budget, const ListObject& a, const ListObject& b, bool or_equal) {
  const size_t common = std::min(a.items.size(), b.items.size());
  for (size_t i = 0; i < common; ++i) {
    ASSIGN_OR_RETURN(const bool same, Equals(budget, a.items[i], b.items[i]));
    if (!same) return Ordered(budget, a.items[i], b.items[i], or_equal);
  }
  return or_equal ? a.items.size() <= b.items.size() : a.items.size() < b.items.size();
}

bool RangeContains(const RangeObject& range, int64_t integer) {
  if (range.length == 0) return false;
  const int64_t last = range.At(range.length - 1);
  if (integer < std::min(range.start, last) || integer > std::max(range.start, last)) return false;
  const auto start = static_cast<uint64_t>(range.start), sought = static_cast<uint64_t>(integer), step = static_cast<uint64_t>(range.step);
  return range.step > 0 ? (sought - start) % step == 0 : (start - sought) % (0 - step) == 0;
}

absl::StatusOr<bool> AnyEquals(Runtime& runtime, const Value& container, const Value& item) {
  ASSIGN_OR_RETURN(const IteratorPtr iterator, Iterate(container));
  Value candidate;
  while (true) {
    RETURN_IF_ERROR(runtime.budget().Spend(1));
    ASSIGN_OR_RETURN(const bool more, iterator->Next(runtime, &candidate));
    if (!more) return false;
    ASSIGN_OR_RETURN(const bool same, Equals(runtime.budget(), candidate, item));
    if (same) return true;
  }
}

}  // namespace

std::optional<int> CompareNumbers(int64_t a, double b) {
  if (std::isnan(b)) return std::nullopt;
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (b >= kTwoTo63) return -1;
  if (b < -kTwoTo63) return 1;
  const double whole = std::trunc(b);
  const auto integer = static_cast<int64_t>(whole);
  if (a != integer) return a < integer ? -1 : 1;
  return b > whole ? -1 : b < whole;
}

absl::StatusOr<bool> Equals(Budget& budget, const Value& a, const Value& b) {
  RETURN_IF_ERROR(budget.Spend(1));
  const std::optional<Number> left = AsNumber(a), right = AsNumber(b);
  if (left.has_value() || right.has_value()) return left.has_value() && right.has_value() && Compare(*left, *right) == 0;
  if (a.storage().index() != b.storage().index()) return false;
  if (const TextPtr* text = a.As<TextPtr>()) {
    const std::string &x = (*text)->bytes(), &y = (*b.As<TextPtr>())->bytes();
    RETURN_IF_ERROR(budget.SpendScan(std::min(x.size(), y.size())));
    return x == y;
  }
  if (a.Is<Undefined>() || a.Is<None>()) return true;
  if (const ListPtr* list = a.As<ListPtr>()) return ListsEqual(budget, **list, **b.As<ListPtr>());
  if (const DictPtr* dict = a.As<DictPtr>()) return DictsEqual(budget, (*dict)->items, (*b.As<DictPtr>())->items, true);
  if (const RangePtr* range = a.As<RangePtr>()) return RangesEqual(**range, **b.As<RangePtr>());
  if (const ViewPtr* view = a.As<ViewPtr>()) return ViewsEqual(budget, *view, *b.As<ViewPtr>());
  if (const FunctionPtr* function = a.As<FunctionPtr>()) return *function == *b.As<FunctionPtr>();
  if (const IteratorPtr* iterator = a.As<IteratorPtr>()) return *iterator == *b.As<IteratorPtr>();
  if (const NamespacePtr* ns = a.As<NamespacePtr>()) return *ns == *b.As<NamespacePtr>();
  if (const MacroPtr* macro = a.As<MacroPtr>()) return *macro == *b.As<MacroPtr>();
  return *a.As<LoopPtr>() == *b.As<LoopPtr>();
}

absl::StatusOr<bool> Ordered(Budget& budget, const Value& a, const Value& b, bool or_equal) {
  RETURN_IF_ERROR(budget.Spend(1));
  const std::optional<Number> left = AsNumber(a), right = AsNumber(b);
  if (left.has_value() && right.has_value()) {
    const std::optional<int> order = Compare(*left, *right);
    return order == -1 || (or_equal && order == 0);
  }
  const TextPtr *x = a.As<TextPtr>(), *y = b.As<TextPtr>();
  if (x != nullptr && y != nullptr) {
    RETURN_IF_ERROR(budget.SpendScan(std::min((*x)->bytes().size(), (*y)->bytes().size())));
    const int order = (*x)->bytes().compare((*y)->bytes());  // UTF-8 sorts as its code points do
    return or_equal ? order <= 0 : order < 0;
  }
  const ListPtr *list = a.As<ListPtr>(), *other = b.As<ListPtr>();
  if (list != nullptr && other != nullptr && (*list)->is_list() == (*other)->is_list()) {
    return ListsOrdered(budget, **list, **other, or_equal);
  }
  return UsageError("expected values with an order, found ", TypeName(a), " and ", TypeName(b));
}

absl::StatusOr<bool> Contains(Runtime& runtime, const Value& container, const Value& item) {
  RETURN_IF_ERROR(runtime.budget().Spend(1));
  if (const TextPtr* text = container.As<TextPtr>()) {
    const TextPtr* needle = item.As<TextPtr>();
    if (needle == nullptr) return UsageError("expected a str to seek in a str, found ", TypeName(item));
    RETURN_IF_ERROR(runtime.budget().SpendScan((*text)->bytes().size()));
    return FindBytes((*text)->bytes(), (*needle)->bytes(), 0, (*text)->bytes().size()) != absl::string_view::npos;
  }
  const DictPtr* dict = container.As<DictPtr>();
  const ViewPtr* view = container.As<ViewPtr>();
  if (view != nullptr && (*view)->type == ViewObject::Type::kKeys) dict = &(*view)->dict;
  if (dict != nullptr) {
    ASSIGN_OR_RETURN(const Value* found, (*dict)->items.Find(runtime.budget(), item));
    return found != nullptr;
  }
  const std::optional<int64_t> integer = AsIndex(item);
  if (const RangePtr* range = container.As<RangePtr>(); range != nullptr && integer.has_value()) return RangeContains(**range, *integer);
  return AnyEquals(runtime, container, item);
}

absl::StatusOr<std::vector<size_t>> StableSort(size_t count, absl::FunctionRef<absl::StatusOr<bool>(size_t, size_t)> less) {
  std::vector<size_t> sorted(count), merged(count);
  std::iota(sorted.begin(), sorted.end(), 0);
  for (size_t width = 1; width < count; width *= 2) {
    for (size_t begin = 0; begin < count; begin += 2 * width) {
      const size_t middle = std::min(begin + width, count), end = std::min(begin + 2 * width, count);
      size_t left = begin, right = middle;
      for (size_t out = begin; out < end; ++out) {
        bool take_right = left == middle;
        if (!take_right && right < end) {
          ASSIGN_OR_RETURN(take_right, less(sorted[right], sorted[left]));
        }
        merged[out] = sorted[take_right ? right++ : left++];
      }
    }
    sorted.swap(merged);
  }
  return sorted;
}

}  // namespace pith::jinja
