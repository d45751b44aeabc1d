#include "tokenizer/template_loop.h"

#include <utility>

#include "base/status.h"
#include "tokenizer/template_compare.h"
#include "tokenizer/template_function.h"

namespace pith::jinja {
namespace {

// Items of a list or tuple, or of a list made for this iteration.
class ListIterator : public IteratorObject {
 public:
  explicit ListIterator(ListPtr list) : IteratorObject(list->depth + 1), list_(std::move(list)) {}
  absl::StatusOr<bool> Next(Runtime&, Value* value) override {
    if (next_ == list_->items.size()) return false;
    *value = list_->items[next_++];
    return true;
  }

 private:
  const ListPtr list_;
  size_t next_ = 0;
};

class TextIterator : public IteratorObject {
 public:
  explicit TextIterator(TextPtr text) : IteratorObject(1), text_(std::move(text)), cursor_(*text_) {}
  absl::StatusOr<bool> Next(Runtime&, Value* value) override {
    if (!cursor_.Next()) return false;
    TextBuilder character;  // plain even if the text is markup
    character.Append(*text_, cursor_.begin, cursor_.end);
    *value = std::move(character).Build();
    return true;
  }

 private:
  const TextPtr text_;
  TextCursor cursor_;
};

class RangeIterator : public IteratorObject {
 public:
  explicit RangeIterator(RangePtr range) : IteratorObject(1), range_(std::move(range)) {}
  absl::StatusOr<bool> Next(Runtime&, Value* value) override {
    if (next_ == range_->length) return false;
    *value = Value(range_->At(next_++));
    return true;
  }

 private:
  const RangePtr range_;
  int64_t next_ = 0;
};

class DictIterator : public IteratorObject {
 public:
  DictIterator(DictPtr dict, ViewObject::Type type) : IteratorObject(dict->depth + 2), dict_(std::move(dict)), type_(type) {}
  absl::StatusOr<bool> Next(Runtime& runtime, Value* value) override {
    const auto& items = dict_->items.items();
    if (next_ == items.size()) return false;
    const auto& [key, held] = items[next_++];
    if (type_ == ViewObject::Type::kItems) {
      ASSIGN_OR_RETURN(*value, MakeList(runtime.budget(), {key, held}, ListObject::Type::kTuple));
    } else {
      *value = type_ == ViewObject::Type::kKeys ? key : held;
    }
    return true;
  }

