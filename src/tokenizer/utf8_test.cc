#include "tokenizer/utf8.h"

#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(Utf8Test, DecodesAndEncodesEveryLength) {
  for (const char32_t c : {U'\0', U'a', U'\x7F', U'\x80', U'\x7FF', U'\x800', U'\xD7FF', U'\xE000', U'\xFFFF', U'\x10000', U'\x10FFFF'}) {
    std::string text = "x";
    AppendUtf8(c, &text);
    EXPECT_TRUE(IsValidUtf8(text));
    size_t position = 1;
    EXPECT_EQ(DecodeUtf8(text, &position), c);
    EXPECT_EQ(position, text.size());
    EXPECT_EQ(PreviousUtf8(text, text.size()), 1u);
  }
}

TEST(Utf8Test, AcceptsEveryCodePointAndRoundTrips) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string bytes;
    AppendUtf8(c, &bytes);
    ASSERT_TRUE(IsValidUtf8(bytes)) << std::hex << static_cast<uint32_t>(c);
    size_t position = 0;
    ASSERT_EQ(DecodeUtf8(bytes, &position), c);
    ASSERT_EQ(position, bytes.size());
    ASSERT_EQ(CountUtf8(bytes), 1);
  }
}

TEST(Utf8Test, RefusesMalformedUtf8) {
  for (absl::string_view bytes : {"\x80", "\xC0\xAF", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
                                  "\xF5\x80\x80\x80", "\xC3", "\xE2\x82", "\xF0\x9F\x98", "a\xFFz", "\xC3\x28"}) {
    EXPECT_FALSE(IsValidUtf8(bytes));
  }
  EXPECT_TRUE(IsValidUtf8(""));
  EXPECT_EQ(CountUtf8("h\xC3\xA9\xF0\x9F\x98\x80!"), 4);
}

TEST(Utf8Test, EverySingleCodePointSteps) {
  for (char32_t c = 0; c < 0x110000; c += 37) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    AppendUtf8(c, &text);
    const Utf8Step step = NextUtf8(text);
    EXPECT_EQ(step.state, Utf8Step::kValid);
    EXPECT_EQ(step.length, static_cast<int>(text.size()));
    for (size_t cut = 1; cut < text.size(); ++cut) {
      EXPECT_EQ(NextUtf8(absl::string_view(text).substr(0, cut)).state, Utf8Step::kIncomplete);
    }
  }
}

// Table 3-11 and 3-8 of the Unicode standard: one U+FFFD per maximal subpart.
TEST(Utf8Test, ReplacesMaximalSubparts) {
  const std::string bad = kReplacementUtf8;
  EXPECT_EQ(ReplaceInvalidUtf8("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
            "a" + bad + bad + bad + "b" + bad + "c" + bad + bad + "d");
  EXPECT_EQ(ReplaceInvalidUtf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            bad + bad + bad + bad + bad + bad + bad + bad + "A");            // overlong forms
  EXPECT_EQ(ReplaceInvalidUtf8("\xED\xA0\x80"), bad + bad + bad);            // a surrogate
  EXPECT_EQ(ReplaceInvalidUtf8("\xF4\x90\x80\x80"), bad + bad + bad + bad);  // above U+10FFFF
  EXPECT_EQ(ReplaceInvalidUtf8("\xE2\x82"), bad);                            // cut off
  EXPECT_EQ(ReplaceInvalidUtf8("ok \xE2\x82\xAC"), "ok \xE2\x82\xAC");
}

TEST(Utf8Test, TakeCompleteKeepsTheIncompleteEnd) {
  std::string bytes = "a\xE2\x82";
  EXPECT_EQ(TakeCompleteUtf8(&bytes), "a");
  EXPECT_EQ(bytes, "\xE2\x82");
  bytes += "\xAC\xFF\xF0\x9F";
  EXPECT_EQ(TakeCompleteUtf8(&bytes), std::string("\xE2\x82\xAC") + kReplacementUtf8);
  EXPECT_EQ(bytes, "\xF0\x9F");
}

}  // namespace
}  // namespace pith
