#include "tokenizer/normalizer.h"

#include <ctime>

#include "base/status.h"
#include "gtest/gtest.h"
#include "tokenizer/tokenizer_test_data.h"

namespace pith {
namespace {

std::string Normalize(const std::vector<NormalizerStep>& steps, std::string text) {
  const absl::StatusOr<Normalizer> normalizer = Normalizer::Create(steps);
  EXPECT_TRUE(normalizer.ok()) << normalizer.status();
  const absl::Status status = normalizer->Normalize(&text);
  EXPECT_TRUE(status.ok()) << status;
  return text;
}

// Rows of NormalizationTest.txt: source, NFC, NFD, NFKC, NFKD.
TEST(NormalizerTest, RowsOfTheUnicodeTest) {
  struct Row {
    const char *source, *nfc, *nfd, *nfkc, *nfkd;
  };
  constexpr Row kRows[] = {
      {"\u1E0A", "\u1E0A", "D\u0307", "\u1E0A", "D\u0307"},
      {"D\u0323\u0307", "\u1E0C\u0307", "D\u0323\u0307", "\u1E0C\u0307", "D\u0323\u0307"},
      {"D\u0307\u0323", "\u1E0C\u0307", "D\u0323\u0307", "\u1E0C\u0307", "D\u0323\u0307"},
      {"\u212B", "\u00C5", "A\u030A", "\u00C5", "A\u030A"},
      {"\u0958", "\u0915\u093C", "\u0915\u093C", "\u0915\u093C", "\u0915\u093C"},  // excluded from composition
      {"\uFB01", "\uFB01", "\uFB01", "fi", "fi"},
      {"\u2075", "\u2075", "\u2075", "5", "5"},
      {"\u1E9B\u0323", "\u1E9B\u0323", "\u017F\u0323\u0307", "\u1E69", "s\u0323\u0307"},
      {"\uD55C", "\uD55C", "\u1112\u1161\u11AB", "\uD55C", "\u1112\u1161\u11AB"},
      {"\u1112\u1161\u11AB", "\uD55C", "\u1112\u1161\u11AB", "\uD55C", "\u1112\u1161\u11AB"},
      {"a\u0315\u0300\u05AE\u0301b", "\u00E0\u05AE\u0301\u0315b", "a\u05AE\u0300\u0301\u0315b", "\u00E0\u05AE\u0301\u0315b",
       "a\u05AE\u0300\u0301\u0315b"},
      {"plain ascii", "plain ascii", "plain ascii", "plain ascii", "plain ascii"},
      {"\u00E9\u00B5", "\u00E9\u00B5", "e\u0301\u00B5", "\u00E9\u03BC", "e\u0301\u03BC"},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(NormalizeUnicode(row.source, false, true), row.nfc) << row.source;
    EXPECT_EQ(NormalizeUnicode(row.source, false, false), row.nfd) << row.source;
    EXPECT_EQ(NormalizeUnicode(row.source, true, true), row.nfkc) << row.source;
    EXPECT_EQ(NormalizeUnicode(row.source, true, false), row.nfkd) << row.source;
  }
}

// toNFC(toNFD(x)) = toNFC(x) and so on: the invariants of the conformance test, on random text.
TEST(NormalizerTest, FormsAreStable) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::string text = RandomText(seed, 40);
    RandomStream random(seed);
    for (int i = 0; i < 6; ++i) AppendUtf8(0x300 + static_cast<char32_t>(random.Below(0x50)), &text);
    const std::string nfc = NormalizeUnicode(text, false, true), nfd = NormalizeUnicode(text, false, false);
    const std::string nfkc = NormalizeUnicode(text, true, true), nfkd = NormalizeUnicode(text, true, false);
    EXPECT_EQ(NormalizeUnicode(nfc, false, true), nfc);
    EXPECT_EQ(NormalizeUnicode(nfd, false, true), nfc);
    EXPECT_EQ(NormalizeUnicode(nfc, false, false), nfd);
    EXPECT_EQ(NormalizeUnicode(nfc, true, true), nfkc);
    EXPECT_EQ(NormalizeUnicode(nfkd, true, true), nfkc);
    EXPECT_EQ(NormalizeUnicode(nfkc, true, false), nfkd);
  }
}

TEST(NormalizerTest, AMegabyteOfMarksIsNotQuadratic) {
  std::string text = "a";
  for (int i = 0; i < 250'000; ++i) text += "\u0301\u0323";  // the second sorts before the first
  const std::clock_t start = std::clock();
  const std::string nfd = NormalizeUnicode(text, false, false);
  EXPECT_LT(std::clock() - start, 20 * CLOCKS_PER_SEC);
  EXPECT_EQ(nfd.size(), text.size());
  EXPECT_EQ(nfd.substr(0, 5), "a\u0323\u0323");
  EXPECT_EQ(nfd.substr(nfd.size() - 4), "\u0301\u0301");
}

TEST(NormalizerTest, OtherSteps) {
  EXPECT_EQ(Normalize({{.kind = NormalizerStep::kLowercase}}, "ÀΣI\u0130"), "àσii\u0307");
  EXPECT_EQ(Normalize({{.kind = NormalizerStep::kStrip, .strip_left = true, .strip_right = true}}, "\u3000 a b\n"), "a b");
  EXPECT_EQ(Normalize({{.kind = NormalizerStep::kStrip, .strip_left = true}}, " a "), "a ");
  EXPECT_EQ(Normalize({{.kind = NormalizerStep::kStrip, .strip_right = true}}, " a "), " a");
  EXPECT_EQ(Normalize({{.kind = NormalizerStep::kStrip, .strip_left = true, .strip_right = true}}, " \n"), "");
  const NormalizerStep prepend = {.kind = NormalizerStep::kPrepend, .content = "\u2581"};
  const NormalizerStep replace = {.kind = NormalizerStep::kReplace, .pattern = {" "}, .content = "\u2581"};
  EXPECT_EQ(Normalize({prepend, replace}, "a  b"), "\u2581a\u2581\u2581b");
  EXPECT_EQ(Normalize({prepend, replace}, ""), "");
  EXPECT_EQ(Normalize({{.kind = NormalizerStep::kReplace, .pattern = {R"(\s{2,})", true}, .content = " "}}, "a \n b c"), "a b c");
  EXPECT_EQ(Normalize({}, "x"), "x");
}

TEST(NormalizerTest, BadPatternsAreRefused) {
  EXPECT_EQ(Normalizer::Create({{.kind = NormalizerStep::kReplace, .pattern = {"[a&&b]", true}}}).status().code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace pith
