// Filters that give iterators. As Python's generators, they do nothing (and find no error) before their first item is asked for.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "tokenizer/template_filters.h"
#include "tokenizer/template_loop.h"
#include "tokenizer/template_methods.h"
#include "tokenizer/template_predicates.h"
#include "tokenizer/template_text_operations.h"

namespace pith::jinja {
namespace {

using Result = absl::StatusOr<Value>;

// Starts on the first Next, then draws from `source_`.
class LazyIterator : public IteratorObject {
 public:
  LazyIterator(Value input, int nesting) : IteratorObject(nesting), input_(std::move(input)) {}

  absl::StatusOr<bool> Next(Runtime& runtime, Value* value) final {
    const BudgetFrame frame(runtime.budget());
    RETURN_IF_ERROR(frame.status());
    if (!started_) {
      started_ = true;
      RETURN_IF_ERROR(Start(runtime));
    }
    return Produce(runtime, value);
  }

 protected:
  virtual absl::Status Start(Runtime&) { return Open(input_); }
  virtual absl::StatusOr<bool> Produce(Runtime& runtime, Value* value) = 0;

  absl::Status Open(const Value& value) {
    ASSIGN_OR_RETURN(source_, Iterate(value));
    return absl::OkStatus();
  }
  // The next item of the input; false at its end or when it was never opened.
  absl::StatusOr<bool> Draw(Runtime& runtime, Value* item) {
    RETURN_IF_ERROR(runtime.budget().Spend(1));
    return source_ != nullptr ? source_->Next(runtime, item) : absl::StatusOr<bool>(false);
  }

  const Value input_;

 private:
  IteratorPtr source_;
  bool started_ = false;
};

int DepthOf(const Value& value) { return Depth(value); }
int DepthOf(const Arguments& arguments) {
  int depth = 0;
  for (const Value& value : arguments.positional) depth = std::max(depth, Depth(value));
  for (const auto& [name, value] : arguments.keyword) depth = std::max(depth, Depth(value));
  return depth;
}
template <typename Scalar>
requires std::is_arithmetic_v<Scalar>
int DepthOf(Scalar) { return 0; }

// An iterator nests its input and its arguments, as a container does.
template <typename T, typename... Args> Result MakeIterator(Runtime& runtime, const Value& input, Args... args) {
  const int nesting = 1 + std::max({Depth(input), DepthOf(args)...});
  RETURN_IF_ERROR(runtime.budget().CheckDepth(nesting));
  return Value(IteratorPtr(std::make_shared<T>(input, nesting, std::move(args)...)));
}

// The filter or test named by the first argument from `skip` on, with the arguments behind it.
struct NamedCall {
  const NativeFunction* function = nullptr;
  Arguments arguments;

  Result Run(Runtime& runtime, const Value& item) const { return CallNative(runtime, *function, item, arguments); }
};
absl::StatusOr<NamedCall> ParseNamedCall(const Arguments& arguments, size_t skip, absl::string_view kind,
                                         const NativeFunction* (*find)(absl::string_view)) {
  const TextPtr* name = arguments.positional[skip].As<TextPtr>();
  NamedCall call{.function = name != nullptr ? find((*name)->bytes()) : nullptr};
  if (call.function == nullptr) {
    return UsageError("no ", kind, " named ", name != nullptr ? absl::StrCat("'", Printable((*name)->bytes()), "'") : "by this value");
  }
  call.arguments.positional.assign(arguments.positional.begin() + static_cast<int64_t>(skip) + 1, arguments.positional.end());
  call.arguments.keyword = arguments.keyword;
  return call;
}

class MapIterator : public LazyIterator {
 public:
  MapIterator(Value input, int nesting, Arguments arguments) : LazyIterator(std::move(input), nesting), arguments_(std::move(arguments)) {}

 private:
  absl::Status Start(Runtime&) override {
    if (!Truth(input_)) return absl::OkStatus();
    bool has_attribute = false;
    if (arguments_.positional.empty()) attribute_ = arguments_.TakeKeyword("attribute", &has_attribute);
    if (has_attribute) {
      bool has_default = false;
      default_ = arguments_.TakeKeyword("default", &has_default);
      if (!has_default || default_.Is<None>()) default_ = Value();
      if (!arguments_.keyword.empty()) return UsageError("map takes no keyword argument '", Printable(arguments_.keyword[0].first), "'");
    } else if (arguments_.positional.empty()) {
      return UsageError("map expects an attribute or the name of a filter, found neither");
    } else {
      ASSIGN_OR_RETURN(call_, ParseNamedCall(arguments_, 0, "filter", FindFilter));
    }
    return Open(input_);
  }

