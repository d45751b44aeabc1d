// The classes of code points that pre-tokenizer patterns speak of: \p{L}, \p{N}, \p{M}, \s and \w, as of Unicode 16.
// Thread-safe; the table is built once, at the first call.
#pragma once

#include <cstdint>

namespace pith {

enum UnicodeClass : uint8_t {
  kClassLetter = 1,  // \p{L}
  kClassNumber = 2,  // \p{N}
  kClassMark = 4,    // \p{M}
  kClassSpace = 8,   // \s: the property White_Space
  kClassWord = 16,   // \w: Alphabetic, marks, decimal digits, connector punctuation, join controls (UTS 18, annex C)
};

inline constexpr char32_t kNumCodePoints = 0x110000;

// Bits of UnicodeClass by code point, kNumCodePoints entries.
const uint8_t* UnicodeClassTable();

inline bool HasUnicodeClass(char32_t c, uint8_t classes) { return c < kNumCodePoints && (UnicodeClassTable()[c] & classes) != 0; }

}  // namespace pith
