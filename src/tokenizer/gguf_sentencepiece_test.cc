#include "tokenizer/gguf_sentencepiece.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tokenizer/gguf_vocabulary.h"
#include "tokenizer/tokenizer_test_data.h"

namespace pith {
namespace {

using testing::HasSubstr;

constexpr char kSpace[] = "\u2581";

// tokenizer.json as transformers writes it for a SentencePiece model: <unk> <s> </s>, the bytes, then `tokens` from id 259 on with the
// merges of every split, best score first (`tokens` are in that order).
Json MakeTokenizerJson(const std::vector<std::string>& tokens, const std::vector<std::string>& added = {}) {
  Json vocab = Json::object(), merges = Json::array(), added_tokens = Json::array();
  int id = 0;
  const auto add = [&](const std::string& token) { vocab[token] = id++; };
  for (const char* special : {"<unk>", "<s>", "</s>"}) {
    added_tokens.push_back({{"id", id}, {"content", special}, {"special", true}});
    add(special);
  }
  for (int byte = 0; byte < 256; ++byte) add(absl::StrFormat("<0x%02X>", byte));
  for (const std::string& token : tokens) {
    if (std::find(added.begin(), added.end(), token) != added.end()) {
      added_tokens.push_back({{"id", id}, {"content", token}, {"special", false}, {"normalized", false}});
    }
    add(token);
  }
  for (const std::string& token : tokens) {
    for (size_t split = token.size(); split-- > 1;) {
      const std::string left = token.substr(0, split), right = token.substr(split);
      if (vocab.contains(left) && vocab.contains(right)) merges.push_back({left, right});
    }
  }
  const Json replace = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpace}};
  const Json back = {{"type", "Replace"}, {"pattern", {{"String", kSpace}}}, {"content", " "}};
  return {{"added_tokens", added_tokens},
          {"normalizer", replace},
          {"pre_tokenizer", {{"type", "Split"}, {"pattern", {{"String", " "}}}, {"behavior", "MergedWithPrevious"}, {"invert", false}}},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single", {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
            {"pair", Json::array()},
            {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}}}}}},
          {"decoder", {{"type", "Sequence"}, {"decoders", {back, {{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}}},
          {"model",
           {{"type", "BPE"}, {"byte_fallback", true}, {"fuse_unk", true}, {"unk_token", "<unk>"}, {"vocab", vocab}, {"merges", merges}}}};
}

constexpr char kConfig[] = R"({"bos_token": "<s>", "eos_token": "</s>"})";

// Runs of spaces that are added tokens, words, and one word that begins with a space.
const std::vector<std::string> kTokens = {
    "\u2581\u2581\u2581", "\u2581\u2581", "in", "\u2581t", "he", "\u2581the", "aa", "aaa", "\u2581", "a", "e", "h", "i", "n", "t", "é"};
const std::vector<std::string> kRuns = {"\u2581\u2581", "\u2581\u2581\u2581"};

Json TestFile() { return MakeTokenizerJson(kTokens, kRuns); }

absl::StatusOr<GgufVocabulary> Convert(const Json& file) { return GgufFromTokenizerJson(DumpJson(file), kConfig); }

std::string Refusal(const Json& file) {
  const absl::Status status = Convert(file).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  return std::string(status.message());
}

// Both tokenizers give the same ids on random texts of the tokens and of anything.
void ExpectSameIds(const Json& file) {
  const auto gguf = Convert(file);
  ASSERT_TRUE(gguf.ok()) << gguf.status();
  const auto original = *Tokenizer::FromJson(DumpJson(file), kConfig);
  const auto converted = Tokenizer::FromGguf(*gguf);
  ASSERT_TRUE(converted.ok()) << converted.status();
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::string text = seed % 3 == 0 ? RandomText(seed, 5) : "";
    std::erase(text, '\xE2');  // no U+2581 of the text's own: a space there, and an unknown character of GGUF's
    if (!IsValidUtf8(text)) text.clear();
    RandomStream random(seed);
    for (int i = 0; i < 30; ++i) {
      text += std::vector<std::string>{"a", "the", " ", "  ", "n", "i", "\n", "<s>", "é", "7"}[random.Below(10)];
    }
    for (const bool parse : {false, true}) {
      const EncodeOptions options = {.parse_special = parse};
      const std::vector<TokenId> ids = *original->Encode(text, options);
      ASSERT_EQ(*(*converted)->Encode(text, options), ids) << text;
      ASSERT_EQ((*converted)->Decode(ids), original->Decode(ids)) << text;
    }
  }
}

TEST(GgufSentencePiece, ScoresTypesAndSpacesOfATokenizerJson) {
  const auto gguf = Convert(TestFile());
  ASSERT_TRUE(gguf.ok()) << gguf.status();
  EXPECT_EQ(gguf->model, "llama");
  EXPECT_EQ(gguf->add_space_prefix, false);
  EXPECT_EQ(gguf->add_bos, true);
  EXPECT_EQ(gguf->unk_id, 0);
  EXPECT_TRUE(gguf->merges.empty());
  EXPECT_EQ(gguf->token_types[0], kUnknownToken);
  EXPECT_EQ(gguf->token_types[2], kControlToken);
  EXPECT_EQ(gguf->token_types[3 + 255], kByteToken);
  EXPECT_EQ(gguf->token_types[259], kUserDefinedToken);
  EXPECT_EQ(gguf->tokens[259], "   ");
  EXPECT_EQ(gguf->tokens[260], "  ");
  EXPECT_EQ(gguf->token_types[261], kNormalToken);
  // in, _t, he, _the, aa, aaa, and what no merge makes
  EXPECT_EQ(std::vector<float>(gguf->scores.begin() + 261, gguf->scores.begin() + 268), (std::vector<float>{0, -1, -2, -3, -4, -5, -6}));
  EXPECT_EQ(gguf->scores[1], -6);
  EXPECT_EQ(gguf->scores.size(), gguf->tokens.size());
}

