// The tojson filter of transformers: Python's json.dumps with its own defaults (no HTML escapes, text as it is).
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tokenizer/template_runtime.h"
#include "tokenizer/template_value.h"

namespace pith::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // one level of it; no line breaks when absent
  std::string item_separator = ", ";  // "," is usual with an indent
  std::string key_separator = ": ";
};

// The JSON text, as a whole the user's if anything in `value` is.
// Errors: values JSON has no form for (undefined, ranges, iterators, macros, ...), keys that are not str, int, float, bool or none.
absl::StatusOr<TextPtr> DumpJsonText(Runtime& runtime, const Value& value, const JsonStyle& style);

}  // namespace pith::jinja
