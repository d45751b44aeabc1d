#include "tokenizer/bpe_tokenizer.h"

#include "base/status.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

// "a" = 0, "b" = 1, "_" = 2, "_a" = 3; spaces are written "_".
TokenizerDefinition Underscores() {
  TokenizerDefinition definition;
  const char* tokens[] = {"a", "b", "_", "_a"};
  for (int id = 0; id < 4; ++id) EXPECT_TRUE(definition.vocabulary.Add(tokens[id], id).ok());
  definition.merges = {{2, 0, 3}};
  definition.normalizer = {{.kind = NormalizerStep::kReplace, .pattern = {" "}, .content = "_"}};
  definition.decoder = std::vector<DecoderStep>{{.kind = DecoderStep::kReplace, .pattern = {"_"}, .content = " "}};
  return definition;
}

std::unique_ptr<Tokenizer> Make(TokenizerDefinition definition) {
  EXPECT_TRUE(CheckDefinition(definition).ok());
  auto tokenizer = BpeTokenizer::Create(std::move(definition));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

using Ids = std::vector<TokenId>;

TEST(BpeTokenizerTest, Pipeline) {
  TokenizerDefinition definition = Underscores();
  definition.prefix_ids = {1};
  definition.suffix_ids = {1, 0};
  const auto tokenizer = Make(std::move(definition));
  EXPECT_EQ(*tokenizer->Encode("b a", {}), (Ids{1, 1, 3, 1, 0}));
  EXPECT_EQ(*tokenizer->Encode("b a", {.add_special_tokens = false}), (Ids{1, 3}));
  EXPECT_EQ(tokenizer->Decode({1, 3, 99}), "b a");
  EXPECT_EQ(tokenizer->TokenBytes(3), " a");
  EXPECT_EQ(tokenizer->TokenText(3), "_a");
  EXPECT_EQ(tokenizer->FindToken("_a"), 3);
  EXPECT_EQ(tokenizer->vocab_size(), 4);
}

TEST(BpeTokenizerTest, AddedTokensBeforeAndAfterNormalization) {
  TokenizerDefinition definition = Underscores();
  definition.added_tokens = {{.id = 10, .content = "a b"}, {.id = 11, .content = "b b", .normalized = true}};
  const auto tokenizer = Make(std::move(definition));
  EXPECT_EQ(*tokenizer->Encode("a b", {}), Ids{10});  // found in the raw text
  EXPECT_EQ(*tokenizer->Encode("a_b", {}), (Ids{0, 2, 1}));
  EXPECT_EQ(*tokenizer->Encode("b b", {}), Ids{11});  // found in the normalized text, as "b_b"
  EXPECT_EQ(*tokenizer->Encode("b_b a", {}), (Ids{11, 3}));
  EXPECT_EQ(tokenizer->vocab_size(), 12);
  EXPECT_EQ(tokenizer->TokenText(11), "b b");
  EXPECT_EQ(tokenizer->Decode({11}), "b b");  // "b_b" through the decoder
  EXPECT_EQ(tokenizer->FindToken("a b"), 10);
}

TEST(BpeTokenizerTest, SpecialTokensFoundAfterNormalizationStayOutOfText) {
  TokenizerDefinition definition = Underscores();
  definition.added_tokens = {{.id = 10, .content = "a b", .normalized = true, .special = true}};
  const auto tokenizer = Make(std::move(definition));
  EXPECT_EQ(*tokenizer->Encode("a b", {}), (Ids{0, 2, 1}));
  EXPECT_EQ(*tokenizer->Encode("a b", {.parse_special = true}), Ids{10});
  EXPECT_EQ(tokenizer->TokenBytes(10), "");
  EXPECT_EQ(tokenizer->Decode({0, 10}), "a");
  EXPECT_EQ(tokenizer->Decode({0, 10}, /*skip_special=*/false), "aa b");
}

TEST(BpeTokenizerTest, UserTextWithinAParsedPrompt) {
  TokenizerDefinition definition = Underscores();
  definition.added_tokens = {{.id = 10, .content = "ab", .special = true},
                             {.id = 11, .content = "bb", .normalized = true, .special = true}};
  const auto tokenizer = Make(std::move(definition));
  const std::vector<ByteRange> user_text = {{2, 4}}, last_word = {{6, 8}};
  EXPECT_EQ(*tokenizer->Encode("ababab", {.parse_special = true, .user_text = user_text}), (Ids{10, 0, 1, 10}));
  EXPECT_EQ(*tokenizer->Encode("ababab", {.parse_special = true}), (Ids{10, 10, 10}));
  // Found after normalization: a part with user text in it keeps all of them as text.
  EXPECT_EQ(*tokenizer->Encode("bb a bb", {.parse_special = true, .user_text = user_text}), (Ids{1, 1, 3, 2, 1, 1}));
  EXPECT_EQ(*tokenizer->Encode("bb ab bb", {.parse_special = true, .user_text = last_word}), (Ids{11, 2, 10, 2, 1, 1}));
}

TEST(BpeTokenizerTest, BadPatternsAreRefused) {
  TokenizerDefinition definition = Underscores();
  definition.pre_tokenizer = {{.kind = PreTokenizerStep::kSplit, .pattern = {"(", true}}};
  EXPECT_EQ(BpeTokenizer::Create(std::move(definition)).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace pith
