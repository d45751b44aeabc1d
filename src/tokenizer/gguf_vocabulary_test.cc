#include "tokenizer/gguf_vocabulary.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "gtest/gtest.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/tokenizer_test_data.h"

namespace pith {
namespace {

// 256 bytes, "ab" = 256, <|end|> = 257 (control), <tool> = 258 (user-defined), an unused token.
GgufVocabulary TinyByteLevel(const std::string& pre = "smollm") {
  GgufVocabulary gguf;
  gguf.model = "gpt2";
  gguf.pre = pre;
  for (int byte = 0; byte < 256; ++byte) AppendUtf8(ByteLevelChar(static_cast<uint8_t>(byte)), &gguf.tokens.emplace_back());
  for (const char* token : {"ab", "<|end|>", "<tool>", "[PAD259]"}) gguf.tokens.push_back(token);
  gguf.token_types.assign(257, 1);
  for (const int type : {3, 4, 5}) gguf.token_types.push_back(type);
  gguf.merges = {"a b"};
  gguf.eos_id = 257;
  return gguf;
}

std::vector<TokenId> Encode(const GgufVocabulary& gguf, absl::string_view text, const EncodeOptions& options = {}) {
  const auto tokenizer = Tokenizer::FromGguf(gguf);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto ids = (*tokenizer)->Encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return *ids;
}

std::vector<TokenId> EncodeThroughJson(const GgufVocabulary& gguf, absl::string_view text, const EncodeOptions& options = {}) {
  const auto files = TokenizerJsonFromGguf(gguf);
  EXPECT_TRUE(files.ok()) << files.status();
  const auto tokenizer = Tokenizer::FromJson(files->tokenizer_json, files->tokenizer_config_json);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *(*tokenizer)->Encode(text, options);
}

TEST(GgufVocabularyTest, ByteLevelByHand) {
  const GgufVocabulary gguf = TinyByteLevel();
  EXPECT_EQ(Encode(gguf, "abc é"), (std::vector<TokenId>{256, 'c', ' ', 0xC3, 0xA9}));
  EXPECT_EQ(Encode(gguf, "a<tool>b"), (std::vector<TokenId>{'a', 258, 'b'}));  // user-defined: found in any text
  EXPECT_EQ(Encode(gguf, "<|end|>").size(), 7u);                               // control: only when asked for
  EXPECT_EQ(Encode(gguf, "<|end|>", {.parse_special = true}), std::vector<TokenId>{257});
  const auto tokenizer = *Tokenizer::FromGguf(gguf);
  EXPECT_EQ(tokenizer->eos_id(), 257);
  EXPECT_EQ(tokenizer->bos_id(), std::nullopt);
  EXPECT_EQ(tokenizer->vocab_size(), 259);  // without the unused token
  EXPECT_TRUE(tokenizer->IsSpecial(257));
  EXPECT_FALSE(tokenizer->IsSpecial(258));
  EXPECT_FALSE(tokenizer->strips_leading_space());
}

TEST(GgufVocabularyTest, EveryNamedPreTokenizerWorks) {
  for (const char* pre : {"gpt-2", "phi-2", "olmo", "smollm", "starcoder", "refact", "llama-bpe", "llama3", "llama-v3", "qwen2",
                          "deepseek-r1-qwen", "default", ""}) {
    GgufVocabulary gguf = TinyByteLevel(pre);
    gguf.add_bos = false;
    const std::string text = "It's 1234 ab\n\n  x e\u0301";
    const auto tokenizer = *Tokenizer::FromGguf(gguf);
    const std::vector<TokenId> ids = *tokenizer->Encode(text, {});
    const bool nfc = std::string(pre).find("qwen") != std::string::npos;
    EXPECT_EQ(tokenizer->Decode(ids), nfc ? "It's 1234 ab\n\n  x \u00E9" : text) << pre;
    EXPECT_EQ(EncodeThroughJson(gguf, text), ids) << pre;
  }
}

TEST(GgufVocabularyTest, WholeWordsOfLlama3AndItsBeginningOfText) {
  GgufVocabulary gguf = TinyByteLevel("llama-bpe");
  gguf.tokens.push_back("xyz");  // no merge reaches it
  gguf.token_types.push_back(1);
  EXPECT_EQ(Tokenizer::FromGguf(gguf).status().code(), absl::StatusCode::kDataLoss);  // adds a bos that is not named
  gguf.bos_id = 257;
  EXPECT_EQ(Encode(gguf, "xyz"), (std::vector<TokenId>{257, 260}));
  EXPECT_EQ(Encode(gguf, "xyz", {.add_special_tokens = false}), std::vector<TokenId>{260});
  gguf.pre = "qwen2";
  EXPECT_EQ(Encode(gguf, "xyz"), (std::vector<TokenId>{'x', 'y', 'z'}));
}

TEST(GgufVocabularyTest, BoundaryTokensAreSpecialWhateverTheirType) {
  GgufVocabulary gguf = TinyByteLevel();
  gguf.token_types.clear();
  gguf.eot_id = 258;
  const auto tokenizer = *Tokenizer::FromGguf(gguf);
  EXPECT_TRUE(tokenizer->IsSpecial(257));
  EXPECT_TRUE(tokenizer->IsSpecial(258));
  EXPECT_EQ(Encode(gguf, "<tool>").size(), 6u);
}

TEST(GgufVocabularyTest, SentencePieceByHand) {
  GgufVocabulary gguf = TinySentencePiece();
  // "_ab": the best score is _a (-1), which leaves b; ab (-2) is worse; _ab needs _ ab or _a b: _a + b is a split of it (-3).
  EXPECT_EQ(Encode(gguf, "ab"), (std::vector<TokenId>{1, 264}));
  EXPECT_EQ(Encode(gguf, "ab ab"), (std::vector<TokenId>{1, 264, 264}));
  EXPECT_EQ(Encode(gguf, "é"), (std::vector<TokenId>{1, 259, 3 + 0xC3, 3 + 0xA9}));
  EXPECT_EQ(Encode(gguf, "ab\n\nab"), (std::vector<TokenId>{1, 264, 265, 264}));  // user-defined first; the space prefix comes back
  EXPECT_EQ(Encode(gguf, "<0x41>").size(), 1u + 1 + 6);                           // its text, byte by byte, not byte 0x41
  EXPECT_EQ(Encode(gguf, ""), std::vector<TokenId>{1});
  gguf.add_space_prefix = false;
  gguf.add_bos = false;
  gguf.add_eos = true;
  EXPECT_EQ(Encode(gguf, "ab ab"), (std::vector<TokenId>{263, 264, 2}));
  const auto tokenizer = *Tokenizer::FromGguf(gguf);
  EXPECT_EQ(tokenizer->Decode({263, 264, 2}), "ab ab");
  EXPECT_FALSE(tokenizer->strips_leading_space());
}

TEST(GgufVocabularyTest, MergesGoByScoreThenLongerLeftPart) {
  GgufVocabulary gguf = TinySentencePiece();
  const auto definition = DefinitionFromGguf(gguf);
  ASSERT_TRUE(definition.ok());
  std::vector<std::vector<TokenId>> merges;
  for (const BpeMerge& merge : definition->merges) merges.push_back({merge.left, merge.right, merge.merged});
  EXPECT_EQ(merges, (std::vector<std::vector<TokenId>>{{259, 260, 262}, {260, 261, 263}, {262, 261, 264}, {259, 263, 264}}));
  gguf.scores[263] = -1;  // equal to "_a": two characters on the left of "_ab" come before one, tokens in order of id
  gguf.scores[264] = -1;
  const auto equal = DefinitionFromGguf(gguf);
  merges.clear();
  for (const BpeMerge& merge : equal->merges) merges.push_back({merge.left, merge.right, merge.merged});
  EXPECT_EQ(merges, (std::vector<std::vector<TokenId>>{{262, 261, 264}, {259, 263, 264}, {259, 260, 262}, {260, 261, 263}}));
}

TEST(GgufVocabularyTest, DefaultIdsOfSentencePieceFiles) {
  GgufVocabulary gguf = TinySentencePiece();
  gguf.bos_id = gguf.eos_id = gguf.unk_id = -1;
  const auto definition = DefinitionFromGguf(gguf);
  ASSERT_TRUE(definition.ok()) << definition.status();
  EXPECT_EQ(definition->bos_id, 1);
  EXPECT_EQ(definition->eos_id, 2);
  EXPECT_EQ(definition->unk_id, 0);
}

TEST(GgufVocabularyTest, SameThroughTokenizerJson) {
  for (const bool prefix : {true, false}) {
    GgufVocabulary gguf = TinySentencePiece();
    gguf.add_space_prefix = prefix;
    gguf.add_eos = true;
    gguf.chat_template = "{{ bos_token }}";
    const auto files = TokenizerJsonFromGguf(gguf);
    ASSERT_TRUE(files.ok()) << files.status();
    const auto from_json = *Tokenizer::FromJson(files->tokenizer_json, files->tokenizer_config_json);
    const auto from_gguf = *Tokenizer::FromGguf(gguf);
    for (uint64_t seed = 0; seed < 100; ++seed) {
      std::string text = RandomText(seed, 10);
      RandomStream random(seed);
      for (int i = 0; i < 30; ++i) text += std::vector<std::string>{"a", "b", " ", "\n", "<s>"}[random.Below(5)];
      for (const bool parse : {false, true}) {
        const EncodeOptions options = {.parse_special = parse};
        ASSERT_EQ(*from_json->Encode(text, options), *from_gguf->Encode(text, options));
      }
    }
    EXPECT_EQ(ParseJson(files->tokenizer_config_json)->at("chat_template"), "{{ bos_token }}");
    EXPECT_EQ(ParseJson(files->tokenizer_config_json)->at("bos_token"), "<s>");
  }
}

TEST(GgufVocabularyTest, RefusesWhatDoesNotFit) {
  constexpr auto kBad = absl::StatusCode::kDataLoss;
  struct Fault {
    const char* named;
    void (*break_it)(GgufVocabulary*);
    absl::StatusCode code = kBad;
  };
  const Fault sentencepiece[] = {
      {"'bert' is not supported (gpt2, llama)", [](GgufVocabulary* g) { g->model = "bert"; }, absl::StatusCode::kUnimplemented},
      {"tokens: expected at least one",
       [](GgufVocabulary* g) {
         g->tokens.clear();
         g->token_types.clear();
         g->scores.clear();
       }},
      {"token_type: expected", [](GgufVocabulary* g) { g->token_types.pop_back(); }},
      {"scores: expected", [](GgufVocabulary* g) { g->scores.pop_back(); }},
      {"scores[4]", [](GgufVocabulary* g) { g->scores[4] = NAN; }},
      {"scores[5]", [](GgufVocabulary* g) { g->scores[5] = INFINITY; }},
      {"token_type[6]", [](GgufVocabulary* g) { g->token_types[6] = 7; }},
      {"token_type[6]", [](GgufVocabulary* g) { g->token_types[6] = -2147483647; }},
      {"tokens[3]: expected a byte", [](GgufVocabulary* g) { g->tokens[3] = "<0x-1>"; }},
      {"tokens[3]: expected a byte", [](GgufVocabulary* g) { g->tokens[3] = "<0x1FF>"; }},
      {"tokens[13]: expected a byte", [](GgufVocabulary* g) { g->tokens[13] = "<0x0a>"; }},
      {"tokens[3]: expected a byte", [](GgufVocabulary* g) { g->tokens[3] = "x"; }},
      {"expected it once", [](GgufVocabulary* g) { g->tokens[4] = "<0x00>"; }},
      {"tokens[260]: expected a text", [](GgufVocabulary* g) { g->tokens[260] = ""; }},
      {"tokens[260]: expected UTF-8", [](GgufVocabulary* g) { g->tokens[260] = "\xFF"; }},
      {"bos_token_id", [](GgufVocabulary* g) { g->bos_id = 267; }},
      {"eos_token_id", [](GgufVocabulary* g) { g->eos_id = -2; }},
      {"unknown_token_id", [](GgufVocabulary* g) { g->unk_id = int64_t{1} << 40; }},
      {"padding token", [](GgufVocabulary* g) { g->pad_id = 266; }},  // the unused token
      {"add_eos_token",
       [](GgufVocabulary* g) {
         g->eos_id = -1;
         g->token_types[2] = 1;
         g->add_eos = true;
       }},
  };
  for (const Fault& fault : sentencepiece) {
    GgufVocabulary gguf = TinySentencePiece();
    fault.break_it(&gguf);
    const absl::Status status = DefinitionFromGguf(gguf).status();
    EXPECT_EQ(status.code(), fault.code) << fault.named << ": " << status;
    EXPECT_NE(status.message().find(fault.named), absl::string_view::npos) << status << " should name " << fault.named;
  }
  const Fault byte_level[] = {
      {"'deepseek-v9' is not supported (gpt-2, ", [](GgufVocabulary* g) { g->pre = "deepseek-v9"; }, absl::StatusCode::kUnimplemented},
      {"merges: expected at least one", [](GgufVocabulary* g) { g->merges.clear(); }},
      {"merges[1]", [](GgufVocabulary* g) { g->merges.push_back("ab"); }},
      {"merges[1]", [](GgufVocabulary* g) { g->merges.push_back("a b c"); }},
      {"merges[1]", [](GgufVocabulary* g) { g->merges.push_back(" a"); }},
      {"merges[1]", [](GgufVocabulary* g) { g->merges.push_back("a "); }},
      {"merges[1]", [](GgufVocabulary* g) { g->merges.push_back("b a"); }},
      {"merges[1]", [](GgufVocabulary* g) { g->merges.push_back("\xFF b"); }},
  };
  for (const Fault& fault : byte_level) {
    GgufVocabulary gguf = TinyByteLevel();
    fault.break_it(&gguf);
    const absl::Status status = DefinitionFromGguf(gguf).status();
    EXPECT_EQ(status.code(), fault.code) << fault.named << ": " << status;
    EXPECT_NE(status.message().find(fault.named), absl::string_view::npos) << status << " should name " << fault.named;
  }
}

// tokenizer.json made of a vocabulary and back: the same tokens, types, merges and pre-tokenizer, and so the same ids.
TEST(GgufVocabulary, ComesBackFromTokenizerJson) {
  for (const char* pre : {"gpt-2", "smollm", "llama-bpe", "qwen2", "default"}) {
    SCOPED_TRACE(pre);
    GgufVocabulary gguf = TinyByteLevel(pre);
    gguf.bos_id = 257;
    gguf.tokens.pop_back();  // an unused id behind the last token is not in tokenizer.json
    gguf.token_types.pop_back();
    const auto files = TokenizerJsonFromGguf(gguf);
    ASSERT_TRUE(files.ok()) << files.status();
    const auto back = GgufFromTokenizerJson(files->tokenizer_json, files->tokenizer_config_json);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->model, "gpt2");
    EXPECT_EQ(back->pre, pre);
    EXPECT_EQ(back->tokens, gguf.tokens);
    EXPECT_EQ(back->token_types, gguf.token_types);
    EXPECT_EQ(back->merges, gguf.merges);
    EXPECT_EQ(back->bos_id, gguf.bos_id);
    EXPECT_EQ(back->eos_id, gguf.eos_id);
    const auto again = TokenizerJsonFromGguf(*back);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->tokenizer_json, files->tokenizer_json);
  }
}

TEST(GgufVocabulary, RefusesPipelinesWithoutAName) {
  const auto files = *TokenizerJsonFromGguf(TinyByteLevel("smollm"));
  Json json = *ParseJson(files.tokenizer_json);
  json["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", true}, {"trim_offsets", true}};
  const absl::Status status = GgufFromTokenizerJson(DumpJson(json), "").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  json = *ParseJson(files.tokenizer_json);
  json["decoder"] = nullptr;
  EXPECT_EQ(GgufFromTokenizerJson(DumpJson(json), "").status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace pith
