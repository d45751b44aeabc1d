#include "tokenizer/split_pattern.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace pith {
namespace {

using Strings = std::vector<std::string>;

// Pieces as texts, matches in brackets.
Strings Show(absl::string_view text, const std::vector<TextPiece>& pieces) {
  Strings shown;
  for (const TextPiece& piece : pieces) {
    const std::string part(text.substr(piece.begin, piece.end - piece.begin));
    shown.push_back(piece.is_match ? "[" + part + "]" : part);
  }
  return shown;
}

Strings Find(const TextPattern& pattern, absl::string_view text) {
  const absl::StatusOr<SplitPattern> compiled = SplitPattern::Create(pattern);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  std::vector<TextPiece> pieces;
  const absl::Status status = compiled->FindPieces(text, &pieces);
  EXPECT_TRUE(status.ok()) << status;
  return Show(text, pieces);
}

TEST(SplitPatternTest, Literals) {
  EXPECT_EQ(Find({"ab"}, "xababyab"), (Strings{"x", "[ab]", "[ab]", "y", "[ab]"}));
  EXPECT_EQ(Find({"."}, "a.b"), (Strings{"a", "[.]", "b"}));  // no regular expression
  EXPECT_EQ(Find({"aa"}, "aaa"), (Strings{"[aa]", "a"}));
  EXPECT_EQ(Find({"a"}, ""), Strings{});
}

TEST(SplitPatternTest, RegularExpressions) {
  EXPECT_EQ(Find({R"(\p{N}{1,2})", true}, "a123b\u0664"), (Strings{"a", "[12]", "[3]", "b", "[\u0664]"}));
  EXPECT_EQ(Find({R"((?<=a)b)", true}, "abb"), (Strings{"a", "[b]", "b"}));
  EXPECT_EQ(Find({R"(\w+)", true}, "é_1-\u00BD\u0301"), (Strings{"[é_1]", "-\u00BD", "[\u0301]"}));
  EXPECT_EQ(Find({R"(\s)", true}, "a\u180Eb\u0085"), (Strings{"a\u180Eb", "[\u0085]"}));
  EXPECT_EQ(Find({"^b$", true}, "a\nb\nc"), (Strings{"a\n", "[b]", "\nc"}));  // Ruby's anchors are those of lines
  EXPECT_EQ(Find({"a.", true}, "a\nab"), (Strings{"a\n", "[ab]"}));
}

TEST(SplitPatternTest, AnEmptyMatchCuts) { EXPECT_EQ(Find({"b*", true}, "abbé"), (Strings{"[]", "a", "[bb]", "é", "[]"})); }

TEST(SplitPatternTest, RefusesBadPatterns) {
  EXPECT_EQ(SplitPattern::Create({"", false}).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(SplitPattern::Create({"", true}).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(SplitPattern::Create({"(a", true}).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(SplitPattern::Create({R"(\p{Nonsense})", true}).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(SplitPattern::Create({std::string(70000, 'a'), true}).status().code(), absl::StatusCode::kDataLoss);
}

TEST(SplitPatternTest, ExponentialPatternsEndInAnError) {
  const absl::StatusOr<SplitPattern> pattern = SplitPattern::Create({"(a|a)+(a|a)+(a|a)+(a|a)+x", true});
  ASSERT_TRUE(pattern.ok()) << pattern.status();
  std::vector<TextPiece> pieces;
  const absl::Status status = pattern->FindPieces(std::string(200, 'a') + "bx", &pieces);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
}

// The pattern behind a megabyte of spaces needs a megabyte of backtracking, which is within the limits.
TEST(SplitPatternTest, LongRunsOfSpaceInPcre2) {
  const absl::StatusOr<SplitPattern> pattern = SplitPattern::Create({kQwen2Pattern, true}, /*use_scanner=*/false);
  ASSERT_TRUE(pattern.ok());
  const std::string text = std::string(1'000'000, ' ') + "x";
  std::vector<TextPiece> pieces;
  const absl::Status status = pattern->FindPieces(text, &pieces);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].end, 999'999u);
}

TEST(SplitBehaviorTest, AllFive) {
  const std::string text = "a--b-c-";
  const absl::StatusOr<SplitPattern> dash = SplitPattern::Create({"-"});
  std::vector<TextPiece> pieces;
  ASSERT_TRUE(dash->FindPieces(text, &pieces).ok());
  const auto apply = [&](SplitBehavior behavior, bool invert) {
    Strings shown;
    for (const TextPiece& piece : ApplySplitBehavior(pieces, behavior, invert))
      shown.push_back(text.substr(piece.begin, piece.end - piece.begin));
    return shown;
  };
  // By hand; the first five agree with the examples in the documentation of the tokenizers library ("the-final--countdown").
  EXPECT_EQ(apply(SplitBehavior::kIsolated, false), (Strings{"a", "-", "-", "b", "-", "c", "-"}));
  EXPECT_EQ(apply(SplitBehavior::kRemoved, false), (Strings{"a", "b", "c"}));
  EXPECT_EQ(apply(SplitBehavior::kMergedWithPrevious, false), (Strings{"a-", "-", "b-", "c-"}));
  EXPECT_EQ(apply(SplitBehavior::kMergedWithNext, false), (Strings{"a", "-", "-b", "-c", "-"}));
  EXPECT_EQ(apply(SplitBehavior::kContiguous, false), (Strings{"a", "--", "b", "-", "c", "-"}));
  EXPECT_EQ(apply(SplitBehavior::kRemoved, true), (Strings{"-", "-", "-", "-"}));
  EXPECT_EQ(apply(SplitBehavior::kMergedWithPrevious, true), (Strings{"a", "-", "-b", "-c", "-"}));
}

}  // namespace
}  // namespace pith
