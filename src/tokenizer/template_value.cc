#include "tokenizer/template_value.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "tokenizer/template_function.h"
#include "tokenizer/template_loop.h"
#include "tokenizer/template_unicode.h"
#include "tokenizer/utf8.h"

namespace pith::jinja {
namespace {

// Below this many items a dict is searched one by one.
constexpr size_t kIndexedItems = 8;

template <typename... Ts> struct Overloaded : Ts... { using Ts::operator()...; };
template <typename... Ts> Overloaded(Ts...) -> Overloaded<Ts...>;

// Reads the bits of a key that equal numbers share.
std::string NumberKey(double number) {
  if (std::floor(number) == number && std::abs(number) < 9.2e18) return absl::StrCat("i", static_cast<int64_t>(number));
  return absl::StrCat("f", absl::Hex(std::bit_cast<uint64_t>(number)));
}

template <typename T> std::string IdentityKey(const std::shared_ptr<T>& object) {
  return absl::StrCat("p", absl::Hex(reinterpret_cast<uintptr_t>(object.get())));
}

absl::StatusOr<std::string> TupleKey(Budget& budget, const ListObject& tuple) {
  std::string key = "t";
  for (const Value& item : tuple.items) {
    ASSIGN_OR_RETURN(const std::string item_key, HashKey(budget, item));
    absl::StrAppend(&key, item_key.size(), ":", item_key);
  }
  return key;
}

absl::StatusOr<Value> StringFromJson(const std::string& bytes) {
  if (!IsValidUtf8(bytes)) return UsageError("expected UTF-8 text in the inputs, found \"", Printable(bytes), "\"");
  return MakeString(bytes, /*user=*/true);
}

absl::StatusOr<Value> ObjectFromJson(Budget& budget, const OrderedJson& json, int level);
absl::StatusOr<Value> ArrayFromJson(Budget& budget, const OrderedJson& json, int level);

absl::StatusOr<Value> FromJson(Budget& budget, const OrderedJson& json, int level) {
  RETURN_IF_ERROR(budget.CheckDepth(level));
  switch (json.type()) {
    case OrderedJson::value_t::null: return Value(None{});
    case OrderedJson::value_t::boolean: return Value(json.get<bool>());
    case OrderedJson::value_t::number_integer: return Value(json.get<int64_t>());
    case OrderedJson::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return UsageError("expected integers of 64 bits in the inputs, found ", json.get<uint64_t>());
      }
      return Value(json.get<int64_t>());
    case OrderedJson::value_t::number_float: return Value(json.get<double>());
    case OrderedJson::value_t::string: return StringFromJson(json.get_ref<const std::string&>());
    case OrderedJson::value_t::array: return ArrayFromJson(budget, json, level);
    case OrderedJson::value_t::object: return ObjectFromJson(budget, json, level);
    default: return UsageError("expected JSON in the inputs, found ", json.type_name());
  }
}

absl::StatusOr<Value> ArrayFromJson(Budget& budget, const OrderedJson& json, int level) {
  auto list = std::make_shared<ListObject>();
  list->user = true;
  list->items.reserve(json.size());
  for (const OrderedJson& item : json) {
    ASSIGN_OR_RETURN(Value value, FromJson(budget, item, level + 1));
    list->depth = std::max(list->depth, 1 + Depth(value));
    list->items.push_back(std::move(value));
  }
  return Value(ListPtr(std::move(list)));
}

absl::StatusOr<Value> ObjectFromJson(Budget& budget, const OrderedJson& json, int level) {
  auto dict = std::make_shared<DictObject>();
  dict->user = true;
  for (auto item = json.begin(); item != json.end(); ++item) {
    ASSIGN_OR_RETURN(Value key, StringFromJson(item.key()));
    ASSIGN_OR_RETURN(Value value, FromJson(budget, item.value(), level + 1));
    dict->depth = std::max(dict->depth, 1 + Depth(value));
    RETURN_IF_ERROR(dict->items.Set(budget, std::move(key), std::move(value)));
  }
  return Value(DictPtr(std::move(dict)));
}

}  // namespace

