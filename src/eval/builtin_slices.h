// The project's own slices (data/slices), in the binary: rows of JSON for a measurement when no other data is at hand. Constant data,
// UTF-8.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pith {

struct BuiltinSlice {
  absl::string_view name;  // "code", "math", "multilingual" or "prose"; several files may belong to one slice
  absl::string_view file;  // name of the file it comes from, below data/slices
  absl::string_view rows;  // its content: one JSON object per line, each line ended
};

// By file name, ascending.
absl::Span<const BuiltinSlice> BuiltinSlices();

}  // namespace pith
