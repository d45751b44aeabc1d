#include "artifact/gguf_export_metadata.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;

const Json& Config() {
  static const Json config = {{"num_hidden_layers", 2},   {"hidden_size", 8},     {"intermediate_size", 12},
                              {"num_attention_heads", 4}, {"rms_norm_eps", 1e-5}, {"max_position_embeddings", 64}};
  return config;
}

GgufMetadata Parse(const GgufMetadataWriter& writer) {
  ByteReader reader(writer.bytes());
  auto metadata = GgufMetadata::Parse(reader, static_cast<uint64_t>(writer.count()));
  EXPECT_TRUE(metadata.ok()) << metadata.status();
  return *std::move(metadata);
}

TEST(GgufExportMetadata, DefaultsOfConfigs) {
  const auto sizes = ReadConfigSizes(Config(), 7);
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_EQ(sizes->num_kv_heads, 4);
  EXPECT_EQ(sizes->head_dim, 2);
  EXPECT_EQ(sizes->vocab_size, 7);
  EXPECT_EQ(ReadConfigSizes(Json::object(), 7).status().code(), absl::StatusCode::kDataLoss);
}

// A vocabulary shorter than the embedding is filled up, since llama.cpp wants a token per row.
TEST(GgufExportMetadata, FillsTheVocabulary) {
  TokenizerFiles tokenizer;
  tokenizer.gguf_model = "gpt2";
  tokenizer.tokens = {"a", "b"};
  tokenizer.token_types = {1, 3};
  tokenizer.eos_id = 1;
  const GgufArchitecture& llama = **FindGgufArchitecture("llama");
  const auto writer = MakeExportMetadata(Config(), "tiny", llama, *ReadConfigSizes(Config(), 4), tokenizer, 7);
  ASSERT_TRUE(writer.ok()) << writer.status();
  const std::string bytes = writer->bytes();
  const GgufMetadata metadata = Parse(*writer);
  EXPECT_EQ(*metadata.GetStrings("tokenizer.ggml.tokens"), (std::vector<std::string>{"a", "b", "[PAD2]", "[PAD3]"}));
  EXPECT_EQ(*metadata.GetInts("tokenizer.ggml.token_type", 0, 9), (std::vector<int64_t>{1, 3, 5, 5}));
  EXPECT_EQ(*metadata.GetInt("tokenizer.ggml.eos_token_id", 0, 9), 1);
  EXPECT_FALSE(metadata.Has("tokenizer.ggml.bos_token_id"));
  EXPECT_EQ(*metadata.GetString("general.name"), "tiny");
  EXPECT_EQ(*metadata.GetInt("general.file_type", 0, 99), 7);
  EXPECT_FLOAT_EQ(static_cast<float>(*metadata.GetDouble("llama.attention.layer_norm_rms_epsilon", 0, 1)), 1e-5f);
  const absl::Status longer = MakeExportMetadata(Config(), "", llama, *ReadConfigSizes(Config(), 1), tokenizer, 7).status();
  EXPECT_THAT(longer.message(), HasSubstr("expected at most 1 tokens"));
}

// Llama 3.1's divisors: 1 for fast frequencies, the factor for slow ones.
TEST(GgufExportMetadata, RopeFrequenciesOfLlama3) {
  Json config = Config();
  EXPECT_TRUE(MakeRopeFrequencies(config, 64)->empty());
  config["rope_theta"] = 500000.0;
  config["rope_scaling"] = {{"rope_type", "llama3"}, {"factor", 8.0}, {"original_max_position_embeddings", 8192}};
  const auto divisors = MakeRopeFrequencies(config, 128);
  ASSERT_TRUE(divisors.ok()) << divisors.status();
  ASSERT_EQ(divisors->size(), 64u);
  EXPECT_EQ(divisors->front(), 1.0f);
  EXPECT_EQ(divisors->back(), 8.0f);
  for (size_t i = 1; i < divisors->size(); ++i) EXPECT_GE((*divisors)[i], (*divisors)[i - 1]);
  config["rope_scaling"]["high_freq_factor"] = 0.5;
  EXPECT_EQ(MakeRopeFrequencies(config, 128).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace pith