Value MakeUndefined(std::string message) { return Value(Undefined{std::make_shared<const std::string>(std::move(message))}); }

Value MakeString(absl::string_view bytes, bool user) { return Value(MakeText(bytes, user)); }

size_t DictItems::Position(absl::string_view hash_key) const {
  if (index_.empty()) return std::find(hash_keys_.begin(), hash_keys_.end(), hash_key) - hash_keys_.begin();
  const auto at = index_.find(hash_key);
  return at != index_.end() ? at->second : items_.size();
}

const Value* DictItems::Find(absl::string_view key) const {
  const auto matches = [&](const std::string& hash_key) {
    return hash_key.size() == key.size() + 1 && hash_key[0] == 's' && absl::EndsWith(hash_key, key);
  };
  size_t position = items_.size();
  if (index_.empty()) {
    position = std::find_if(hash_keys_.begin(), hash_keys_.end(), matches) - hash_keys_.begin();
  } else {
    position = Position(absl::StrCat("s", key));
  }
  return position < items_.size() ? &items_[position].second : nullptr;
}

absl::StatusOr<const Value*> DictItems::Find(Budget& budget, const Value& key) const {
  ASSIGN_OR_RETURN(const std::string hash_key, HashKey(budget, key));
  const size_t position = Position(hash_key);
  return position < items_.size() ? &items_[position].second : nullptr;
}

absl::Status DictItems::Set(Budget& budget, Value key, Value value) {
  ASSIGN_OR_RETURN(std::string hash_key, HashKey(budget, key));
  const size_t position = Position(hash_key);
  if (position < items_.size()) {
    items_[position].second = std::move(value);
    return absl::OkStatus();
  }
  items_.emplace_back(std::move(key), std::move(value));
  hash_keys_.push_back(std::move(hash_key));
  if (items_.size() == kIndexedItems) {
    for (size_t i = 0; i < hash_keys_.size(); ++i) index_.emplace(hash_keys_[i], i);
  } else if (items_.size() > kIndexedItems) {
    index_.emplace(hash_keys_.back(), position);
  }
  return absl::OkStatus();
}

int Depth(const Value& value) {
  return std::visit(
      Overloaded{[](const ListPtr& list) { return list->depth; }, [](const DictPtr& dict) { return dict->depth; },
                 [](const ViewPtr& view) { return view->dict->depth + 1; }, [](const IteratorPtr& iterator) { return iterator->depth; },
                 [](const LoopPtr& loop) { return loop->depth(); }, [](const FunctionPtr& function) { return 1 + Depth(function->self); },
                 [](const auto&) { return 0; }},
      value.storage());
}

bool Truth(const Value& value) {
  return std::visit(
      Overloaded{[](const Undefined&) { return false; }, [](None) { return false; }, [](bool held) { return held; },
                 [](int64_t held) { return held != 0; }, [](double held) { return held != 0; },
                 [](const TextPtr& text) { return !text->bytes().empty(); }, [](const ListPtr& list) { return !list->items.empty(); },
                 [](const DictPtr& dict) { return dict->items.size() > 0; }, [](const RangePtr& range) { return range->length > 0; },
                 [](const ViewPtr& view) { return view->dict->items.size() > 0; }, [](const auto&) { return true; }},
      value.storage());
}

absl::string_view TypeName(const Value& value) {
  return std::visit(
      Overloaded{[](const Undefined&) -> absl::string_view { return "Undefined"; }, [](None) -> absl::string_view { return "NoneType"; },
                 [](bool) -> absl::string_view { return "bool"; }, [](int64_t) -> absl::string_view { return "int"; },
                 [](double) -> absl::string_view { return "float"; }, [](const TextPtr&) -> absl::string_view { return "str"; },
                 [](const ListPtr& list) -> absl::string_view { return list->is_list() ? "list" : "tuple"; },
                 [](const DictPtr&) -> absl::string_view { return "dict"; }, [](const RangePtr&) -> absl::string_view { return "range"; },
                 [](const ViewPtr& view) -> absl::string_view {
                   return view->type == ViewObject::Type::kKeys     ? "dict_keys"
                          : view->type == ViewObject::Type::kValues ? "dict_values"
                                                                    : "dict_items";
                 },
                 [](const IteratorPtr&) -> absl::string_view { return "generator"; },
                 [](const NamespacePtr&) -> absl::string_view { return "namespace"; },
                 [](const FunctionPtr&) -> absl::string_view { return "function"; },
                 [](const MacroPtr&) -> absl::string_view { return "macro"; }, [](const LoopPtr&) -> absl::string_view { return "loop"; }},
      value.storage());
}

