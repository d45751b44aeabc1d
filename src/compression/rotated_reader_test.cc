#include "compression/rotated_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compression/test_difference.h"
#include "model/decoder_model.h"
#include "model/synthetic_artifact.h"
#include "model/test_sequence.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

Json TinyDecoder(const std::string& model_type, bool tied) {
  return {{"model_type", model_type},    {"vocab_size", 50},       {"hidden_size", 48},
          {"intermediate_size", 40},     {"num_hidden_layers", 2}, {"num_attention_heads", 4},
          {"num_key_value_heads", 2},    {"head_dim", 16},         {"max_position_embeddings", 128},
          {"tie_word_embeddings", tied}, {"rms_norm_eps", 1e-5}};
}

std::vector<float> ValuesOf(const ArtifactReader& reader, const std::string& module) {
  const auto weight = reader.ReadWeight(module);
  EXPECT_TRUE(weight.ok()) << weight.status();
  if (!weight.ok()) return {};
  std::vector<float> values(static_cast<size_t>(weight->dense->num_elements()));
  EXPECT_TRUE(ConvertToFloat(*weight->dense, absl::MakeSpan(values)).ok());
  return values;
}

class RotatedReaderTest : public testing::Test {
 protected:
  std::unique_ptr<RotatedReader> Rotate(const ArtifactReader& base, const RotationOptions& options = {.seed = 9}) {
    auto rotated = RotatedReader::Create(base, options, reading_);
    EXPECT_TRUE(rotated.ok()) << rotated.status();
    return *std::move(rotated);
  }
  // The logits of a model that is read from `reader`, by one thread: it may not be read by several.
  std::vector<float> Logits(const ArtifactReader& reader) {
    auto model = DecoderModel::Load(reader, {.pool = &pool_});
    EXPECT_TRUE(model.ok()) << model.status();
    TestCache cache(**model, 4);
    BlockTable table;
    return AppendTokens(**model, cache, table, {7, 3, 49, 0, 12, 12, 31, 8, 20});
  }

  ThreadPool pool_{1};
  ThreadPool reading_{1};  // of the reader, at work while a model is loaded by the other
};

// The model module computes dense layers in bf16: both models are off by about the same few parts in a thousand per layer.
TEST_F(RotatedReaderTest, TheModelComputesTheSame) {
  const std::pair<const char*, bool> kCases[] = {{"llama", true}, {"llama", false}, {"qwen2", true}, {"qwen3", false}};
  for (const auto& [model_type, tied] : kCases) {
    Json config = TinyDecoder(model_type, tied);
    if (config["model_type"] == "llama") config["attention_bias"] = config["mlp_bias"] = true;
    const auto base = SyntheticArtifact::Random(config, 7);
    const std::vector<float> before = Logits(*base);
    for (const RotationOptions& options :
         {RotationOptions{.seed = 9}, RotationOptions{.heads = false}, RotationOptions{.residual = false}}) {
      auto rotated = RotatedReader::Create(*base, options, reading_);
      ASSERT_TRUE(rotated.ok()) << rotated.status();
      EXPECT_LT(RelativeDifference(before, Logits(**rotated)), 0.03) << model_type;
      EXPECT_GT(
          RelativeDifference(ValuesOf(*base, "model.layers.1.self_attn.o_proj"), ValuesOf(**rotated, "model.layers.1.self_attn.o_proj")),
          0.5);
    }
  }
}

TEST_F(RotatedReaderTest, ATiedHeadBecomesAMatrixOfItsOwn) {
  const auto base = SyntheticArtifact::Random(TinyDecoder("llama", true), 3);
  const auto rotated = Rotate(*base);
  EXPECT_EQ(rotated->config()["tie_word_embeddings"], false);
  EXPECT_EQ(rotated->untied_head_bytes(), 50 * 48 * 2);
  EXPECT_FALSE(base->HasWeight("lm_head"));
  EXPECT_TRUE(rotated->HasWeight("lm_head"));
  EXPECT_EQ(rotated->WeightNames().size(), base->WeightNames().size() + 1);
  const auto head = rotated->DescribeWeight("lm_head");
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->name, "lm_head.weight");
  EXPECT_EQ(head->type, "BF16");
  EXPECT_EQ(head->shape, (Shape{50, 48}));
  EXPECT_NE(ValuesOf(*rotated, "lm_head"), ValuesOf(*rotated, "model.embed_tokens"));
  EXPECT_THAT(ValuesOf(*rotated, "model.norm"), testing::Each(1.0f));
  EXPECT_THAT(ValuesOf(*rotated, "model.layers.1.post_attention_layernorm"), testing::Each(1.0f));
  // As a plain tensor too: what is kept is copied from there.
  EXPECT_EQ((*rotated->ReadTensor("lm_head.weight"))->dense->dtype, DType::kF32);
  EXPECT_EQ((*rotated->ReadTensor("model.norm.weight"))->dense->as<bfloat16>()[5], ToBfloat16(1));
  EXPECT_FALSE((*rotated->ReadTensor("nothing.weight")).has_value());
}

TEST_F(RotatedReaderTest, TheHeadStaysTiedWhereNothingSetsThemApart) {
  const auto base = SyntheticArtifact::Random(TinyDecoder("llama", true), 3);
  EXPECT_EQ(Rotate(*base, {.residual = false})->untied_head_bytes(), 0);
  base->Set("model.norm.weight", {48}, std::vector<float>(48, 1.0f));
  const auto rotated = Rotate(*base);
  EXPECT_EQ(rotated->untied_head_bytes(), 0);
  EXPECT_EQ(rotated->config()["tie_word_embeddings"], true);
  EXPECT_FALSE(rotated->HasWeight("lm_head"));
  EXPECT_LT(RelativeDifference(Logits(*base), Logits(*rotated)), 0.03);
}

TEST_F(RotatedReaderTest, SameBitsForAnyNumberOfThreads) {
  const auto base = SyntheticArtifact::Random(TinyDecoder("qwen2", true), 4);
  ThreadPool three(3);
  const auto other = RotatedReader::Create(*base, {.seed = 9}, three);
  ASSERT_TRUE(other.ok());
  const auto rotated = Rotate(*base);
  for (const std::string& name : rotated->WeightNames()) EXPECT_EQ(ValuesOf(*rotated, name), ValuesOf(**other, name)) << name;
}

TEST_F(RotatedReaderTest, Errors) {
  Json gemma = TinyDecoder("gemma3_text", true);
  gemma.update({{"query_pre_attn_scalar", 16}, {"sliding_window", 4}, {"sliding_window_pattern", 2}});
  const absl::Status refused = OpenRotated(*SyntheticArtifact::Random(gemma, 1), RotationOptions{}, pool_).status();
  EXPECT_TRUE(absl::IsUnimplemented(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("synthetic: rotation: gemma3_text has norms after attention and MLP"));
  const auto quantized = SyntheticArtifact::Random(TinyDecoder("llama", false), 1);
  quantized->QuantizeLayers(8, 8);
  const auto rotated = Rotate(*quantized);
  EXPECT_TRUE(absl::IsUnimplemented(rotated->ReadWeight("model.layers.0.mlp.up_proj").status()));
  EXPECT_EQ(*OpenRotated(*quantized, std::nullopt, pool_), nullptr);
}

}  // namespace
}  // namespace pith