  absl::StatusOr<bool> Produce(Runtime& runtime, Value* value) override {
    Value item;
    ASSIGN_OR_RETURN(const bool more, Draw(runtime, &item));
    if (!more) return false;
    if (call_.function != nullptr) {
      ASSIGN_OR_RETURN(*value, call_.Run(runtime, item));
    } else {
      ASSIGN_OR_RETURN(*value, GetPath(runtime, item, attribute_, default_.Is<Undefined>() ? nullptr : &default_));
    }
    return true;
  }

  Arguments arguments_;
  Value attribute_, default_;
  NamedCall call_;
};

class SelectIterator : public LazyIterator {
 public:
  SelectIterator(Value input, int nesting, Arguments arguments, bool by_attribute, bool keep)
      : LazyIterator(std::move(input), nesting), arguments_(std::move(arguments)), by_attribute_(by_attribute), keep_(keep) {}

 private:
  absl::Status Start(Runtime&) override {
    if (!Truth(input_)) return absl::OkStatus();
    const size_t skip = by_attribute_ ? 1 : 0;
    if (arguments_.positional.size() < skip) return UsageError("expected the name of an attribute, found nothing");
    if (arguments_.positional.size() > skip) {
      ASSIGN_OR_RETURN(call_, ParseNamedCall(arguments_, skip, "test", FindTest));
    }
    return Open(input_);
  }

  absl::StatusOr<bool> Produce(Runtime& runtime, Value* value) override {
    while (true) {
      ASSIGN_OR_RETURN(const bool more, Draw(runtime, value));
      if (!more) return false;
      Value tested = *value;
      if (by_attribute_) {
        ASSIGN_OR_RETURN(tested, GetPath(runtime, tested, arguments_.positional[0]));
      }
      if (call_.function != nullptr) {
        ASSIGN_OR_RETURN(tested, call_.Run(runtime, tested));
      }
      if (Truth(tested) == keep_) return true;
    }
  }

  const Arguments arguments_;
  const bool by_attribute_, keep_;
  NamedCall call_;
};

class UniqueIterator : public LazyIterator {
 public:
  UniqueIterator(Value input, int nesting, bool case_sensitive, Value attribute)
      : LazyIterator(std::move(input), nesting), case_sensitive_(case_sensitive), attribute_(std::move(attribute)) {}

 private:
  absl::StatusOr<bool> Produce(Runtime& runtime, Value* value) override {
    while (true) {
      ASSIGN_OR_RETURN(const bool more, Draw(runtime, value));
      if (!more) return false;
      ASSIGN_OR_RETURN(Value held, GetPath(runtime, *value, attribute_));
      const TextPtr* text = held.As<TextPtr>();
      if (text != nullptr && !case_sensitive_) {
        ASSIGN_OR_RETURN(TextPtr lower, LowerText(runtime.budget(), *text));
        held = Value(std::move(lower));
      }
      ASSIGN_OR_RETURN(std::string key, HashKey(runtime.budget(), held));
      if (seen_.insert(std::move(key)).second) return true;
    }
  }

  const bool case_sensitive_;
  const Value attribute_;
  absl::flat_hash_set<std::string> seen_;
};

class BatchIterator : public LazyIterator {
 public:
  BatchIterator(Value input, int nesting, int64_t size, Value fill)
      : LazyIterator(std::move(input), nesting), size_(size), fill_(std::move(fill)) {}

 private:
  absl::StatusOr<bool> Produce(Runtime& runtime, Value* value) override {
    Value item;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, Draw(runtime, &item));
      if (!more) break;
      const bool full = static_cast<int64_t>(batch_.size()) == size_;
      if (full) {
        ASSIGN_OR_RETURN(*value, MakeList(runtime.budget(), std::exchange(batch_, {})));
      }
      batch_.push_back(std::move(item));
      if (full) return true;
    }
    if (batch_.empty()) return false;
    const int64_t missing = size_ - static_cast<int64_t>(batch_.size());
    if (!fill_.Is<None>() && missing > 0) {
      RETURN_IF_ERROR(runtime.budget().Spend(missing));
      batch_.resize(static_cast<size_t>(size_), fill_);
    }
    ASSIGN_OR_RETURN(*value, MakeList(runtime.budget(), std::exchange(batch_, {})));
    return true;
  }

  const int64_t size_;
  const Value fill_;
  ValueList batch_;
};

// `slices` lists of nearly equal length.
class SliceIterator : public LazyIterator {
 public:
  SliceIterator(Value input, int nesting, int64_t slices, Value fill)
      : LazyIterator(std::move(input), nesting), slices_(slices), fill_(std::move(fill)) {}

