#include "tokenizer/template_methods.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "tokenizer/template_loop.h"
#include "tokenizer/template_operators.h"
#include "tokenizer/template_text_operations.h"

namespace pith::jinja {
namespace {

constexpr absl::string_view kListChanges[] = {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};
constexpr absl::string_view kDictChanges[] = {"clear", "pop", "popitem", "setdefault", "update"};

template <size_t kCount> bool IsOneOf(absl::string_view name, const absl::string_view (&names)[kCount]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Value Unsafe(const Value& object, absl::string_view name) {
  return MakeUndefined(absl::StrCat("access to attribute '", Printable(name), "' of a ", TypeName(object), " is unsafe"));
}

Value Missing(const Value& object, absl::string_view name) {
  return MakeUndefined(absl::StrCat("a ", TypeName(object), " has no attribute '", Printable(name), "'"));
}

absl::Span<const NativeFunction> MethodsOf(const Value& object) {
  if (object.Is<TextPtr>()) return TextMethods();
  if (const ListPtr* list = object.As<ListPtr>()) return (*list)->is_list() ? ListMethods() : TupleMethods();
  if (object.Is<DictPtr>()) return DictMethods();
  if (object.Is<RangePtr>()) return RangeMethods();
  return {};
}

bool WouldChange(const Value& object, absl::string_view name) {
  if (object.Is<DictPtr>()) return IsOneOf(name, kDictChanges);
  const ListPtr* list = object.As<ListPtr>();
  return list != nullptr && (*list)->is_list() && IsOneOf(name, kListChanges);
}

// Attributes that are no methods; nullopt for an unknown name.
absl::StatusOr<std::optional<Value>> PlainAttribute(Runtime& runtime, const Value& object, absl::string_view name) {
  using Result = std::optional<Value>;
  if (const LoopPtr* loop = object.As<LoopPtr>()) return (*loop)->Attribute(runtime, name);
  if (const NamespacePtr* ns = object.As<NamespacePtr>()) {
    const Value* held = (*ns)->attributes.Find(name);
    return held != nullptr ? Result(*held) : Result();
  }
  if (const RangePtr* range = object.As<RangePtr>()) {
    if (name == "start") return Result((*range)->start);
    if (name == "stop") return Result((*range)->stop);
    if (name == "step") return Result((*range)->step);
  }
  const ListPtr* list = object.As<ListPtr>();
  if (list != nullptr && (*list)->type == ListObject::Type::kGroup) {
    if (name == "grouper") return Result((*list)->items[0]);
    if (name == "list") return Result((*list)->items[1]);
  }
  return Result();
}

// getattr(object, name) in the sandbox; nullopt where Python has no such attribute.
absl::StatusOr<std::optional<Value>> FindAttribute(Runtime& runtime, const Value& object, absl::string_view name) {
  using Result = std::optional<Value>;
  if (absl::StartsWith(name, "__") && absl::EndsWith(name, "__")) return Result(Unsafe(object, name));
  ASSIGN_OR_RETURN(const Result plain, PlainAttribute(runtime, object, name));
  if (plain.has_value()) return absl::StartsWith(name, "_") ? Result(Unsafe(object, name)) : plain;
  if (WouldChange(object, name)) return Result(Unsafe(object, name));
  const NativeFunction* method = object.Is<LoopPtr>() ? FindLoopMethod(name) : FindFunction(MethodsOf(object), name);
  if (method == nullptr) return Result();
  RETURN_IF_ERROR(runtime.budget().CheckDepth(Depth(object) + 1));
  return Result(Value(FunctionPtr(std::make_shared<const FunctionObject>(FunctionObject{method, object}))));
}

// An index counted from the end when negative; -1 when out of range.
int64_t ResolveIndex(int64_t index, int64_t length) {
  if (index < 0) index += length;
  return index >= 0 && index < length ? index : -1;
}

// object[key] where that works in Python; nullopt where it raises.
absl::StatusOr<std::optional<Value>> FindItem(Runtime& runtime, const Value& object, const Value& key) {
  using Result = std::optional<Value>;
  if (const DictPtr* dict = object.As<DictPtr>()) {
    const TextPtr* text = key.As<TextPtr>();
    if (text != nullptr) {
      const Value* held = (*dict)->items.Find((*text)->bytes());
      return held != nullptr ? Result(*held) : Result();
    }
    const absl::StatusOr<const Value*> held = (*dict)->items.Find(runtime.budget(), key);
    RETURN_IF_ERROR(runtime.budget().Spend(1));
    return held.ok() && *held != nullptr ? Result(**held) : Result();  // an unhashable key is no key
  }
  const std::optional<int64_t> integer = AsIndex(key);
  if (!integer.has_value()) return Result();
  if (const ListPtr* list = object.As<ListPtr>()) {
    const int64_t index = ResolveIndex(*integer, static_cast<int64_t>((*list)->items.size()));
    return index < 0 ? Result() : Result((*list)->items[static_cast<size_t>(index)]);
  }
  if (const RangePtr* range = object.As<RangePtr>()) {
    const int64_t index = ResolveIndex(*integer, (*range)->length);
    return index < 0 ? Result() : Result((*range)->At(index));
  }
  if (const TextPtr* text = object.As<TextPtr>()) {
    const int64_t index = ResolveIndex(*integer, (*text)->length());
    if (index < 0) return Result();
    ASSIGN_OR_RETURN(TextPtr character, PickCharacters(runtime.budget(), *text, index, 1, 1));
    return Result(Value(std::move(character)));
  }
  return Result();
}

// The step of a sliced range; it wraps only where at most one item is left.
int64_t WrappingProduct(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); }

struct SliceRange {
  int64_t start, stop, step, count;
};

absl::StatusOr<std::optional<int64_t>> SliceBound(const Value& bound) {
  if (bound.Is<None>()) return std::optional<int64_t>();
  const std::optional<int64_t> integer = AsIndex(bound);
  if (!integer.has_value()) return UsageError("expected slice bounds to be int or none, found ", TypeName(bound));
  return integer;
}

// Python's slice.indices.
absl::StatusOr<SliceRange> ResolveSlice(const Value& start, const Value& stop, const Value& step, int64_t length) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> start_bound, SliceBound(start));
  ASSIGN_OR_RETURN(const std::optional<int64_t> stop_bound, SliceBound(stop));
  ASSIGN_OR_RETURN(const std::optional<int64_t> step_bound, SliceBound(step));
  int64_t by = step_bound.value_or(1);
  if (by == 0) return UsageError("expected a slice step other than 0");
  by = std::max(by, -std::numeric_limits<int64_t>::max());
  const int64_t low = by > 0 ? 0 : -1, high = by > 0 ? length : length - 1;
  const auto clamp = [&](int64_t bound) { return std::clamp(bound < 0 ? bound + length : bound, low, high); };
  const int64_t from = start_bound.has_value() ? clamp(*start_bound) : by > 0 ? low : high;
  const int64_t to = stop_bound.has_value() ? clamp(*stop_bound) : by > 0 ? high : low;
  const int64_t distance = by > 0 ? to - from : from - to, stride = by > 0 ? by : -by;
  return SliceRange{from, to, by, distance <= 0 ? 0 : (distance - 1) / stride + 1};
}

}  // namespace