 private:
  const DictPtr dict_;
  const ViewObject::Type type_;
  size_t next_ = 0;
};

absl::StatusOr<Value> Cycle(Runtime&, const Value& self, Arguments arguments) {
  if (!arguments.keyword.empty()) return UsageError("cycle() takes no keyword argument");
  if (arguments.positional.empty()) return UsageError("cycle() expects items, found none");
  const int64_t count = static_cast<int64_t>(arguments.positional.size());
  const int64_t index0 = (*self.As<LoopPtr>())->index0();
  return arguments.positional[((index0 % count) + count) % count];
}

absl::StatusOr<Value> Changed(Runtime& runtime, const Value& self, Arguments arguments) {
  if (!arguments.keyword.empty()) return UsageError("changed() takes no keyword argument");
  ASSIGN_OR_RETURN(const Value values, MakeList(runtime.budget(), std::move(arguments.positional), ListObject::Type::kTuple));
  ASSIGN_OR_RETURN(const bool changed, (*self.As<LoopPtr>())->Changed(runtime, values));
  return Value(changed);
}

constexpr NativeFunction kMethods[] = {{.name = "cycle", .run_variadic = Cycle}, {.name = "changed", .run_variadic = Changed}};

}  // namespace

absl::StatusOr<IteratorPtr> Iterate(const Value& value) {
  if (const ListPtr* list = value.As<ListPtr>()) return IteratorPtr(std::make_shared<ListIterator>(*list));
  if (const DictPtr* dict = value.As<DictPtr>()) return IteratorPtr(std::make_shared<DictIterator>(*dict, ViewObject::Type::kKeys));
  if (const ViewPtr* view = value.As<ViewPtr>()) return IteratorPtr(std::make_shared<DictIterator>((*view)->dict, (*view)->type));
  if (const RangePtr* range = value.As<RangePtr>()) return IteratorPtr(std::make_shared<RangeIterator>(*range));
  if (const TextPtr* text = value.As<TextPtr>()) return IteratorPtr(std::make_shared<TextIterator>(*text));
  if (const IteratorPtr* iterator = value.As<IteratorPtr>()) return *iterator;
  if (value.Is<Undefined>()) return IteratorPtr(std::make_shared<ListIterator>(std::make_shared<const ListObject>()));
  return UsageError("expected something to iterate over, found ", TypeName(value));
}

absl::StatusOr<ValueList> Collect(Runtime& runtime, const Value& value) {
  ValueList items;
  if (const ListPtr* list = value.As<ListPtr>()) {
    RETURN_IF_ERROR(runtime.budget().Spend(static_cast<int64_t>((*list)->items.size())));
    items = (*list)->items;
    return items;
  }
  ASSIGN_OR_RETURN(const IteratorPtr iterator, Iterate(value));
  Value item;
  while (true) {
    RETURN_IF_ERROR(runtime.budget().Spend(1));
    ASSIGN_OR_RETURN(const bool more, iterator->Next(runtime, &item));
    if (!more) return items;
    items.push_back(std::move(item));
  }
}

LoopObject::LoopObject(IteratorPtr source, int64_t length) : source_(std::move(source)), length_(length), depth_(source_->depth + 1) {}

absl::StatusOr<const Value*> LoopObject::Peek(Runtime& runtime) {
  if (!next_.has_value()) {
    Value item;
    ASSIGN_OR_RETURN(const bool more, source_->Next(runtime, &item));
    if (!more) return nullptr;
    next_ = std::move(item);
  }
  return &*next_;
}

absl::StatusOr<bool> LoopObject::Advance(Runtime& runtime, Value* item) {
  ASSIGN_OR_RETURN(const Value* next, Peek(runtime));
  if (next == nullptr) return false;
  ++index0_;
  previous_ = std::move(current_);
  current_ = *std::move(next_);
  next_.reset();
  *item = current_;
  return true;
}

absl::StatusOr<int64_t> LoopObject::CountItems(Runtime& runtime) {
  if (length_ < 0) {
    auto rest = std::make_shared<ListObject>();
    ASSIGN_OR_RETURN(rest->items, Collect(runtime, Value(source_)));
    length_ = static_cast<int64_t>(rest->items.size()) + index0_ + 1 + (next_.has_value() ? 1 : 0);
    rest->depth = depth_;
    source_ = std::make_shared<ListIterator>(std::move(rest));
  }
  return length_;
}

absl::StatusOr<std::optional<Value>> LoopObject::Attribute(Runtime& runtime, absl::string_view name) {
  using Result = std::optional<Value>;
  if (name == "index") return Result(index0_ + 1);
  if (name == "index0") return Result(index0_);
  if (name == "first") return Result(index0_ == 0);
  if (name == "depth") return Result(int64_t{1});
  if (name == "depth0") return Result(int64_t{0});
  if (name == "previtem") return Result(index0_ == 0 ? MakeUndefined("there is no previous item") : previous_);
  if (name == "last" || name == "nextitem") {
    ASSIGN_OR_RETURN(const Value* next, Peek(runtime));
    if (name == "last") return Result(next == nullptr);
    return Result(next == nullptr ? MakeUndefined("there is no next item") : *next);
  }
  if (name == "length" || name == "revindex" || name == "revindex0") {
    ASSIGN_OR_RETURN(const int64_t length, CountItems(runtime));
    return Result(name == "length" ? length : name == "revindex" ? length - index0_ : length - index0_ - 1);
  }
  return Result();
}

absl::StatusOr<bool> LoopObject::Changed(Runtime& runtime, const Value& values) {
  if (last_changed_.has_value()) {
    ASSIGN_OR_RETURN(const bool same, Equals(runtime.budget(), *last_changed_, values));
    if (same) return false;
  } else if (!retained_) {
    retained_ = true;
    runtime.Retain(shared_from_this());
  }
  last_changed_ = values;
  return true;
}

void LoopObject::Release() {
  source_ = nullptr;
  previous_ = current_ = Value();
  next_.reset();
  last_changed_.reset();
}

const NativeFunction* FindLoopMethod(absl::string_view name) { return FindFunction(kMethods, name); }

}  // namespace pith::jinja
