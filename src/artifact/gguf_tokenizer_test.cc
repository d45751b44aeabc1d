#include "artifact/gguf_tokenizer.h"

#include "artifact/test_files.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<TokenizerFiles> Read(const GgufBuilder& builder, int64_t vocab_size = 4) {
  const std::string bytes = builder.Build();
  ByteReader reader(bytes);
  EXPECT_TRUE(reader.ReadBytes(8, "magic, version").ok());
  EXPECT_TRUE(reader.Read<int64_t>("tensors").ok());
  const int64_t count = *reader.Read<int64_t>("values");
  const auto metadata = GgufMetadata::Parse(reader, static_cast<uint64_t>(count));
  if (!metadata.ok()) return metadata.status();
  return ReadGgufTokenizer(*metadata, vocab_size);
}

std::string Error(const GgufBuilder& builder, int64_t vocab_size = 4) {
  const auto files = Read(builder, vocab_size);
  if (files.ok()) return "accepted";
  EXPECT_EQ(files.status().code(), absl::StatusCode::kDataLoss);
  return std::string(files.status().message());
}

GgufBuilder Base() {
  GgufBuilder b;
  b.Str("tokenizer.ggml.model", "llama").Strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "<0x0A>", "a"});
  return b;
}

TEST(GgufTokenizer, ReadsEverything) {
  GgufBuilder b = Base();
  b.Str("tokenizer.ggml.pre", "default").Array("tokenizer.ggml.scores", 6, std::vector<float>{0, -1, -2, -3.5f});
  b.Array("tokenizer.ggml.token_type", 5, std::vector<int32_t>{2, 3, 6, 1}).Strings("tokenizer.ggml.merges", {"a b", "Ġ t"});
  b.U32("tokenizer.ggml.bos_token_id", 1).U32("tokenizer.ggml.eos_token_id", 2).U32("tokenizer.ggml.unknown_token_id", 0);
  b.U32("tokenizer.ggml.padding_token_id", 0xFFFFFFFF).U32("tokenizer.ggml.eot_token_id", 3);
  b.Bool("tokenizer.ggml.add_bos_token", true).Bool("tokenizer.ggml.add_space_prefix", false).Str("tokenizer.chat_template", "{{ x }}");
  const auto files = Read(b);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->gguf_model, "llama");
  EXPECT_EQ(files->gguf_pre, "default");
  EXPECT_THAT(files->tokens, ElementsAre("<unk>", "<s>", "<0x0A>", "a"));
  EXPECT_THAT(files->scores, ElementsAre(0, -1, -2, -3.5f));
  EXPECT_THAT(files->token_types, ElementsAre(2, 3, 6, 1));
  EXPECT_THAT(files->merges, ElementsAre("a b", "Ġ t"));
  EXPECT_EQ(files->bos_id, 1);
  EXPECT_EQ(files->eos_id, 2);
  EXPECT_EQ(files->unk_id, 0);
  EXPECT_EQ(files->pad_id, -1);
  EXPECT_EQ(files->eot_id, 3);
  EXPECT_EQ(files->add_bos, true);
  EXPECT_EQ(files->add_eos, std::nullopt);
  EXPECT_EQ(files->add_space_prefix, false);
  EXPECT_EQ(files->chat_template_jinja, "{{ x }}");
  EXPECT_TRUE(files->tokenizer_json.empty());
}

TEST(GgufTokenizer, MayBeAbsent) {
  const auto files = Read(GgufBuilder());
  ASSERT_TRUE(files.ok());
  EXPECT_TRUE(files->gguf_model.empty());
  EXPECT_TRUE(files->tokens.empty());
  EXPECT_EQ(files->eos_id, -1);
}

TEST(GgufTokenizer, Counts) {
  EXPECT_EQ(Error(Base()), "accepted");
  EXPECT_EQ(Error(Base(), 10), "accepted");  // a padded embedding
  EXPECT_THAT(Error(Base(), 3), HasSubstr("tokenizer.ggml.tokens: expected 1 to 3 tokens (rows of token_embd.weight), found 4"));
  EXPECT_THAT(Error(GgufBuilder().Str("tokenizer.ggml.model", "gpt2")), HasSubstr("found 0"));
  EXPECT_THAT(Error(Base().Array("tokenizer.ggml.scores", 6, std::vector<float>{1, 2})),
              HasSubstr("scores: expected 4 entries (one per token), found 2"));
  EXPECT_THAT(Error(Base().Array("tokenizer.ggml.token_type", 5, std::vector<int32_t>{1, 1, 1, 1, 1})),
              HasSubstr("token_type: expected 4 entries"));
}

TEST(GgufTokenizer, Contents) {
  const auto types = [](int32_t third, const std::string& token) {
    GgufBuilder b;
    b.Str("tokenizer.ggml.model", "llama").Strings("tokenizer.ggml.tokens", {"a", "b", token, "c"});
    return b.Array("tokenizer.ggml.token_type", 5, std::vector<int32_t>{1, 1, third, 1});
  };
  EXPECT_EQ(Error(types(6, "<0xfF>")), "accepted");
  for (const char* token : {"<0x-1>", "<0x100>", "<0xG0>", "<0x0>", "0x00", "", "<0x00>x"}) {
    EXPECT_THAT(Error(types(6, token)), HasSubstr("tokens[2]: expected a byte token of the form <0xHH>")) << token;
  }
  EXPECT_THAT(Error(types(7, "x")), HasSubstr("token_type: expected integers in [0, 6]"));
  EXPECT_THAT(Error(types(-1, "x")), HasSubstr("token_type: expected integers in [0, 6]"));
  for (const char* merge : {"ab", "ab ", "", " ", " a", "a"}) {
    EXPECT_THAT(Error(Base().Strings("tokenizer.ggml.merges", {"a b", merge})), HasSubstr("merges[1]: expected two parts")) << merge;
  }
  EXPECT_THAT(Error(Base().Array("tokenizer.ggml.merges", 4, std::vector<uint32_t>{1})), HasSubstr("expected an array of strings"));
}

TEST(GgufTokenizer, Ids) {
  for (const char* name : {"bos", "eos", "unknown", "padding", "eot"}) {
    const std::string key = absl::StrCat("tokenizer.ggml.", name, "_token_id");
    EXPECT_EQ(Error(Base().U32(key, 3)), "accepted");
    EXPECT_THAT(Error(Base().U32(key, 4)), HasSubstr(key + ": expected an id below 4 (the number of tokens), found 4"));
    EXPECT_THAT(Error(Base().Raw(key, 5, RawBytes<int32_t>(-2))), HasSubstr(key));
    EXPECT_THAT(Error(Base().Str(key, "x")), HasSubstr(key));
  }
}

}  // namespace
}  // namespace pith