absl::StatusOr<Value> GetAttribute(Runtime& runtime, const Value& object, absl::string_view name) {
  if (object.Is<Undefined>()) return UndefinedError(object);
  ASSIGN_OR_RETURN(const std::optional<Value> attribute, FindAttribute(runtime, object, name));
  if (attribute.has_value()) return *attribute;
  if (const DictPtr* dict = object.As<DictPtr>()) {
    if (const Value* held = (*dict)->items.Find(name)) return *held;
  }
  return Missing(object, name);
}

absl::StatusOr<Value> GetAttributeOnly(Runtime& runtime, const Value& object, absl::string_view name) {
  if (object.Is<Undefined>()) return UndefinedError(object);
  ASSIGN_OR_RETURN(const std::optional<Value> attribute, FindAttribute(runtime, object, name));
  return attribute.has_value() ? *attribute : Missing(object, name);
}

absl::StatusOr<Value> GetItem(Runtime& runtime, const Value& object, const Value& key) {
  if (object.Is<Undefined>()) return UndefinedError(object);
  ASSIGN_OR_RETURN(const std::optional<Value> item, FindItem(runtime, object, key));
  if (item.has_value()) return *item;
  const TextPtr* name = key.As<TextPtr>();
  if (name == nullptr) return MakeUndefined(absl::StrCat("a ", TypeName(object), " has no such element"));
  ASSIGN_OR_RETURN(const std::optional<Value> attribute, FindAttribute(runtime, object, (*name)->bytes()));
  return attribute.has_value() ? *attribute : Missing(object, (*name)->bytes());
}

absl::StatusOr<Value> GetSlice(Runtime& runtime, const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (object.Is<Undefined>()) return UndefinedError(object);
  const bool sequence = object.Is<TextPtr>() || object.Is<ListPtr>() || object.Is<RangePtr>();
  if (!sequence) return UsageError("expected something to slice, found ", TypeName(object));
  ASSIGN_OR_RETURN(const SliceRange slice, ResolveSlice(start, stop, step, Length(object)));
  if (const TextPtr* text = object.As<TextPtr>()) {
    ASSIGN_OR_RETURN(TextPtr picked, PickCharacters(runtime.budget(), *text, slice.start, slice.step, slice.count));
    return Value(std::move(picked));
  }
  if (const RangePtr* range = object.As<RangePtr>()) {
    const RangeObject& whole = **range;
    const RangeObject part{.start = whole.At(slice.start),
                           .stop = whole.At(slice.stop),
                           .step = WrappingProduct(whole.step, slice.step),
                           .length = slice.count};
    return Value(RangePtr(std::make_shared<const RangeObject>(part)));
  }
  const ListObject& list = **object.As<ListPtr>();
  ValueList items;
  items.reserve(static_cast<size_t>(slice.count));
  for (int64_t i = 0; i < slice.count; ++i) items.push_back(list.items[static_cast<size_t>(slice.start + i * slice.step)]);
  return MakeList(runtime.budget(), std::move(items), list.is_list() ? ListObject::Type::kList : ListObject::Type::kTuple);
}

absl::StatusOr<Value> GetPath(Runtime& runtime, const Value& object, const Value& path, const Value* default_value) {
  if (path.Is<None>()) return object;
  std::vector<Value> parts;
  const TextPtr* text = path.As<TextPtr>();
  if (text == nullptr) {
    parts.push_back(path);
  } else {
    for (const absl::string_view part : absl::StrSplit((*text)->bytes(), '.')) {
      int64_t index = 0;
      const bool digits = !part.empty() && std::all_of(part.begin(), part.end(), [](unsigned char c) { return absl::ascii_isdigit(c); });
      parts.push_back(digits && absl::SimpleAtoi(part, &index) ? Value(index) : MakeString(part));
    }
  }
  RETURN_IF_ERROR(runtime.budget().Spend(static_cast<int64_t>(parts.size())));
  Value item = object;
  for (const Value& part : parts) {
    ASSIGN_OR_RETURN(item, GetItem(runtime, item, part));
    if (default_value != nullptr && item.Is<Undefined>()) item = *default_value;
  }
  return item;
}

}  // namespace pith::jinja