int64_t Length(const Value& value) {
  return std::visit(Overloaded{[](const Undefined&) { return int64_t{0}; }, [](const TextPtr& text) { return text->length(); },
                               [](const ListPtr& list) { return static_cast<int64_t>(list->items.size()); },
                               [](const DictPtr& dict) { return dict->items.size(); }, [](const RangePtr& range) { return range->length; },
                               [](const ViewPtr& view) { return view->dict->items.size(); }, [](const auto&) { return int64_t{-1}; }},
                    value.storage());
}

absl::StatusOr<Value> MakeList(Budget& budget, ValueList items, ListObject::Type type) {
  auto list = std::make_shared<ListObject>();
  for (const Value& item : items) list->depth = std::max(list->depth, 1 + Depth(item));
  RETURN_IF_ERROR(budget.CheckDepth(list->depth));
  RETURN_IF_ERROR(budget.Spend(static_cast<int64_t>(items.size())));
  list->items = std::move(items);
  list->type = type;
  return Value(ListPtr(std::move(list)));
}

absl::StatusOr<Value> MakeDict(Budget& budget, DictItems items) {
  auto dict = std::make_shared<DictObject>();
  for (const auto& [key, value] : items.items()) dict->depth = std::max({dict->depth, 1 + Depth(key), 1 + Depth(value)});
  RETURN_IF_ERROR(budget.CheckDepth(dict->depth));
  RETURN_IF_ERROR(budget.Spend(items.size()));
  dict->items = std::move(items);
  return Value(DictPtr(std::move(dict)));
}

absl::StatusOr<Value> ValueFromJson(Budget& budget, const OrderedJson& json) { return FromJson(budget, json, 1); }

std::optional<int64_t> AsIndex(const Value& value) {
  if (const int64_t* integer = value.As<int64_t>()) return *integer;
  if (const bool* boolean = value.As<bool>()) return *boolean ? 1 : 0;
  return std::nullopt;
}

absl::StatusOr<std::string> HashKey(Budget& budget, const Value& value) {
  using Result = absl::StatusOr<std::string>;
  RETURN_IF_ERROR(budget.Spend(1));
  return std::visit(
      Overloaded{[](const Undefined&) -> Result { return "u"; }, [](None) -> Result { return "n"; },
                 [](bool held) -> Result { return held ? "i1" : "i0"; }, [](int64_t held) -> Result { return absl::StrCat("i", held); },
                 [](double held) -> Result { return NumberKey(held); },
                 [&](const TextPtr& text) -> Result {
                   RETURN_IF_ERROR(budget.SpendScan(text->bytes().size()));
                   return absl::StrCat("s", text->bytes());
                 },
                 [&](const ListPtr& list) -> Result {
                   return list->is_list() ? Result(UsageError("unhashable type: 'list'")) : TupleKey(budget, *list);
                 },
                 [](const DictPtr&) -> Result { return UsageError("unhashable type: 'dict'"); },
                 [](const ViewPtr&) -> Result { return UsageError("unhashable type: 'dict view'"); },
                 [](const RangePtr& range) -> Result {
                   return absl::StrCat("r", range->length, ",", range->length > 0 ? range->start : 0, ",",
                                       range->length > 1 ? range->step : 0);
                 },
                 [](const auto& object) -> Result { return IdentityKey(object); }},
      value.storage());
}

}  // namespace pith::jinja
