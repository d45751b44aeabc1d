#include "tokenizer/unicode_class.h"

#include <utf8proc.h>

#include <vector>

namespace pith {
namespace {

struct CodePointRange {
  char32_t first, last;
};

// utf8proc 2.8 knows Unicode 15.0. These are the letters, numbers and marks that 15.1 and 16.0 added (UnicodeData.txt).
constexpr CodePointRange kNewerLetters[] = {
    {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},   {0xA7DA, 0xA7DC},   {0x105C0, 0x105F3}, {0x10D4A, 0x10D65}, {0x10D6F, 0x10D85},
    {0x10EC2, 0x10EC4}, {0x11380, 0x11389}, {0x1138B, 0x1138B}, {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113B7},
    {0x113D1, 0x113D1}, {0x113D3, 0x113D3}, {0x11BC0, 0x11BE0}, {0x13460, 0x143FA}, {0x16100, 0x1611D}, {0x16D40, 0x16D6C},
    {0x18CFF, 0x18CFF}, {0x1E5D0, 0x1E5ED}, {0x1E5F0, 0x1E5F0}, {0x2EBF0, 0x2EE5D}};
constexpr CodePointRange kNewerNumbers[] = {{0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9}, {0x16130, 0x16139},
                                            {0x16D70, 0x16D79}, {0x1CCF0, 0x1CCF9}, {0x1E5F1, 0x1E5FA}};
constexpr CodePointRange kNewerMarks[] = {{0x897, 0x897},     {0x10D69, 0x10D6D}, {0x10EFC, 0x10EFC}, {0x113B8, 0x113C0},
                                          {0x113C2, 0x113C2}, {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D0},
                                          {0x113D2, 0x113D2}, {0x113E1, 0x113E2}, {0x11F5A, 0x11F5A}, {0x1611E, 0x1612F},
                                          {0x1E5EE, 0x1E5EF}};

// The property White_Space (PropList.txt).
constexpr CodePointRange kSpaces[] = {{0x09, 0x0D},     {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
                                      {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
// Alphabetic beyond letters, letter numbers and marks: the circled and squared letters (Other_Alphabetic, PropList.txt); join controls.
constexpr CodePointRange kOtherWord[] = {{0x200C, 0x200D}, {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};

uint8_t ClassOfCategory(utf8proc_category_t category) {
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return kClassLetter | kClassWord;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL: return kClassNumber | kClassWord;
    case UTF8PROC_CATEGORY_NO: return kClassNumber;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return kClassMark | kClassWord;
    case UTF8PROC_CATEGORY_PC: return kClassWord;
    default: return 0;
  }
}

template <size_t kCount> void AddClass(const CodePointRange (&ranges)[kCount], uint8_t classes, std::vector<uint8_t>* table) {
  for (const CodePointRange& range : ranges) {
    for (char32_t c = range.first; c <= range.last; ++c) (*table)[c] |= classes;
  }
}

std::vector<uint8_t> BuildTable() {
  std::vector<uint8_t> table(kNumCodePoints);
  for (char32_t c = 0; c < kNumCodePoints; ++c) {
    table[c] = ClassOfCategory(static_cast<utf8proc_category_t>(utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->category));
  }
  AddClass(kNewerLetters, kClassLetter | kClassWord, &table);
  AddClass(kNewerNumbers, kClassNumber | kClassWord, &table);
  AddClass(kNewerMarks, kClassMark | kClassWord, &table);
  AddClass(kSpaces, kClassSpace, &table);
  AddClass(kOtherWord, kClassWord, &table);
  return table;
}

}  // namespace

const uint8_t* UnicodeClassTable() {
  static const std::vector<uint8_t>* const table = new std::vector<uint8_t>(BuildTable());  // never destroyed: used until exit
  return table->data();
}

}  // namespace pith
