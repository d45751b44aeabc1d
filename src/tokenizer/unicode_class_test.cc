#include "tokenizer/unicode_class.h"

#include "gtest/gtest.h"

namespace pith {
namespace {

// Counts of DerivedGeneralCategory.txt and PropList.txt of Unicode 16.0.
TEST(UnicodeClassTest, CountsOfUnicode16) {
  int letters = 0, numbers = 0, marks = 0, spaces = 0;
  for (char32_t c = 0; c < kNumCodePoints; ++c) {
    letters += HasUnicodeClass(c, kClassLetter);
    numbers += HasUnicodeClass(c, kClassNumber);
    marks += HasUnicodeClass(c, kClassMark);
    spaces += HasUnicodeClass(c, kClassSpace);
  }
  EXPECT_EQ(letters, 141028);
  EXPECT_EQ(numbers, 1911);
  EXPECT_EQ(marks, 2501);
  EXPECT_EQ(spaces, 25);
}

TEST(UnicodeClassTest, SomeCharacters) {
  const auto classes = [](char32_t c) { return static_cast<int>(UnicodeClassTable()[c]); };
  EXPECT_EQ(classes(U'a'), kClassLetter | kClassWord);
  EXPECT_EQ(classes(U'7'), kClassNumber | kClassWord);
  EXPECT_EQ(classes(U'_'), kClassWord);
  EXPECT_EQ(classes(U'-'), 0);
  EXPECT_EQ(classes(U' '), kClassSpace);
  EXPECT_EQ(classes(0x85), kClassSpace);                  // next line: white space though a control
  EXPECT_EQ(classes(0x180E), 0);                          // Mongolian vowel separator: no longer white space
  EXPECT_EQ(classes(0x200B), 0);                          // zero width space is none
  EXPECT_EQ(classes(0x200D), kClassWord);                 // zero width joiner
  EXPECT_EQ(classes(0x00BD), kClassNumber);               // one half: a number, no word character
  EXPECT_EQ(classes(0x2167), kClassNumber | kClassWord);  // Roman numeral eight
  EXPECT_EQ(classes(0x0301), kClassMark | kClassWord);
  EXPECT_EQ(classes(0x24B6), kClassWord);                  // circled A
  EXPECT_EQ(classes(0x2EBF0), kClassLetter | kClassWord);  // new in Unicode 15.1
  EXPECT_FALSE(HasUnicodeClass(0x110000, 0xFF));
}

}  // namespace
}  // namespace pith