TEST(GgufSentencePiece, SameIdsAsTheTokenizerJson) {
  ExpectSameIds(TestFile());
  Json prefixed = MakeTokenizerJson(kTokens);  // as of Llama 2: a space before the text, runs of spaces are tokens as others are
  prefixed["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "Prepend"}, {"prepend", kSpace}}, prefixed["normalizer"]}}};
  prefixed["pre_tokenizer"] = nullptr;
  prefixed["decoder"]["decoders"].push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  ExpectSameIds(prefixed);
  EXPECT_EQ(Convert(prefixed)->add_space_prefix, true);
  prefixed["added_tokens"] = TestFile()["added_tokens"];
  EXPECT_THAT(Refusal(prefixed), HasSubstr("found one of 3"));  // behind which GGUF would have a space
  Json by_id = TestFile();                                      // older converters order the splits of a token by id
  Json& merges = by_id["model"]["merges"];
  const auto first = std::find(merges.begin(), merges.end(), Json({"aa", "a"}));
  ASSERT_NE(first, merges.end());
  std::swap(*first, *(first + 1));
  EXPECT_EQ(Convert(by_id)->scores, Convert(TestFile())->scores);
}

TEST(GgufSentencePiece, MetaspaceIsTakenAsTheSpacePrefix) {
  Json file = MakeTokenizerJson(kTokens);
  file["normalizer"] = nullptr;
  file["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", kSpace}, {"prepend_scheme", "first"}, {"split", false}};
  EXPECT_THAT(Refusal(file), HasSubstr("decoder of SentencePiece"));  // which strips the space
  file["decoder"]["decoders"].push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  ASSERT_TRUE(Convert(file).ok()) << Convert(file).status();
  EXPECT_EQ(Convert(file)->add_space_prefix, true);
  const auto original = *Tokenizer::FromJson(DumpJson(file), kConfig);
  const auto converted = *Tokenizer::FromGguf(*Convert(file));
  EXPECT_EQ(*converted->Encode("the in a", {}), *original->Encode("the in a", {}));
}

// Tokens of equal scores: their merges alternate, and the scores that are found give the same order again.
TEST(GgufSentencePiece, ScoresOfTiedTokens) {
  GgufVocabulary gguf = TinySentencePiece();
  gguf.scores[263] = gguf.scores[264] = -1;
  const auto definition = DefinitionFromGguf(gguf);
  ASSERT_TRUE(definition.ok()) << definition.status();
  const auto is_normal = [&](TokenId id) { return gguf.token_types[static_cast<size_t>(id)] == kNormalToken; };
  const auto scores = ScoresFromMerges(definition->vocabulary, definition->merges, is_normal);
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_EQ((*scores)[264], 0);
  EXPECT_EQ((*scores)[262], -1);
  EXPECT_EQ((*scores)[263], -2);
  EXPECT_EQ((*scores)[259], -3);
}

TEST(GgufSentencePiece, RefusesWhatScoresCannotSay) {
  Json file = TestFile();
  const std::vector<Json> merges(file["model"]["merges"].begin(), file["model"]["merges"].end());
  file["model"]["merges"].erase(file["model"]["merges"].size() - 1);  // of "aaa": a + aa
  EXPECT_THAT(Refusal(file), HasSubstr("would be \"a\" \"aa\", found none"));
  Json torn = merges;
  std::swap(torn[merges.size() - 1], torn[3]);  // the splits of "aaa" stand around those of "he", and not by their lengths
  file["model"]["merges"] = torn;
  EXPECT_THAT(Refusal(file), HasSubstr("expected every split of every token"));
  file = TestFile();
  std::rotate(file["model"]["merges"].begin(), file["model"]["merges"].begin() + 1, file["model"]["merges"].end());
  EXPECT_THAT(Refusal(file), HasSubstr("before all other merges, found"));
  file = TestFile();
  std::swap(file["model"]["merges"][0], file["model"]["merges"][2]);  // two pairs of spaces before a run of three
  EXPECT_THAT(Refusal(file), HasSubstr("a later one, for a run of 2"));
  file = MakeTokenizerJson({"\u2581\u2581", "\u2581\u2581a", "\u2581", "a"}, {"\u2581\u2581"});
  EXPECT_THAT(Refusal(file), HasSubstr("merges[1]: expected runs of spaces"));
  file = TestFile();
  file["model"]["vocab"].erase("<0x41>");
  EXPECT_THAT(Refusal(file), HasSubstr("expected the token <0x41>, found none"));
  file = TestFile();
  file["pre_tokenizer"] = {{"type", "Digits"}, {"individual_digits", true}};
  EXPECT_THAT(Refusal(file), HasSubstr("normalizer, pre-tokenizer and decoder of SentencePiece"));
  file = TestFile();
  file["model"]["ignore_merges"] = true;
  EXPECT_THAT(Refusal(file), HasSubstr("found another model"));
}

}  // namespace
}  // namespace pith
