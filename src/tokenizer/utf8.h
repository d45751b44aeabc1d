// UTF-8: checking, decoding, encoding, and replacing what is malformed.
// Malformed bytes are replaced as the Unicode standard recommends (section 3.9, "substitution of maximal subparts"): one U+FFFD for
// every longest prefix of a well-formed sequence. All functions are pure and linear.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace pith {

inline constexpr char kReplacementUtf8[] = "\xEF\xBF\xBD";  // U+FFFD

bool IsValidUtf8(absl::string_view text);

// One step through bytes of unknown quality. `length` is at least 1: the sequence, or the bytes one U+FFFD stands for.
struct Utf8Step {
  enum State { kValid, kInvalid, kIncomplete } state = kInvalid;  // kIncomplete: the text ends inside a sequence that is valid so far
  int length = 1;
};
// `text` must not be empty.
Utf8Step NextUtf8(absl::string_view text);

// The code point at text[*position], which moves behind it. `text` must be valid UTF-8 and *position < text.size() at its boundary.
char32_t DecodeUtf8(absl::string_view text, size_t* position);
// Start of the code point that ends at `end` (0 < end <= text.size(), valid UTF-8).
size_t PreviousUtf8(absl::string_view text, size_t end);
// Code points of valid UTF-8.
int64_t CountUtf8(absl::string_view text);
void AppendUtf8(char32_t code_point, std::string* out);

// `bytes` with every malformed part replaced by U+FFFD.
std::string ReplaceInvalidUtf8(absl::string_view bytes);
// Removes from the front of *bytes all that is decided (whole sequences and malformed parts) and returns it as valid UTF-8;
// an incomplete sequence at the end stays.
std::string TakeCompleteUtf8(std::string* bytes);

}  // namespace pith
