// Exact comparison of numbers in generated text, as GSM8K and MGSM are scored.
//
// The number that counts is, in this order: the one behind the last "####" that a number follows (GSM8K), the first inside the last
// \boxed{}, the first after the last "Answer:" (in the language of the item or in English), else the last number of the text. Thousands
// separators, currency signs and digits of other scripts are understood; numbers are compared as decimals, so 18, 18.0 and $18.00 are equal
// and nothing is rounded.
// Source: Cobbe et al. 2021 (GSM8K), Shi et al. 2022 (MGSM); deviations in docs/tasks.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace pith {

// A decimal number in one spelling: "-12.5", "0"; no leading or trailing zeros, no "-0".
using CanonicalNumber = std::string;

// The number that the whole of `text` is, written as in English ("$ 2,125", "-10", "0.50"): what references look like in every published
// file, whatever its language. nullopt for anything else.
std::optional<CanonicalNumber> ParseReferenceNumber(absl::string_view text);

// The readings of the number that counts in `text` (any bytes); empty when there is none. In languages with a decimal comma "2,125" can be
// read both ways, because models mix the customs, and has two readings; all else has one. `language` as in TaskItem.
std::vector<CanonicalNumber> FinalNumber(absl::string_view text, absl::string_view language);

}  // namespace pith
