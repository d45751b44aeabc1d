// The name a writer most likely meant, for messages about unknown keys and names.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pith {

// Number of single-character insertions, deletions and substitutions between two texts, letter case ignored (Levenshtein 1966).
// O(|a| * |b|) time: for short names.
int EditDistance(absl::string_view a, absl::string_view b);

// The member of `names` closest to `name` (the first of equals); empty when `names` is. Only the first 64 bytes of `name` count.
absl::string_view NearestName(absl::string_view name, absl::Span<const absl::string_view> names);

}  // namespace pith
