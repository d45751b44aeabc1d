// The methods and attributes of values: what "object.name" and "object[key]" mean in the sandbox of transformers.
//
// Methods exist for str, list, tuple, dict and range only, and none of them changes its object. Names with a leading underscore and the
// methods that would change a list or dict give an undefined value that says so; nothing else of Python's objects exists at all.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tokenizer/template_function.h"
#include "tokenizer/template_runtime.h"
#include "tokenizer/template_value.h"

namespace pith::jinja {

// Tables of one type's methods.
absl::Span<const NativeFunction> TextMethods();
absl::Span<const NativeFunction> ListMethods();
absl::Span<const NativeFunction> TupleMethods();
absl::Span<const NativeFunction> DictMethods();
absl::Span<const NativeFunction> RangeMethods();

// object.name: a method or attribute, else an item of that key, else undefined. Errors: `object` is undefined.
absl::StatusOr<Value> GetAttribute(Runtime& runtime, const Value& object, absl::string_view name);
// object|attr("name"): without the items.
absl::StatusOr<Value> GetAttributeOnly(Runtime& runtime, const Value& object, absl::string_view name);
// object[key]: an item, else the attribute of that name, else undefined. Errors: `object` is undefined.
absl::StatusOr<Value> GetItem(Runtime& runtime, const Value& object, const Value& key);
// object[start:stop:step]; None for an omitted bound. Errors: not a sequence, bounds that are no integers, step 0.
absl::StatusOr<Value> GetSlice(Runtime& runtime, const Value& object, const Value& start, const Value& stop, const Value& step);

// The attribute a filter names: "author.name", "0.id" or an index; missing parts become `default_value` if given.
absl::StatusOr<Value> GetPath(Runtime& runtime, const Value& object, const Value& path, const Value* default_value = nullptr);

}  // namespace pith::jinja
