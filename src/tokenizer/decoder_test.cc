#include "tokenizer/decoder.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace pith {
namespace {

using Steps = std::optional<std::vector<DecoderStep>>;

Decoder Make(const Steps& steps) {
  absl::StatusOr<Decoder> decoder = Decoder::Create(steps);
  EXPECT_TRUE(decoder.ok()) << decoder.status();
  return *std::move(decoder);
}

Steps SentencePieceSteps() {
  return std::vector<DecoderStep>{{.kind = DecoderStep::kReplace, .pattern = {"\u2581"}, .content = " "},
                                  {.kind = DecoderStep::kByteFallback},
                                  {.kind = DecoderStep::kFuse},
                                  {.kind = DecoderStep::kStrip, .content = " ", .start = 1}};
}

TEST(DecoderTest, ByteLevel) {
  const Decoder decoder = Make(std::vector<DecoderStep>{{.kind = DecoderStep::kByteLevel}});
  EXPECT_EQ(decoder.Decode({"\u0120a", "\u00C3", "\u00A9"}), " aé");
  EXPECT_EQ(decoder.Decode({"\u00C3", "x"}), "\uFFFDx");
  EXPECT_EQ(decoder.Decode({"<|a b|>", "\u0120"}), "<|a b|> ");  // outside the alphabet: as it is
  EXPECT_EQ(decoder.TokenBytes("\u00C3"), "\xC3");
  EXPECT_FALSE(decoder.strips_leading_space());
}

TEST(DecoderTest, SentencePiece) {
  const Decoder decoder = Make(SentencePieceSteps());
  EXPECT_TRUE(decoder.strips_leading_space());
  EXPECT_EQ(decoder.Decode({"\u2581\u2581a", "\u2581b"}), " a b");  // one leading space goes
  EXPECT_EQ(decoder.Decode({"\u2581", "<0xE2>", "<0x82>", "<0xAC>", "x"}), "€x");
  EXPECT_EQ(decoder.Decode({"<0xE2>", "<0x82>", "x"}), "\uFFFD\uFFFDx");  // one for every byte of the run
  EXPECT_EQ(decoder.Decode({"<0x41>", "<0xFF>"}), "\uFFFD\uFFFD");        // the whole run
  EXPECT_EQ(decoder.TokenBytes("\u2581b"), " b");
  EXPECT_EQ(decoder.TokenBytes("<0xE2>"), "\xE2");
  EXPECT_EQ(decoder.TokenBytes("<0xG2>"), "<0xG2>");
}

TEST(DecoderTest, Metaspace) {
  DecoderStep step = {.kind = DecoderStep::kMetaspace, .content = "\u2581", .drops_leading = true};
  const Decoder dropping = Make(std::vector<DecoderStep>{step});
  EXPECT_EQ(dropping.Decode({"\u2581a", "\u2581b"}), "a b");
  EXPECT_TRUE(dropping.strips_leading_space());
  EXPECT_EQ(dropping.TokenBytes("\u2581b"), " b");
  step.drops_leading = false;
  EXPECT_EQ(Make(std::vector<DecoderStep>{step}).Decode({"\u2581a", "\u2581b"}), " a b");
}

TEST(DecoderTest, StripOfEveryToken) {
  const Decoder decoder = Make(std::vector<DecoderStep>{{.kind = DecoderStep::kStrip, .content = "H", .start = 1, .stop = 2}});
  EXPECT_EQ(decoder.Decode({"HHayHHH", "H", ""}), "HayH");
  EXPECT_EQ(decoder.TokenBytes("HHayHHH"), "HayH");
  EXPECT_FALSE(decoder.strips_leading_space());
}

TEST(DecoderTest, NoStepsAndNoDecoder) {
  EXPECT_EQ(Make(std::vector<DecoderStep>{}).Decode({"a", "b"}), "ab");
  EXPECT_EQ(Make(std::nullopt).Decode({"a", "b"}), "a b");
}

TEST(DecoderTest, ByteTokens) {
  EXPECT_EQ(ParseByteToken("<0x00>"), 0);
  EXPECT_EQ(ParseByteToken("<0xfF>"), 255);
  for (const char* text : {"", "<0x-1>", "<0x1>", "<0x111>", "<0x0G>", "<0X00>", "0x0000", "<0x 1>"})
    EXPECT_EQ(ParseByteToken(text), -1) << text;
}

}  // namespace
}  // namespace pith
