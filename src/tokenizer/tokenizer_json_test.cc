#include "tokenizer/tokenizer_json.h"

#include "absl/strings/str_replace.h"
#include "base/json.h"
#include "base/status.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

constexpr char kSmall[] = R"({"version":"1.0","truncation":null,"added_tokens":[{"id":3,"content":"<s>","special":true}],"normalizer":null,
  "pre_tokenizer":null,"post_processor":null,"decoder":{"type":"ByteLevel"},
  "model":{"type":"BPE","dropout":null,"unk_token":null,"fuse_unk":false,"byte_fallback":false,
   "vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}})";

// kSmall with one part replaced.
std::string With(absl::string_view part, absl::string_view replacement) {
  const std::string text = absl::StrReplaceAll(kSmall, {{part, replacement}});
  EXPECT_NE(text, kSmall) << part;
  return text;
}

TEST(TokenizerJsonTest, ReadsTheModelAndTheAddedTokens) {
  const auto definition = ReadTokenizerJson(kSmall, "");
  ASSERT_TRUE(definition.ok()) << definition.status();
  EXPECT_EQ(definition->vocabulary.size(), 3u);
  EXPECT_EQ(definition->vocabulary.Find("ab"), 2);
  ASSERT_EQ(definition->merges.size(), 1u);
  EXPECT_EQ(definition->merges[0].left, 0);
  EXPECT_EQ(definition->merges[0].right, 1);
  EXPECT_EQ(definition->merges[0].merged, 2);
  ASSERT_EQ(definition->added_tokens.size(), 1u);
  EXPECT_EQ(definition->added_tokens[0].content, "<s>");
  EXPECT_TRUE(definition->added_tokens[0].special);
  EXPECT_FALSE(definition->added_tokens[0].normalized);
  EXPECT_FALSE(definition->unk_id.has_value());
}

TEST(TokenizerJsonTest, MergesAsPairsAndNoType) {
  const auto definition = ReadTokenizerJson(With(R"(["a b"])", R"([["a","b"]])"), "");
  ASSERT_TRUE(definition.ok()) << definition.status();
  EXPECT_EQ(definition->merges[0].merged, 2);
  EXPECT_TRUE(ReadTokenizerJson(With(R"("type":"BPE",)", ""), "").ok());
  EXPECT_TRUE(ReadTokenizerJson(With(R"("dropout":null)", R"("dropout":0.0,"continuing_subword_prefix":"")"), "").ok());
}

TEST(TokenizerJsonTest, Config) {
  const auto definition = ReadTokenizerJson(
      kSmall, R"({"bos_token":{"content":"<s>"},"eos_token":"ab","chat_template":"{{ x }}","add_bos_token":true})");
  ASSERT_TRUE(definition.ok()) << definition.status();
  EXPECT_EQ(definition->bos_id, 3);
  EXPECT_EQ(definition->eos_id, 2);
  EXPECT_EQ(definition->chat_template, "{{ x }}");
  EXPECT_TRUE(definition->prefix_ids.empty());  // the post-processor alone decides
  EXPECT_EQ(ReadTokenizerJson(kSmall, "[1]").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReadTokenizerJson(kSmall, "{").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReadTokenizerJson(kSmall, R"({"bos_token":7})").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReadTokenizerJson(kSmall, R"({"pad_token":"<p>"})").status().code(), absl::StatusCode::kDataLoss);
}

struct BadCase {
  std::string text;
  absl::StatusCode code;
  std::string named;  // in the message
};

TEST(TokenizerJsonTest, RefusesBadFilesAndNamesTheFault) {
  constexpr auto kBad = absl::StatusCode::kDataLoss;
  constexpr auto kUnknown = absl::StatusCode::kUnimplemented;
  const BadCase cases[] = {
      {"", kBad, "tokenizer.json"},
      {"{", kBad, "tokenizer.json"},
      {"[]", kBad, "tokenizer.json"},
      {"\xFF{}", kBad, "tokenizer.json"},
      {std::string(kSmall).substr(0, 200), kBad, "tokenizer.json"},
      {std::string(kSmall) + "x", kBad, "tokenizer.json"},
      {"{}", kBad, "model"},
      {With(R"("model":{)", R"("model":7,"other":{)"), kBad, "model"},
      {With(R"("type":"BPE")", R"("type":"Unigram")"), kUnknown, "type 'Unigram' is not supported (BPE)"},
      {With(R"("type":"BPE",)", R"("type":7,)"), kUnknown, "(BPE)"},
      {With(R"("dropout":null)", R"("dropout":0.1)"), kUnknown, "dropout 0.1"},
      {With(R"("dropout":null)", R"("end_of_word_suffix":"</w>")"), kUnknown, "end_of_word_suffix"},
      {With(R"("dropout":null)", R"("continuing_subword_prefix":"##")"), kUnknown, "continuing_subword_prefix"},
      {With(R"("fuse_unk":false)", R"("fuse_unk":"no")"), kBad, "fuse_unk"},
      {With(R"("unk_token":null)", R"("unk_token":"<unk>")"), kBad, "unk_token"},
      {With(R"("ab":2)", R"("ab":-2)"), kBad, "'ab'"},
      {With(R"("ab":2)", R"("ab":2.5)"), kBad, "'ab'"},
      {With(R"("ab":2)", R"("ab":"2")"), kBad, "'ab'"},
      {With(R"("ab":2)", R"("ab":4000000000)"), kBad, "'ab'"},
      {With(R"("ab":2)", R"("ab":16000000)"), kBad, "'ab'"},  // a table of that length for three tokens
      {With(R"("ab":2)", R"("ab":1)"), kBad, "'ab'"},
      {With(R"("ab":2)", R"("ab":2,"a":5)"), kBad, "'a'"},
      {With(R"({"a":0,"b":1,"ab":2})", R"([["a",0.5]])"), kBad, "vocab"},
      {With(R"(["a b"])", R"({"a":"b"})"), kBad, "merges"},
      {With(R"(["a b"])", R"(["a b c"])"), kBad, "merges[0]"},
      {With(R"(["a b"])", R"(["a b","ab"])"), kBad, "merges[1]"},
      {With(R"(["a b"])", R"([" b"])"), kBad, "merges[0]"},
      {With(R"(["a b"])", R"([["a"]])"), kBad, "merges[0]"},
      {With(R"(["a b"])", R"([["a",7]])"), kBad, "merges[0]"},
      {With(R"(["a b"])", R"([7])"), kBad, "merges[0]"},
      {With(R"(["a b"])", R"(["b a"])"), kBad, "'ba'"},
      {With(R"(["a b"])", R"(["a x"])"), kBad, "'x'"},
      {With(R"({"id":3,)", R"({"id":1,)"), kBad, "'<s>'"},
      {With(R"({"id":3,)", R"({)"), kBad, "id"},
      {With(R"({"id":3,)", R"({"id":-3,)"), kBad, "id"},
      {With(R"("added_tokens":[)", R"("added_tokens":{},"other":[)"), kBad, "added_tokens"},
      {With(R"("version":"1.0",)", R"("model":null,)"), kBad, "'model' twice"},
      {With(R"("merges":[)", R"("vocab":{},"merges":[)"), kBad, "'vocab' twice"},
      {With(R"("decoder":{"type":"ByteLevel"})", R"("decoder":{"type":"ByteLevel","type":"Fuse"})"), kBad, "duplicate"},
      {With(R"("normalizer":null)", R"("normalizer":{"type":"Nmt"})"), kUnknown, "Nmt"},
      {std::string(100, '[') + std::string(100, ']'), kBad, "tokenizer.json"},
  };
  for (const BadCase& bad : cases) {
    const absl::Status status = ReadTokenizerJson(bad.text, "").status();
    EXPECT_EQ(status.code(), bad.code) << bad.text << "\n" << status;
    EXPECT_NE(status.message().find(bad.named), absl::string_view::npos) << status << " should name " << bad.named;
  }
}

TEST(TokenizerJsonTest, WritesWhatItReads) {
  TokenizerDefinition definition;
  const char* tokens[] = {"a", "\"", "a\"", "\\", "\n", "\x01", "é\u2581", "<unk>", "<s>"};
  for (int id = 0; id < 9; ++id) ASSERT_TRUE(definition.vocabulary.Add(tokens[id], id * 2).ok());
  definition.merges = {{0, 2, 4}};
  definition.byte_fallback = definition.fuse_unk = definition.ignore_merges = true;
  definition.unk_id = 14;
  definition.added_tokens = {{.id = 16, .content = "<s>", .lstrip = true, .special = true},
                             {.id = 40, .content = "x\ty", .single_word = true, .rstrip = true, .normalized = true}};
  definition.normalizer = {{.kind = NormalizerStep::kNfc}, {.kind = NormalizerStep::kPrepend, .content = "_"}};
  definition.prefix_ids = {16};
  definition.decoder = std::vector<DecoderStep>{{.kind = DecoderStep::kFuse}};
  definition.bos_id = 16;
  definition.eos_id = 40;
  definition.chat_template = "{{ \"x\" }}";
  const TokenizerJsonFiles files = WriteTokenizerJson(definition);
  const auto again = ReadTokenizerJson(files.tokenizer_json, files.tokenizer_config_json);
  ASSERT_TRUE(again.ok()) << again.status() << files.tokenizer_json;
  for (int id = 0; id < 9; ++id) EXPECT_EQ(again->vocabulary.Text(id * 2), tokens[id]);
  ASSERT_EQ(again->merges.size(), 1u);
  EXPECT_EQ(again->merges[0].merged, 4);
  EXPECT_TRUE(again->byte_fallback && again->fuse_unk && again->ignore_merges);
  EXPECT_EQ(again->unk_id, 14);
  ASSERT_EQ(again->added_tokens.size(), 2u);
  EXPECT_TRUE(again->added_tokens[0].lstrip && again->added_tokens[0].special && !again->added_tokens[0].rstrip);
  EXPECT_TRUE(again->added_tokens[1].single_word && again->added_tokens[1].rstrip && again->added_tokens[1].normalized);
  EXPECT_EQ(again->added_tokens[1].content, "x\ty");
  EXPECT_EQ(again->normalizer.size(), 2u);
  EXPECT_EQ(again->prefix_ids, std::vector<TokenId>{16});
  EXPECT_EQ(again->bos_id, 16);
  EXPECT_EQ(again->eos_id, 40);
  EXPECT_EQ(again->chat_template, definition.chat_template);
  const absl::StatusOr<Json> config = ParseJson(files.tokenizer_config_json);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->at("add_bos_token"), true);
  EXPECT_EQ(config->at("add_eos_token"), false);
  EXPECT_EQ(config->at("tokenizer_class"), "PreTrainedTokenizerFast");
}

TEST(TokenizerJsonTest, MergesWithSpacesAreWrittenAsPairs) {
  TokenizerDefinition definition;
  ASSERT_TRUE(definition.vocabulary.Add("a", 0).ok());
  ASSERT_TRUE(definition.vocabulary.Add(" ", 1).ok());
  ASSERT_TRUE(definition.vocabulary.Add("a ", 2).ok());
  definition.merges = {{0, 1, 2}};
  const std::string json = WriteTokenizerJson(definition).tokenizer_json;
  EXPECT_NE(json.find(R"(["a", " "])"), std::string::npos) << json;
  const auto again = ReadTokenizerJson(json, "");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->merges[0].merged, 2);
}

}  // namespace
}  // namespace pith
