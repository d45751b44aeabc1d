// Numbers in running text of eleven languages; what number_match.h and nothing else is made of.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace pith {

// Text in which digits of every script are ASCII digits, full-width and Arabic separators and signs of minus are ASCII, and the spaces that
// may separate thousands are ordinary ones. Malformed UTF-8 becomes U+FFFD.
std::u32string FoldDigits(absl::string_view text);

struct NumberToken {
  size_t begin = 0, end = 0;  // in the folded text; the sign belongs to it, currency does not
  std::vector<std::string> readings;
};

struct NumberCustoms {
  bool decimal_comma = false;
  bool myriads = false;  // multipliers of Japanese and Chinese may follow digits
};

// The first number that begins at `from` or later.
std::optional<NumberToken> NextNumber(const std::u32string& text, size_t from, const NumberCustoms& customs);

}  // namespace pith
