#include "tokenizer/pretoken_scanner.h"

#include <string>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"
#include "tokenizer/split_pattern.h"
#include "tokenizer/tokenizer_test_data.h"

namespace pith {
namespace {

using Strings = std::vector<std::string>;

Strings Scan(PretokenScanner scan, absl::string_view text) {
  Strings pieces;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = scan(text, begin);
    pieces.emplace_back(text.substr(begin, end - begin));
  }
  return pieces;
}

TEST(PretokenScannerTest, Gpt2ByHand) {
  EXPECT_EQ(Scan(ScanGpt2, "Hello  world's 123abc!? \n x"), (Strings{"Hello", " ", " world", "'s", " 123", "abc", "!?", " \n", " x"}));
  EXPECT_EQ(Scan(ScanGpt2, "'S 'Re"), (Strings{"'", "S", " '", "Re"}));  // contractions in lower case only
  EXPECT_EQ(Scan(ScanGpt2, "a   "), (Strings{"a", "   "}));
  EXPECT_EQ(Scan(ScanGpt2, "\t\tx"), (Strings{"\t", "\t", "x"}));
}

TEST(PretokenScannerTest, Llama3ByHand) {
  EXPECT_EQ(Scan(ScanLlama3, "I'LL go  1234567!\n\n  x"), (Strings{"I", "'LL", " go", " ", " ", "123", "456", "7", "!\n\n", " ", " x"}));
  EXPECT_EQ(Scan(ScanLlama3, "\tx (y)\r\n \n z"), (Strings{"\tx", " (", "y", ")\r\n", " \n", " z"}));
  EXPECT_EQ(Scan(ScanLlama3, "'\u017Fx"), (Strings{"'\u017F", "x"}));  // the long s is an s
  EXPECT_EQ(Scan(ScanLlama3, "   \n  "), (Strings{"   \n", "  "}));
}

TEST(PretokenScannerTest, Qwen2TakesDigitsOneByOne) { EXPECT_EQ(Scan(ScanQwen2, "a 12\u00BD"), (Strings{"a", " ", "1", "2", "\u00BD"})); }

TEST(PretokenScannerTest, FoundByPattern) {
  EXPECT_EQ(FindPretokenScanner(kGpt2Pattern), &ScanGpt2);
  EXPECT_EQ(FindPretokenScanner(kLlama3Pattern), &ScanLlama3);
  EXPECT_EQ(FindPretokenScanner(kQwen2Pattern), &ScanQwen2);
  EXPECT_EQ(FindPretokenScanner(R"(\s+)"), nullptr);
}

class ScannerOracleTest : public testing::TestWithParam<const char*> {};

// Whether PCRE2, whose Unicode is older, puts a character into the same classes.
bool PcreAgrees(char32_t c) {
  static const std::vector<std::pair<SplitPattern, UnicodeClass>>* const patterns = [] {
    auto* result = new std::vector<std::pair<SplitPattern, UnicodeClass>>;
    result->emplace_back(*SplitPattern::Create({R"(\p{L})", true}), kClassLetter);
    result->emplace_back(*SplitPattern::Create({R"(\p{N})", true}), kClassNumber);
    result->emplace_back(*SplitPattern::Create({R"(\s)", true}), kClassSpace);
    return result;
  }();
  std::string text;
  AppendUtf8(c, &text);
  for (const auto& [pattern, unicode_class] : *patterns) {
    std::vector<TextPiece> pieces;
    EXPECT_TRUE(pattern.FindPieces(text, &pieces).ok());
    if (pieces[0].is_match != HasUnicodeClass(c, unicode_class)) return false;
  }
  return true;
}

// The published pattern run by PCRE2 cuts random text at the same places.
TEST_P(ScannerOracleTest, SameAsPcre2OnRandomText) {
  const PretokenScanner scan = FindPretokenScanner(GetParam());
  const absl::StatusOr<SplitPattern> pattern = SplitPattern::Create({GetParam(), true}, /*use_scanner=*/false);
  ASSERT_TRUE(pattern.ok()) << pattern.status();
  ASSERT_EQ(pattern->scanner(), nullptr);
  RandomStream random(1);
  int left_out = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text;
    for (uint64_t length = 1 + random.Below(30); length > 0; --length) {
      const char32_t c = RandomCodePoint(&random);
      if (PcreAgrees(c)) {
        AppendUtf8(c, &text);
      } else {
        ++left_out;
      }
    }
    std::vector<TextPiece> pieces;
    ASSERT_TRUE(pattern->FindPieces(text, &pieces).ok());
    Strings expected;
    for (const TextPiece& piece : pieces) {
      EXPECT_TRUE(piece.is_match);
      expected.push_back(text.substr(piece.begin, piece.end - piece.begin));
    }
    ASSERT_EQ(Scan(scan, text), expected) << Printable(text, 1000);
  }
  EXPECT_LT(left_out, 1000);  // of about 60 000
}

INSTANTIATE_TEST_SUITE_P(Patterns, ScannerOracleTest, testing::Values(kGpt2Pattern, kLlama3Pattern, kQwen2Pattern), [](const auto& info) {
  return std::string(info.index == 0 ? "Gpt2" : info.index == 1 ? "Llama3" : "Qwen2");
});

}  // namespace
}  // namespace pith
