// The values of the template interpreter: Python's None, bool, int (64 bits), float, str, list, tuple, dict, range, dict views and
// iterators, and jinja2's Undefined, namespace, macro and loop. No host object is reachable from any of them.
//
// Lists and dicts never change once made (the sandbox of transformers forbids it), so they are shared freely; namespaces and loops do
// change. Containers know their nesting depth and refuse to pass the limit, so recursion over a value is bounded.
// Values belong to one rendering and one thread, but the constants of a parsed template are read by many.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json.h"
#include "tokenizer/template_budget.h"
#include "tokenizer/template_text.h"

namespace pith::jinja {

class Value;
class Runtime;
struct FunctionObject;
struct IteratorObject;
struct ListObject;
class LoopObject;
struct MacroObject;
struct NamespaceObject;
struct DictObject;
struct RangeObject;
struct ViewObject;

struct None {};
// Falsy, empty when printed or iterated; every other use is an error with this message.
struct Undefined {
  std::shared_ptr<const std::string> message;
};

using ValueList = std::vector<Value>;
using DictPtr = std::shared_ptr<const DictObject>;
using FunctionPtr = std::shared_ptr<const FunctionObject>;
using IteratorPtr = std::shared_ptr<IteratorObject>;
using ListPtr = std::shared_ptr<const ListObject>;
using LoopPtr = std::shared_ptr<LoopObject>;
using MacroPtr = std::shared_ptr<MacroObject>;
using NamespacePtr = std::shared_ptr<NamespaceObject>;
using RangePtr = std::shared_ptr<const RangeObject>;
using ViewPtr = std::shared_ptr<const ViewObject>;

class Value {
 public:
  using Storage = std::variant<Undefined, None, bool, int64_t, double, TextPtr, ListPtr, DictPtr, RangePtr, ViewPtr, IteratorPtr,
                               NamespacePtr, FunctionPtr, MacroPtr, LoopPtr>;

  Value() = default;  // undefined, without a message
  template <typename T>
  requires(!std::is_same_v<std::decay_t<T>, Value> && !std::is_pointer_v<std::decay_t<T>> && std::is_constructible_v<Storage, T>)
      // NOLINTNEXTLINE(google-explicit-constructor): a value is what it holds
      Value(T&& held)
      : storage_(std::forward<T>(held)) {}

  const Storage& storage() const { return storage_; }
  template <typename T> const T* As() const { return std::get_if<T>(&storage_); }
  template <typename T> bool Is() const { return std::holds_alternative<T>(storage_); }

 private:
  Storage storage_;
};

// "it is undefined because ...": what using it says.
Value MakeUndefined(std::string message);
Value MakeString(absl::string_view bytes, bool user = false);

// A list, a tuple, or the (grouper, list) pair of groupby.
struct ListObject {
  enum class Type { kList, kTuple, kGroup };
  ValueList items;
  Type type = Type::kList;
  bool user = false;  // came with the messages, tools or other inputs
  int depth = 1;

  bool is_list() const { return type == Type::kList; }
};

// Insertion-ordered map from hashable values. Looks up by Python's equality (1, 1.0 and true are one key).
class DictItems {
 public:
  using Item = std::pair<Value, Value>;
  const std::vector<Item>& items() const { return items_; }
  int64_t size() const { return static_cast<int64_t>(items_.size()); }
  // nullptr when absent.
  const Value* Find(absl::string_view key) const;
  absl::StatusOr<const Value*> Find(Budget& budget, const Value& key) const;
  // Adds or replaces. Errors: an unhashable key.
  absl::Status Set(Budget& budget, Value key, Value value);

 private:
  size_t Position(absl::string_view hash_key) const;  // items_.size() when absent

  std::vector<Item> items_;
  std::vector<std::string> hash_keys_;              // of items_
  absl::flat_hash_map<std::string, size_t> index_;  // only once there are many items
};

struct DictObject {
  DictItems items;
  bool user = false;
  int depth = 1;
};

struct RangeObject {
  int64_t start = 0, stop = 0, step = 1, length = 0;
  // Unsigned, because the product alone may pass 64 bits.
  int64_t At(int64_t index) const {
    return static_cast<int64_t>(static_cast<uint64_t>(start) + static_cast<uint64_t>(index) * static_cast<uint64_t>(step));
  }
};

struct ViewObject {
  enum class Type { kKeys, kValues, kItems };
  Type type;
  DictPtr dict;
};

// An object that may come to hold itself. The Runtime keeps these and empties them at the end, so cycles do not leak.
struct MutableObject {
  virtual ~MutableObject() = default;
  virtual void Release() = 0;
};

struct NamespaceObject : MutableObject {
  DictItems attributes;
  void Release() override { attributes = DictItems(); }
};

// A one-way source of values: what select, map, reverse, items, ... give, as Python's generators.
struct IteratorObject {
  explicit IteratorObject(int nesting) : depth(nesting) {}
  virtual ~IteratorObject() = default;
  // False at the end.
  virtual absl::StatusOr<bool> Next(Runtime& runtime, Value* value) = 0;
  const int depth;
};

// Nesting of containers, 0 for a scalar.
int Depth(const Value& value);
// bool(value).
bool Truth(const Value& value);
// Python's type name, for messages.
absl::string_view TypeName(const Value& value);
// len(value); -1 when it has none.
int64_t Length(const Value& value);

// Errors: too deep.
absl::StatusOr<Value> MakeList(Budget& budget, ValueList items, ListObject::Type type = ListObject::Type::kList);
absl::StatusOr<Value> MakeDict(Budget& budget, DictItems items);
// Inputs: strings and containers are marked as the user's. Errors: text that is not UTF-8, an integer past 64 bits, too deep.
absl::StatusOr<Value> ValueFromJson(Budget& budget, const OrderedJson& json);

// The integer an int or a bool stands for, as Python's operator.index.
std::optional<int64_t> AsIndex(const Value& value);

// A key that is equal for equal values: hash() and == in one. Errors: unhashable types, undefined nesting.
absl::StatusOr<std::string> HashKey(Budget& budget, const Value& value);

}  // namespace pith::jinja
