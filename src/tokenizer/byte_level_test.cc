#include "tokenizer/byte_level.h"

#include <set>

#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(ByteLevelTest, KnownCharacters) {
  EXPECT_EQ(ByteLevelChar(' '), U'\u0120');   // the "Ġ" of GPT-2 vocabularies
  EXPECT_EQ(ByteLevelChar('\n'), U'\u010A');  // "Ċ"
  EXPECT_EQ(ByteLevelChar('a'), U'a');
  EXPECT_EQ(ByteLevelChar(0), U'\u0100');
  EXPECT_EQ(ByteLevelChar(0xAD), U'\u0143');  // the soft hyphen is the last that is not printable
  EXPECT_EQ(ByteLevelChar(0xFF), U'\u00FF');
  EXPECT_EQ(ByteLevelByte(U' '), -1);
  EXPECT_EQ(ByteLevelByte(0x144), -1);
  EXPECT_EQ(ByteLevelByte(0x10FFFF), -1);
}

TEST(ByteLevelTest, AlphabetIsOneToOne) {
  std::set<char32_t> seen;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t c = ByteLevelChar(static_cast<uint8_t>(byte));
    EXPECT_TRUE(seen.insert(c).second);
    EXPECT_EQ(ByteLevelByte(c), byte);
  }
}

TEST(ByteLevelTest, TextBothWays) {
  std::string text;
  AppendByteLevelText(" \xC3\xA9", &text);
  EXPECT_EQ(text, "\u0120\u00C3\u00A9");
  std::string bytes = "x";
  AppendByteLevelBytes(text, &bytes);
  EXPECT_EQ(bytes, "x \xC3\xA9");
  AppendByteLevelBytes("a b", &bytes);  // a space is outside the alphabet: the text stands for itself
  EXPECT_EQ(bytes,
            "x \xC3\xA9"
            "a b");
}

}  // namespace
}  // namespace pith
