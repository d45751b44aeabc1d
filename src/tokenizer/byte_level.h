// The byte-level alphabet of GPT-2: every byte as one printable character, so that vocabularies hold text ("Ġthe" is " the").
// Bytes that are printable in Latin-1 stand for themselves, the others are U+0100 and up, in byte order.
// Source: Radford et al. 2019, encoder.py of the GPT-2 release (bytes_to_unicode).
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace pith {

// The character that stands for `byte`.
char32_t ByteLevelChar(uint8_t byte);
// The byte a character stands for, or -1.
int ByteLevelByte(char32_t c);

// Appends the byte-level text of `bytes`.
void AppendByteLevelText(absl::string_view bytes, std::string* out);
// Appends the bytes of byte-level text. A text with any character outside the alphabet stands for its own UTF-8 bytes (added tokens).
void AppendByteLevelBytes(absl::string_view text, std::string* out);

}  // namespace pith
