// What texts of any length are made from in which something is hidden and asked for: sentences that say nothing of interest and words to
// name things with, written for this project. Constant data, ASCII.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pith {

// Distinct sentences of prose that may follow each other in any order. No digits and none of KeyWords(), so that neither a number nor a key
// that was hidden among them can be met by chance.
absl::Span<const absl::string_view> FillerSentences();

// Distinct nouns in lower case, most of them one or two tokens long, which no filler sentence uses.
absl::Span<const absl::string_view> KeyWords();

}  // namespace pith
