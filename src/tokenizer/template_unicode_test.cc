#include "tokenizer/template_unicode.h"

#include <string>

#include "gtest/gtest.h"
#include "tokenizer/utf8.h"

namespace pith::jinja {
namespace {

std::string Utf8(const CaseMapping& mapping) {
  std::string text;
  for (int i = 0; i < mapping.size; ++i) AppendUtf8(mapping.code_points[i], &text);
  return text;
}

// Expected values: Python 3.11 str methods.
TEST(TemplateUnicode, CaseMappings) {
  EXPECT_EQ(Utf8(ToUpper(U'z')), "Z");
  EXPECT_EQ(Utf8(ToUpper(U'ß')), "SS");
  EXPECT_EQ(Utf8(ToTitle(U'ß')), "Ss");
  EXPECT_EQ(Utf8(ToUpper(U'ﬃ')), "FFI");
  EXPECT_EQ(Utf8(ToTitle(U'ﬃ')), "Ffi");
  EXPECT_EQ(Utf8(ToUpper(U'ᾳ')), "ΑΙ");
  EXPECT_EQ(Utf8(ToUpper(U'ᾔ')), "ἬΙ");
  EXPECT_EQ(Utf8(ToTitle(U'ᾔ')), "ᾜ");
  EXPECT_EQ(Utf8(ToUpper(U'ᾯ')), "ὯΙ");
  EXPECT_EQ(Utf8(ToLower(U'İ')), "i̇");
  EXPECT_EQ(Utf8(ToLower(U'Σ')), "σ");
  EXPECT_EQ(Utf8(ToUpper(U'ı')), "I");
  EXPECT_EQ(Utf8(ToTitle(U'ǆ')), "ǅ");
  EXPECT_EQ(Utf8(ToLower(U'Ж')), "ж");
}

TEST(TemplateUnicode, Classes) {
  for (char32_t c : {U' ', U'\t', U'\v', U'\x1C', U'\x85', U'\xA0', U'\u3000', U'\u2028'}) EXPECT_TRUE(IsSpace(c));
  for (char32_t c : {U'a', U'\u200B', U'\uFEFF', U'\x08'}) EXPECT_FALSE(IsSpace(c));
  EXPECT_TRUE(IsLineBreak(U'\x1D'));
  EXPECT_FALSE(IsLineBreak(U'\x1F'));
  EXPECT_TRUE(IsDigit(U'²') && !IsDecimal(U'²') && IsNumeric(U'½') && !IsDigit(U'½') && IsDecimal(U'٣'));
  EXPECT_TRUE(IsLower(U'ª') && IsLower(U'ⓐ') && IsUpper(U'Ⓐ') && !IsUpper(U'ǅ') && IsTitle(U'ǅ') && IsCased(U'ǅ'));
  EXPECT_TRUE(IsAlpha(U'漢') && !IsCased(U'漢') && IsAlnum(U'²') && !IsAlpha(U'-'));
  EXPECT_TRUE(IsPrintable(U' ') && !IsPrintable(U'\x7F') && !IsPrintable(U'\xA0') && !IsPrintable(U'\u200B') && IsPrintable(U'é'));
}

}  // namespace
}  // namespace pith::jinja
