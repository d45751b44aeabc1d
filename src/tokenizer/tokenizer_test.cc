#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <ctime>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gtest/gtest.h"
#include "tokenizer/tokenizer_test_data.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

std::string GoldenPath(const std::string& name) { return absl::StrCat(PITH_SOURCE_DIR, "/tests/golden/tokenizer/", name); }

std::unique_ptr<Tokenizer> LoadGolden(const std::string& name) {
  absl::StatusOr<std::string> json = ReadFile(GoldenPath(name + ".tokenizer.json"));
  EXPECT_TRUE(json.ok()) << json.status();
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::FromJson(*json, "");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

class GoldenTokenizerTest : public testing::TestWithParam<const char*> {};

// Ids and texts that the Python tokenizers package gave (tests/oracles/make_tokenizer_fixtures.py).
TEST_P(GoldenTokenizerTest, SameIdsAndTextAsPython) {
  const std::unique_ptr<Tokenizer> tokenizer = LoadGolden(GetParam());
  ASSERT_NE(tokenizer, nullptr);
  const absl::StatusOr<std::string> golden = ReadFile(GoldenPath(absl::StrCat(GetParam(), ".golden.json")));
  ASSERT_TRUE(golden.ok()) << golden.status();
  const absl::StatusOr<Json> cases = ParseJson(*golden);
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_GT(cases->size(), 20u);
  for (const Json& item : *cases) {
    const std::string text = item.at("text");
    const EncodeOptions options = {item.at("add_special_tokens"), item.at("parse_special")};
    const auto expected = item.at("ids").get<std::vector<TokenId>>();
    const absl::StatusOr<std::vector<TokenId>> ids = tokenizer->Encode(text, options);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, expected) << Printable(text);
    EXPECT_EQ(tokenizer->Decode(expected), item.at("decoded").get<std::string>()) << Printable(text);
  }
}