 private:
  absl::Status Start(Runtime& runtime) override {
    ASSIGN_OR_RETURN(items_, Collect(runtime, input_));
    return slices_ == 0 ? UsageError("slice: expected a number of slices other than 0") : absl::OkStatus();
  }

  absl::StatusOr<bool> Produce(Runtime& runtime, Value* value) override {
    if (next_ >= slices_) return false;
    const auto count = static_cast<int64_t>(items_.size());
    const int64_t size = count / slices_, extra = count % slices_;
    const int64_t begin = next_ * size + std::min(next_, extra), end = begin + size + (next_ < extra ? 1 : 0);
    ValueList slice(items_.begin() + begin, items_.begin() + end);
    if (!fill_.Is<None>() && next_ >= extra) slice.push_back(fill_);
    ++next_;
    RETURN_IF_ERROR(runtime.budget().Spend(1));
    ASSIGN_OR_RETURN(*value, MakeList(runtime.budget(), std::move(slice)));
    return true;
  }

  const int64_t slices_;
  const Value fill_;
  ValueList items_;
  int64_t next_ = 0;
};

class ItemsIterator : public LazyIterator {
 public:
  ItemsIterator(Value input, int nesting) : LazyIterator(std::move(input), nesting) {}

 private:
  absl::Status Start(Runtime&) override {
    if (input_.Is<Undefined>()) return absl::OkStatus();
    const DictPtr* dict = input_.As<DictPtr>();
    if (dict == nullptr) return UsageError("items: expected a dict, found ", TypeName(input_));
    return Open(Value(ViewPtr(std::make_shared<const ViewObject>(ViewObject{ViewObject::Type::kItems, *dict}))));
  }
  absl::StatusOr<bool> Produce(Runtime& runtime, Value* value) override { return Draw(runtime, value); }
};

Result Map(Runtime& runtime, const Value& self, Arguments arguments) {
  return MakeIterator<MapIterator>(runtime, self, std::move(arguments));
}

template <bool kByAttribute, bool kKeep> Result Select(Runtime& runtime, const Value& self, Arguments arguments) {
  return MakeIterator<SelectIterator>(runtime, self, std::move(arguments), kByAttribute, kKeep);
}

Value OrNone(const Value* value) { return value != nullptr ? *value : Value(None{}); }

Result Unique(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  return MakeIterator<UniqueIterator>(runtime, self, arguments.Boolean(0, false), OrNone(arguments.At(1)));
}

template <typename Iterator> Result Divide(Runtime& runtime, const Value& self, const BoundArguments& arguments) {
  ASSIGN_OR_RETURN(const int64_t count, arguments.Integer(0, 0));
  return MakeIterator<Iterator>(runtime, self, count, OrNone(arguments.At(1)));
}

Result Items(Runtime& runtime, const Value& self, const BoundArguments&) { return MakeIterator<ItemsIterator>(runtime, self); }

// A text backwards; an iterator over a sequence; a list from any other iterable.
Result Reverse(Runtime& runtime, const Value& self, const BoundArguments&) {
  Budget& budget = runtime.budget();
  if (const TextPtr* text = self.As<TextPtr>()) {
    ASSIGN_OR_RETURN(TextPtr reversed, PickCharacters(budget, *text, (*text)->length() - 1, -1, (*text)->length()));
    return Value(std::move(reversed));
  }
  ASSIGN_OR_RETURN(ValueList items, Collect(runtime, self));
  std::reverse(items.begin(), items.end());
  ASSIGN_OR_RETURN(Value list, MakeList(budget, std::move(items)));
  if (self.Is<IteratorPtr>()) return list;
  ASSIGN_OR_RETURN(IteratorPtr iterator, Iterate(list));
  return Value(std::move(iterator));
}

constexpr NativeFunction kSelectionFilters[] = {
    {.name = "batch", .parameters = {"linecount", "?fill_with"}, .run = Divide<BatchIterator>},
    {.name = "items", .run = Items},
    {.name = "map", .run_variadic = Map},
    {.name = "reject", .run_variadic = Select<false, false>},
    {.name = "rejectattr", .run_variadic = Select<true, false>},
    {.name = "reverse", .run = Reverse},
    {.name = "select", .run_variadic = Select<false, true>},
    {.name = "selectattr", .run_variadic = Select<true, true>},
    {.name = "slice", .parameters = {"slices", "?fill_with"}, .run = Divide<SliceIterator>},
    {.name = "unique", .parameters = {"?case_sensitive", "?attribute"}, .run = Unique},
};

}  // namespace

absl::Span<const NativeFunction> SelectionFilters() { return kSelectionFilters; }

}  // namespace pith::jinja
