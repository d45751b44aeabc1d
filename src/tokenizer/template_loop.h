// The `loop` variable of a for statement: where the iteration stands, and a look ahead by one item.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tokenizer/template_runtime.h"
#include "tokenizer/template_value.h"

namespace pith::jinja {

// Iteration over any iterable value, one-way. Text gives its characters, a dict its keys, undefined nothing; an iterator is used up.
// Errors: a value that cannot be iterated.
absl::StatusOr<IteratorPtr> Iterate(const Value& value);
// All items, each one step. Errors: as Iterate, and as the items fail.
absl::StatusOr<ValueList> Collect(Runtime& runtime, const Value& value);

class LoopObject : public MutableObject, public std::enable_shared_from_this<LoopObject> {
 public:
  // `length`: items of `source` when known, else -1.
  LoopObject(IteratorPtr source, int64_t length);

  // Moves to the next item; false at the end.
  absl::StatusOr<bool> Advance(Runtime& runtime, Value* item);
  // loop.index, loop.last, ...; nullopt for an unknown name. loop.length, .revindex, .last and .nextitem read ahead.
  absl::StatusOr<std::optional<Value>> Attribute(Runtime& runtime, absl::string_view name);

  // loop.changed(...): whether `values` differ from those of the previous call.
  absl::StatusOr<bool> Changed(Runtime& runtime, const Value& values);

  int64_t index0() const { return index0_; }
  int depth() const { return depth_; }
  void Release() override;

 private:
  absl::StatusOr<const Value*> Peek(Runtime& runtime);  // nullptr at the end
  absl::StatusOr<int64_t> CountItems(Runtime& runtime);

  IteratorPtr source_;
  int64_t length_;
  int depth_;
  int64_t index0_ = -1;
  Value previous_, current_;
  std::optional<Value> next_;
  std::optional<Value> last_changed_;
  bool retained_ = false;
};

// loop.cycle and loop.changed, to be called on `loop`; nullptr for other names.
struct NativeFunction;
const NativeFunction* FindLoopMethod(absl::string_view name);

}  // namespace pith::jinja