INSTANTIATE_TEST_SUITE_P(AllKinds, GoldenTokenizerTest,
                         testing::Values("digits_byte_level", "llama3_byte_level", "prefix_space_byte_level", "sentencepiece",
                                         "unknown_without_bytes", "metaspace_first", "normalizers_and_splits", "o200k_pattern",
                                         "whitespace_words"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

TEST(TokenizerTest, UserTextNeverProducesSpecialIds) {
  for (const char* name : {"digits_byte_level", "llama3_byte_level", "prefix_space_byte_level", "sentencepiece"}) {
    const std::unique_ptr<Tokenizer> tokenizer = LoadGolden(name);
    for (const char* text : {"<s>", "</s>", "a<s>b</s>", " <mask> ", "<s><s>", "<mask", "<unk>"}) {
      const auto ids = tokenizer->Encode(text, {.add_special_tokens = false, .parse_special = false});
      ASSERT_TRUE(ids.ok());
      EXPECT_FALSE(ids->empty());
      for (const TokenId id : *ids) EXPECT_FALSE(tokenizer->IsSpecial(id)) << name << " " << text << " " << tokenizer->TokenText(id);
    }
  }
}

TEST(TokenizerTest, ParseSpecialAndBoundaries) {
  const std::unique_ptr<Tokenizer> tokenizer = LoadGolden("digits_byte_level");
  const TokenId begin = *tokenizer->FindToken("<s>"), end = *tokenizer->FindToken("</s>");
  EXPECT_EQ(*tokenizer->Encode("", {}), (std::vector<TokenId>{begin, end}));
  EXPECT_EQ(*tokenizer->Encode("<s></s>", {.add_special_tokens = false, .parse_special = true}), (std::vector<TokenId>{begin, end}));
  EXPECT_TRUE(tokenizer->IsSpecial(begin));
  EXPECT_EQ(tokenizer->TokenBytes(begin), "");
  EXPECT_EQ(tokenizer->TokenText(begin), "<s>");
  EXPECT_EQ(tokenizer->Decode({begin, end}), "");
  EXPECT_EQ(tokenizer->Decode({begin, end}, /*skip_special=*/false), "<s></s>");
}

TEST(TokenizerTest, UnknownIdsAreNothing) {
  const std::unique_ptr<Tokenizer> tokenizer = LoadGolden("digits_byte_level");
  const TokenId beyond = static_cast<TokenId>(tokenizer->vocab_size());
  EXPECT_EQ(tokenizer->Decode({beyond, -1, 1 << 30}), "");
  EXPECT_EQ(tokenizer->TokenBytes(beyond), "");
  EXPECT_EQ(tokenizer->TokenText(-5), "");
  EXPECT_FALSE(tokenizer->IsSpecial(-1));
  EXPECT_FALSE(tokenizer->TokenText(beyond - 1).empty());
  EXPECT_EQ(tokenizer->FindToken("no such token"), std::nullopt);
}

TEST(TokenizerTest, RefusesTextThatIsNotUtf8) {
  const std::unique_ptr<Tokenizer> tokenizer = LoadGolden("sentencepiece");
  for (const char* text : {"\xC3", "a\xFFz", "\xED\xA0\x80", "\xC0\x80"}) {
    EXPECT_EQ(tokenizer->Encode(text, {}).status().code(), absl::StatusCode::kInvalidArgument) << Printable(text);
  }
}

// Byte-level tokenizers lose nothing: any text comes back, at once and piece by piece.
TEST(TokenizerTest, ByteLevelRoundTrip) {
  const std::unique_ptr<Tokenizer> tokenizer = LoadGolden("llama3_byte_level");
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::string text = RandomText(seed, 1 + seed);
    const auto ids = tokenizer->Encode(text, {.add_special_tokens = true});
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(tokenizer->Decode(*ids), text);
    StreamDetokenizer stream(*tokenizer);
    std::string streamed;
    for (const TokenId id : *ids) {
      const std::string piece = stream.Append(id);
      EXPECT_TRUE(IsValidUtf8(piece));
      streamed += piece;
    }
    EXPECT_EQ(streamed + stream.Finish(), text);
  }
}

TEST(TokenizerTest, SameIdsFromManyThreads) {
  const std::unique_ptr<Tokenizer> tokenizer = LoadGolden("digits_byte_level");
  std::vector<std::string> texts;
  for (uint64_t seed = 0; seed < 20; ++seed) texts.push_back(RandomText(seed, 300));
  std::vector<std::vector<TokenId>> expected;
  for (const std::string& text : texts) expected.push_back(*tokenizer->Encode(text, {}));
  const std::unique_ptr<Tokenizer> shared = LoadGolden("digits_byte_level");  // with a cold cache
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < texts.size(); ++i) wrong[t] += *shared->Encode(texts[i], {}) != expected[i];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

// A megabyte of one character: a quadratic step anywhere would take minutes, not seconds.
TEST(TokenizerTest, LongRunsTakeLinearTime) {
  for (const char* name : {"digits_byte_level", "llama3_byte_level", "sentencepiece", "normalizers_and_splits"}) {
    const std::unique_ptr<Tokenizer> tokenizer = LoadGolden(name);
    for (const char* unit : {"a", " ", "\n", "7", "\u0301\u0323", "<"}) {
      std::string text;
      while (text.size() < 1'000'000) text += unit;
      const std::clock_t start = std::clock();
      const auto ids = tokenizer->Encode(text, {});
      const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      ASSERT_TRUE(ids.ok()) << ids.status();
      EXPECT_LT(seconds, 20) << name << " " << Printable(unit);
    }
  }
}

TEST(StreamDetokenizerTest, HoldsBackIncompleteSequences) {
  const std::unique_ptr<Tokenizer> tokenizer = LoadGolden("digits_byte_level");
  StreamDetokenizer stream(*tokenizer);
  // "\xE2\x82\xAC" is the euro sign; one token per byte.
  EXPECT_EQ(stream.Append(*tokenizer->FindToken("\u00e2")), "");  // E2
  EXPECT_EQ(stream.Append(*tokenizer->FindToken("\u0124")), "");  // 82
  EXPECT_EQ(stream.Append(*tokenizer->FindToken("\u00ac")), "\u20ac");
  EXPECT_EQ(stream.Append(*tokenizer->FindToken("\u00e2")), "");
  EXPECT_EQ(stream.Append(*tokenizer->FindToken("a")), "\uFFFDa");  // the sequence was broken off
  EXPECT_EQ(stream.Append(*tokenizer->FindToken("\u00f0")), "");    // F0
  EXPECT_EQ(stream.Append(*tokenizer->FindToken("<s>")), "");       // special tokens add nothing and break nothing
  EXPECT_EQ(stream.Finish(), "\uFFFD");
  EXPECT_EQ(stream.Finish(), "");
}

TEST(StreamDetokenizerTest, DropsOneLeadingSpaceOfSentencePieceText) {
  const std::unique_ptr<Tokenizer> tokenizer = LoadGolden("sentencepiece");
  ASSERT_TRUE(tokenizer->strips_leading_space());
  StreamDetokenizer stream(*tokenizer);  // Finish makes it ready for the next text
  for (const char* text : {"the loom", "  two spaces", "a", "", "\u13a0 bytes \U0001f9f5"}) {
    const auto ids = tokenizer->Encode(text, {});
    std::string streamed;
    for (const TokenId id : *ids) streamed += stream.Append(id);
    EXPECT_EQ(streamed + stream.Finish(), text);
    EXPECT_EQ(tokenizer->Decode(*ids), text);
  }
}

TEST(TokenizerTest, NamedTokensComeFromTheConfig) {
  const absl::StatusOr<std::string> json = ReadFile(GoldenPath("digits_byte_level.tokenizer.json"));
  ASSERT_TRUE(json.ok());
  const auto tokenizer = Tokenizer::FromJson(
      *json, R"({"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false}, "pad_token": null})");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->bos_id(), (*tokenizer)->FindToken("<s>"));
  EXPECT_EQ((*tokenizer)->eos_id(), (*tokenizer)->FindToken("</s>"));
  const auto unnamed = Tokenizer::FromJson(*json, "");
  EXPECT_EQ((*unnamed)->bos_id(), std::nullopt);
  const auto wrong = Tokenizer::FromJson(*json, R"({"eos_token": "<|nowhere|>"})");
  EXPECT_EQ(wrong.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(wrong.status().message().find("eos_token"), absl::string_view::npos) << wrong.status();
}

}  // namespace
}  // namespace pith
