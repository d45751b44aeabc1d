#include "tokenizer/template_text_operations.h"

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tokenizer/utf8.h"

namespace pith::jinja {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// "a[b]c": the user's part in brackets.
std::string Show(const absl::StatusOr<TextPtr>& text) {
  if (!text.ok()) return std::string(text.status().message());
  std::string shown;
  size_t begin = 0;
  for (const TextRun& run : (*text)->runs()) {
    const std::string part = (*text)->bytes().substr(begin, run.end - begin);
    shown += run.user ? "[" + part + "]" : part;
    begin = run.end;
  }
  return shown;
}

// The reverse of Show.
TextPtr Parse(absl::string_view shown) {
  TextBuilder builder;
  bool user = false;
  for (size_t i = 0; i < shown.size();) {
    if (shown[i] == '[' || shown[i] == ']') {
      user = shown[i++] == '[';
    } else {
      builder.AppendCodePoint(DecodeUtf8(shown, &i), user);
    }
  }
  return std::move(builder).Build();
}

TEST(TemplateTextOperations, CaseMappingsKeepOrigin) {
  Budget budget({});
  EXPECT_EQ(Show(UpperText(budget, Parse("aß[bß]c"))), "ASS[BSS]C");
  EXPECT_EQ(Show(LowerText(budget, Parse("A[BΣ]"))), "a[bς]");
  EXPECT_EQ(Show(LowerText(budget, Parse("Σ ΑΣ ΑΣΑ ΑΣ'Α Σ"))), "σ ας ασα ασ'α σ");
  EXPECT_EQ(Show(TitleText(budget, Parse("ab[c DE]f ǆ"))), "Ab[c De]f ǅ");
  EXPECT_EQ(Show(CapitalizeText(budget, Parse("[ß]AB"))), "[Ss]ab");
  EXPECT_EQ(Show(SwapCaseText(budget, Parse("a[Bß]"))), "A[bSS]");
}

TEST(TemplateTextOperations, StrippingKeepsOrigin) {
  Budget budget({});
  EXPECT_EQ(Show(StripText(budget, Parse(" [ \u00a0a ]b\n"), nullptr, true, true)), "[a ]b");
  EXPECT_EQ(Show(StripText(budget, Parse(" [a ] "), nullptr, true, false)), "[a ] ");
  EXPECT_EQ(Show(StripText(budget, Parse("xé[axé]"), Parse("éx").get(), true, true)), "[a]");
  EXPECT_EQ(Show(StripText(budget, Parse("[  ]"), nullptr, true, true)), "");
}

TEST(TemplateTextOperations, ReplacementsBringTheirOwnOrigin) {
  Budget budget({});
  EXPECT_EQ(Show(ReplaceText(budget, Parse("a[ba]b"), *Parse("b"), Parse("X"), -1)), "aX[a]X");
  EXPECT_EQ(Show(ReplaceText(budget, Parse("aba"), *Parse("a"), Parse("[u]"), 1)), "[u]ba");
  EXPECT_EQ(Show(ReplaceText(budget, Parse("[é]a"), *Parse(""), Parse("-"), -1)), "-[é]-a-");
  EXPECT_EQ(Show(ReplaceText(budget, Parse("abc"), *Parse(""), Parse("-"), 2)), "-a-bc");
  EXPECT_EQ(Show(ReplaceText(budget, Parse(""), *Parse(""), Parse("x"), -1)), "x");
}

TEST(TemplateTextOperations, Splits) {
  Budget budget({});
  EXPECT_THAT(*SplitAtSpace(budget, *Parse(" a bc  d "), -1, false), ElementsAre(Pair(1, 2), Pair(3, 5), Pair(7, 8)));
  EXPECT_THAT(*SplitAtSpace(budget, *Parse(" a bc  d "), 1, false), ElementsAre(Pair(1, 2), Pair(3, 9)));
  EXPECT_THAT(*SplitAtSpace(budget, *Parse(" a bc  d "), 1, true), ElementsAre(Pair(0, 5), Pair(7, 8)));
  EXPECT_THAT(*SplitAtText(budget, *Parse("aaa"), *Parse("aa"), -1, false), ElementsAre(Pair(0, 0), Pair(2, 3)));
  EXPECT_THAT(*SplitAtText(budget, *Parse("aaa"), *Parse("aa"), -1, true), ElementsAre(Pair(0, 1), Pair(3, 3)));
  EXPECT_THAT(*SplitLines(budget, *Parse("a\r\nb\n\nc\u2028"), false), ElementsAre(Pair(0, 1), Pair(3, 4), Pair(5, 5), Pair(6, 7)));
  EXPECT_THAT(*SplitLines(budget, *Parse("a\r\nb"), true), ElementsAre(Pair(0, 3), Pair(3, 4)));
}

// Joining what split gives returns the text, whatever the origin.
TEST(TemplateTextOperations, SplitAndJoinAreInverse) {
  Budget budget({.steps = 100'000'000, .wall_ms = 60'000});
  RandomStream random(7);
  for (int i = 0; i < 500; ++i) {
    std::string shown;
    constexpr const char* kParts[] = {"a", ",", "[é]", "[a]"};
    for (uint64_t k = random.Below(12); k > 0; --k) shown += kParts[random.Below(4)];
    const TextPtr text = Parse(shown), comma = Parse(",");
    for (const bool from_right : {false, true}) {
      const auto limit = static_cast<int64_t>(random.Below(4)) - 1;
      const absl::StatusOr<TextRanges> ranges = SplitAtText(budget, *text, *comma, limit, from_right);
      ASSERT_TRUE(ranges.ok());
      std::vector<TextPtr> parts;
      for (const auto& [begin, end] : *ranges) {
        if (!parts.empty()) parts.push_back(comma);
        parts.push_back(SliceText(text, begin, end));
      }
      ASSERT_EQ(Show(ConcatTexts(budget, parts, false)), Show(text));
    }
  }
}

TEST(TemplateTextOperations, RepeatPadPickEscape) {
  Budget budget({});
  EXPECT_EQ(Show(RepeatText(budget, Parse("a[b]"), 3)), "a[b]a[b]a[b]");
  EXPECT_EQ(Show(RepeatText(budget, Parse("a"), -1)), "");
  EXPECT_EQ(Show(RepeatText(budget, Parse("ab"), int64_t{1} << 62)), "passed the limit output_bytes of 8388608");
  EXPECT_EQ(Show(PadText(budget, Parse("[é]"), 4, *Parse("*"), true, true)), "*[é]**");
  EXPECT_EQ(Show(PadText(budget, Parse("ab"), 5, *Parse("*"), true, true)), "**ab*");
  EXPECT_EQ(Show(PadText(budget, Parse("a"), int64_t{1} << 62, *Parse("*"), true, false)), "passed the limit output_bytes of 8388608");
  EXPECT_EQ(Show(PickCharacters(budget, Parse("a[é]b😀"), 3, -2, 2)), "😀[é]");
  EXPECT_EQ(Show(PickCharacters(budget, Parse("abcd"), 0, 3, 2)), "ad");
  EXPECT_EQ(Show(EscapeText(budget, Parse("<[&]'"))), "&lt;[&amp;]&#39;");
  EXPECT_TRUE((*EscapeText(budget, Parse("<")))->markup());
  EXPECT_EQ(Show(EscapeText(budget, MarkText(Parse("<"), true))), "<");
}

}  // namespace
}  // namespace pith::jinja
