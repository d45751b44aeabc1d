// Characters as Python's str sees them: classes (isspace, isalpha, ...) and full case mappings.
//
// Classes and simple mappings come from utf8proc; the mappings that give several characters (U+00DF to "SS") and the few derived
// properties utf8proc lacks are written out here. Thread-safe, no state.
// Source: Unicode 15 SpecialCasing.txt and PropList.txt (Python 3.11 has Unicode 14: characters added since may differ).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace pith::jinja {

bool IsSpace(char32_t c);      // str.isspace, what strip() strips
bool IsLineBreak(char32_t c);  // what splitlines() splits at
bool IsAlpha(char32_t c);
bool IsDecimal(char32_t c);
bool IsDigit(char32_t c);    // decimals and superscript, circled, ... digits
bool IsNumeric(char32_t c);  // digits and other numbers, without ideographs
bool IsLower(char32_t c);
bool IsUpper(char32_t c);
bool IsTitle(char32_t c);
bool IsPrintable(char32_t c);
bool IsCaseIgnorable(char32_t c);
inline bool IsCased(char32_t c) { return IsLower(c) || IsUpper(c) || IsTitle(c); }
inline bool IsAlnum(char32_t c) { return IsAlpha(c) || IsNumeric(c); }

// One to three code points.
struct CaseMapping {
  char32_t code_points[3] = {};
  int size = 0;
};
CaseMapping ToUpper(char32_t c);
CaseMapping ToLower(char32_t c);  // without the context rule of the Greek sigma
CaseMapping ToTitle(char32_t c);

}  // namespace pith::jinja
