#include "tokenizer/template_unicode.h"

#include <algorithm>
#include <iterator>

#include "utf8proc.h"

namespace pith::jinja {
namespace {

struct Range {
  char32_t first, last;
};

template <size_t kCount> bool Contains(const Range (&ranges)[kCount], char32_t c) {
  const Range* range = std::upper_bound(std::begin(ranges), std::end(ranges), c, [](char32_t x, const Range& r) { return x < r.first; });
  return range != std::begin(ranges) && c <= std::prev(range)->last;
}

// Other_Lowercase and Other_Uppercase: cased characters that are no letters, or modifier letters.
constexpr Range kOtherLowercase[] = {{0xAA, 0xAA},       {0xBA, 0xBA},       {0x2B0, 0x2B8},     {0x2C0, 0x2C1},    {0x2E0, 0x2E4},
                                     {0x345, 0x345},     {0x37A, 0x37A},     {0x1D2C, 0x1D6A},   {0x1D78, 0x1D78},  {0x1D9B, 0x1DBF},
                                     {0x2071, 0x2071},   {0x207F, 0x207F},   {0x2090, 0x209C},   {0x2170, 0x217F},  {0x24D0, 0x24E9},
                                     {0x2C7C, 0x2C7D},   {0xA69C, 0xA69D},   {0xA770, 0xA770},   {0xA7F8, 0xA7F9},  {0xAB5C, 0xAB5F},
                                     {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA}};
constexpr Range kOtherUppercase[] = {{0x2160, 0x216F}, {0x24B6, 0x24CF}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};

// Characters of numeric type Digit that are no decimals.
constexpr Range kOtherDigits[] = {{0xB2, 0xB3},     {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},   {0x2070, 0x2070},
                                  {0x2074, 0x2079}, {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247C},   {0x2488, 0x2490},
                                  {0x24EA, 0x24EA}, {0x24F5, 0x24FD},   {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},
                                  {0x278A, 0x2792}, {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A}};

// Characters whose upper-case form is longer than one character; U+1F80 to U+1FAF follow a rule instead (IotaSubscriptUpper).
struct SpecialCase {
  char16_t from;
  const char16_t* upper;
  const char16_t* title;
};
constexpr SpecialCase kSpecialCases[] = {
    {0x00DF, u"SS", u"Ss"},
    {0x0149, u"\u02BCN", u"\u02BCN"},
    {0x01F0, u"J\u030C", u"J\u030C"},
    {0x0390, u"\u0399\u0308\u0301", u"\u0399\u0308\u0301"},
    {0x03B0, u"\u03A5\u0308\u0301", u"\u03A5\u0308\u0301"},
    {0x0587, u"\u0535\u0552", u"\u0535\u0582"},
    {0x1E96, u"H\u0331", u"H\u0331"},
    {0x1E97, u"T\u0308", u"T\u0308"},
    {0x1E98, u"W\u030A", u"W\u030A"},
    {0x1E99, u"Y\u030A", u"Y\u030A"},
    {0x1E9A, u"A\u02BE", u"A\u02BE"},
    {0x1F50, u"\u03A5\u0313", u"\u03A5\u0313"},
    {0x1F52, u"\u03A5\u0313\u0300", u"\u03A5\u0313\u0300"},
    {0x1F54, u"\u03A5\u0313\u0301", u"\u03A5\u0313\u0301"},
    {0x1F56, u"\u03A5\u0313\u0342", u"\u03A5\u0313\u0342"},
    {0x1FB2, u"\u1FBA\u0399", u"\u1FBA\u0345"},
    {0x1FB3, u"\u0391\u0399", u"\u1FBC"},
    {0x1FB4, u"\u0386\u0399", u"\u0386\u0345"},
    {0x1FB6, u"\u0391\u0342", u"\u0391\u0342"},
    {0x1FB7, u"\u0391\u0342\u0399", u"\u0391\u0342\u0345"},
    {0x1FBC, u"\u0391\u0399", u"\u1FBC"},
    {0x1FC2, u"\u1FCA\u0399", u"\u1FCA\u0345"},
    {0x1FC3, u"\u0397\u0399", u"\u1FCC"},
    {0x1FC4, u"\u0389\u0399", u"\u0389\u0345"},
    {0x1FC6, u"\u0397\u0342", u"\u0397\u0342"},
    {0x1FC7, u"\u0397\u0342\u0399", u"\u0397\u0342\u0345"},
    {0x1FCC, u"\u0397\u0399", u"\u1FCC"},
    {0x1FD2, u"\u0399\u0308\u0300", u"\u0399\u0308\u0300"},
    {0x1FD3, u"\u0399\u0308\u0301", u"\u0399\u0308\u0301"},
    {0x1FD6, u"\u0399\u0342", u"\u0399\u0342"},
    {0x1FD7, u"\u0399\u0308\u0342", u"\u0399\u0308\u0342"},
    {0x1FE2, u"\u03A5\u0308\u0300", u"\u03A5\u0308\u0300"},
    {0x1FE3, u"\u03A5\u0308\u0301", u"\u03A5\u0308\u0301"},
    {0x1FE4, u"\u03A1\u0313", u"\u03A1\u0313"},
    {0x1FE6, u"\u03A5\u0342", u"\u03A5\u0342"},
    {0x1FE7, u"\u03A5\u0308\u0342", u"\u03A5\u0308\u0342"},
    {0x1FF2, u"\u1FFA\u0399", u"\u1FFA\u0345"},
    {0x1FF3, u"\u03A9\u0399", u"\u1FFC"},
    {0x1FF4, u"\u038F\u0399", u"\u038F\u0345"},
    {0x1FF6, u"\u03A9\u0342", u"\u03A9\u0342"},
    {0x1FF7, u"\u03A9\u0342\u0399", u"\u03A9\u0342\u0345"},
    {0x1FFC, u"\u03A9\u0399", u"\u1FFC"},
    {0xFB00, u"FF", u"Ff"},
    {0xFB01, u"FI", u"Fi"},
    {0xFB02, u"FL", u"Fl"},
    {0xFB03, u"FFI", u"Ffi"},
    {0xFB04, u"FFL", u"Ffl"},
    {0xFB05, u"ST", u"St"},
    {0xFB06, u"ST", u"St"},
    {0xFB13, u"\u0544\u0546", u"\u0544\u0576"},
    {0xFB14, u"\u0544\u0535", u"\u0544\u0565"},
    {0xFB15, u"\u0544\u053B", u"\u0544\u056B"},
    {0xFB16, u"\u054E\u0546", u"\u054E\u0576"},
    {0xFB17, u"\u0544\u053D", u"\u0544\u056D"},
};

const SpecialCase* FindSpecialCase(char32_t c) {
  const SpecialCase* row = std::lower_bound(std::begin(kSpecialCases), std::end(kSpecialCases), c,
                                            [](const SpecialCase& s, char32_t x) { return s.from < x; });
  return row != std::end(kSpecialCases) && row->from == c ? row : nullptr;
}

CaseMapping One(char32_t c) { return {{c}, 1}; }

CaseMapping Several(const char16_t* text) {
  CaseMapping mapping;
  for (; *text != 0; ++text) mapping.code_points[mapping.size++] = *text;
  return mapping;
}

bool HasIotaSubscript(char32_t c) { return c >= 0x1F80 && c <= 0x1FAF; }

// U+1F80 + 16 * vowel + 8 * capital + accent: the capital vowel with that accent, then a capital iota.
CaseMapping IotaSubscriptUpper(char32_t c) {
  constexpr char32_t kCapitalVowels[] = {0x1F08, 0x1F28, 0x1F68};
  return {{kCapitalVowels[(c - 0x1F80) / 16] + (c & 7), 0x0399}, 2};
}

char32_t FromUtf8proc(utf8proc_int32_t c) { return static_cast<char32_t>(c); }
utf8proc_int32_t ForUtf8proc(char32_t c) { return static_cast<utf8proc_int32_t>(c); }

}  // namespace

bool IsSpace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool IsLineBreak(char32_t c) { return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029; }

bool IsAlpha(char32_t c) {
  if (c < 0x80) return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
  switch (utf8proc_category(ForUtf8proc(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return true;
    default: return false;
  }
}

bool IsDecimal(char32_t c) { return c < 0x80 ? c >= '0' && c <= '9' : utf8proc_category(ForUtf8proc(c)) == UTF8PROC_CATEGORY_ND; }

bool IsDigit(char32_t c) { return IsDecimal(c) || Contains(kOtherDigits, c); }

bool IsNumeric(char32_t c) {
  if (c < 0x80) return IsDecimal(c);
  const utf8proc_category_t category = utf8proc_category(ForUtf8proc(c));
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}

bool IsLower(char32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z';
  return utf8proc_category(ForUtf8proc(c)) == UTF8PROC_CATEGORY_LL || Contains(kOtherLowercase, c);
}

bool IsUpper(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z';
  return utf8proc_category(ForUtf8proc(c)) == UTF8PROC_CATEGORY_LU || Contains(kOtherUppercase, c);
}

bool IsTitle(char32_t c) { return c >= 0x80 && utf8proc_category(ForUtf8proc(c)) == UTF8PROC_CATEGORY_LT; }

bool IsPrintable(char32_t c) {
  if (c < 0x80) return c >= 0x20 && c < 0x7F;
  switch (utf8proc_category(ForUtf8proc(c))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
  }
}

bool IsCaseIgnorable(char32_t c) {
  if (c < 0x80) return c == '\'' || c == '.' || c == ':' || c == '^' || c == '`';
  // Word_Break in {MidLetter, MidNumLet, Single_Quote}: U+00B7, U+0387, U+055F, U+05F4, U+2018, U+2019, U+2024, U+2027, U+FE13, ...
  constexpr Range kMidLetters[] = {{0xB7, 0xB7},     {0x387, 0x387},   {0x55F, 0x55F},   {0x5F4, 0x5F4},   {0x2018, 0x2019},
                                   {0x2024, 0x2024}, {0x2027, 0x2027}, {0xFE13, 0xFE13}, {0xFE52, 0xFE52}, {0xFE55, 0xFE55},
                                   {0xFF07, 0xFF07}, {0xFF0E, 0xFF0E}, {0xFF1A, 0xFF1A}};
  if (Contains(kMidLetters, c)) return true;
  switch (utf8proc_category(ForUtf8proc(c))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return false;
  }
}

CaseMapping ToUpper(char32_t c) {
  if (c < 0x80) return One(c >= 'a' && c <= 'z' ? c - 0x20 : c);
  if (HasIotaSubscript(c)) return IotaSubscriptUpper(c);
  if (const SpecialCase* row = FindSpecialCase(c)) return Several(row->upper);
  return One(FromUtf8proc(utf8proc_toupper(ForUtf8proc(c))));
}

CaseMapping ToLower(char32_t c) {
  if (c < 0x80) return One(c >= 'A' && c <= 'Z' ? c + 0x20 : c);
  if (c == 0x130) return {{'i', 0x307}, 2};
  return One(FromUtf8proc(utf8proc_tolower(ForUtf8proc(c))));
}

CaseMapping ToTitle(char32_t c) {
  if (c < 0x80) return ToUpper(c);
  if (const SpecialCase* row = FindSpecialCase(c)) return Several(row->title);
  return One(FromUtf8proc(utf8proc_totitle(ForUtf8proc(c))));
}

}  // namespace pith::jinja
