#include "tokenizer/template_unicode.h"

#include <string>

#include "gtest/gtest.h"

namespace pith::jinja {
namespace {

std::string Utf8(const CaseMapping& mapping) {
  std::string text;
  for (int i = 0; i < mapping.size; ++i) AppendUtf8(mapping.code_points[i], &text);
  return text;
}

TEST(TemplateUnicode, AcceptsEveryCodePointAndRoundTrips) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string bytes;
    AppendUtf8(c, &bytes);
    ASSERT_TRUE(IsValidUtf8(bytes)) << std::hex << static_cast<uint32_t>(c);
    size_t position = 0;
    ASSERT_EQ(DecodeCodePoint(bytes, &position), c);
    ASSERT_EQ(position, bytes.size());
    ASSERT_EQ(CountCodePoints(bytes), 1);
  }
}

TEST(TemplateUnicode, RefusesMalformedUtf8) {
  for (absl::string_view bytes : {"\x80", "\xC0\xAF", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
                                  "\xF5\x80\x80\x80", "\xC3", "\xE2\x82", "\xF0\x9F\x98", "a\xFFz", "\xC3\x28"}) {
    EXPECT_FALSE(IsValidUtf8(bytes));
  }
  EXPECT_TRUE(IsValidUtf8(""));
  EXPECT_EQ(CountCodePoints("h\xC3\xA9\xF0\x9F\x98\x80!"), 4);
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
