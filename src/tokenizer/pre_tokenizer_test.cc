#include "tokenizer/pre_tokenizer.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace pith {
namespace {

using Strings = std::vector<std::string>;

Strings Words(const std::vector<PreTokenizerStep>& steps, absl::string_view text, bool raw_bytes = false, bool at_text_start = true) {
  const absl::StatusOr<PreTokenizer> pre_tokenizer = PreTokenizer::Create(steps, raw_bytes);
  EXPECT_TRUE(pre_tokenizer.ok()) << pre_tokenizer.status();
  Strings words;
  const absl::Status status = pre_tokenizer->Split(text, at_text_start, [&](absl::string_view word) { words.emplace_back(word); });
  EXPECT_TRUE(status.ok()) << status;
  return words;
}

PreTokenizerStep Step(PreTokenizerStep::Kind kind) {
  PreTokenizerStep step;
  step.kind = kind;
  return step;
}

PreTokenizerStep Metaspace(PreTokenizerStep::Prepend prepend, bool split) {
  PreTokenizerStep step = Step(PreTokenizerStep::kMetaspace);
  step.replacement = "_";
  step.prepend = prepend;
  step.split = split;
  return step;
}

TEST(PreTokenizerTest, WithoutStepsTheTextIsOneWord) {
  EXPECT_EQ(Words({}, "a b"), Strings{"a b"});
  EXPECT_EQ(Words({}, ""), Strings{});
}

TEST(PreTokenizerTest, ByteLevel) {
  PreTokenizerStep step = Step(PreTokenizerStep::kByteLevel);
  EXPECT_EQ(Words({step}, "a é"), (Strings{"a", "\u0120\u00C3\u00A9"}));
  EXPECT_EQ(Words({step}, "a é", /*raw_bytes=*/true), (Strings{"a", " é"}));
  step.add_prefix_space = true;
  EXPECT_EQ(Words({step}, "a b", true), (Strings{" a", " b"}));
  EXPECT_EQ(Words({step}, " a", true), Strings{" a"});
  step.use_regex = false;
  EXPECT_EQ(Words({step}, "a b", true), Strings{" a b"});
}

TEST(PreTokenizerTest, ByteLevelBeforeOtherStepsWritesTheAlphabet) {
  PreTokenizerStep digits = Step(PreTokenizerStep::kDigits);
  digits.individual_digits = true;
  EXPECT_EQ(Words({Step(PreTokenizerStep::kByteLevel), digits}, "a 12", true), (Strings{"a", "\u0120", "1", "2"}));
}

TEST(PreTokenizerTest, Digits) {
  PreTokenizerStep step = Step(PreTokenizerStep::kDigits);
  EXPECT_EQ(Words({step}, "a12b\u0663\u00BD"), (Strings{"a", "12", "b", "\u0663\u00BD"}));
  step.individual_digits = true;
  EXPECT_EQ(Words({step}, "a12b\u0663"), (Strings{"a", "1", "2", "b", "\u0663"}));
}

TEST(PreTokenizerTest, MetaspaceSchemes) {
  EXPECT_EQ(Words({Metaspace(PreTokenizerStep::kAlways, true)}, "a  b"), (Strings{"_a", "_", "_b"}));
  EXPECT_EQ(Words({Metaspace(PreTokenizerStep::kAlways, true)}, " a"), Strings{"_a"});
  EXPECT_EQ(Words({Metaspace(PreTokenizerStep::kAlways, false)}, "a b"), Strings{"_a_b"});
  EXPECT_EQ(Words({Metaspace(PreTokenizerStep::kNever, true)}, "a b"), (Strings{"a", "_b"}));
  EXPECT_EQ(Words({Metaspace(PreTokenizerStep::kFirst, true)}, "a b"), (Strings{"_a", "_b"}));
  EXPECT_EQ(Words({Metaspace(PreTokenizerStep::kFirst, true)}, "a b", false, /*at_text_start=*/false), (Strings{"a", "_b"}));
}

TEST(PreTokenizerTest, OnlyTheFirstPieceIsAtTheStart) {
  PreTokenizerStep split = Step(PreTokenizerStep::kSplit);
  split.pattern = {"-"};
  EXPECT_EQ(Words({split, Metaspace(PreTokenizerStep::kFirst, true)}, "a-b"), (Strings{"_a", "-", "b"}));
}

TEST(PreTokenizerTest, Whitespace) {
  EXPECT_EQ(Words({Step(PreTokenizerStep::kWhitespaceSplit)}, " a.b\t\tc\u3000"), (Strings{"a.b", "c"}));
  EXPECT_EQ(Words({Step(PreTokenizerStep::kWhitespace)}, "Hey, man_1!? ok"), (Strings{"Hey", ",", "man_1", "!?", "ok"}));
  EXPECT_EQ(Words({Step(PreTokenizerStep::kWhitespace)}, "a b"), (Strings{"a", "b"}));  // two words stay two
}

TEST(PreTokenizerTest, SplitWithScannerAndBehavior) {
  PreTokenizerStep split = Step(PreTokenizerStep::kSplit);
  split.pattern = {kQwen2Pattern, true};
  EXPECT_EQ(Words({split}, "it's 12"), (Strings{"it", "'s", " ", "1", "2"}));
  split.behavior = SplitBehavior::kRemoved;
  EXPECT_EQ(Words({split}, "it's 12"), Strings{});  // all is match
  split.invert = true;
  EXPECT_EQ(Words({split}, "it's 12"), (Strings{"it", "'s", " ", "1", "2"}));
}

TEST(PreTokenizerTest, LimitsReachTheCaller) {
  PreTokenizerStep split = Step(PreTokenizerStep::kSplit);
  split.pattern = {"(a|a)+(a|a)+(a|a)+(a|a)+x", true};
  const absl::StatusOr<PreTokenizer> pre_tokenizer = PreTokenizer::Create({split}, false);
  ASSERT_TRUE(pre_tokenizer.ok());
  EXPECT_EQ(pre_tokenizer->Split(std::string(200, 'a') + "bx", true, [](absl::string_view) {}).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pith
