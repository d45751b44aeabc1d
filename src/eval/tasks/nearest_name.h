// What a misspelt name probably meant.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pith {

// The name of `names` with the smallest edit distance (Levenshtein) to `word`, the first of equals; empty when even that is more than half
// of the longer word away.
absl::string_view NearestName(absl::string_view word, absl::Span<const absl::string_view> names);

}  // namespace pith
