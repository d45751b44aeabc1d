#include "cli/bf16_twin.h"

#include <cmath>

#include "gtest/gtest.h"
#include "model/decoder_model.h"
#include "model/synthetic_artifact.h"

namespace pith {
namespace {

const Json kConfig = {{"model_type", "llama"},          {"vocab_size", 50},           {"hidden_size", 32},        {"intermediate_size", 64},
                      {"num_hidden_layers", 2},         {"num_attention_heads", 4},   {"num_key_value_heads", 2}, {"head_dim", 16},
                      {"max_position_embeddings", 128}, {"tie_word_embeddings", true}};

TEST(Bf16TwinTest, TheSameShapesInBf16) {
  const auto artifact = SyntheticArtifact::Random(kConfig, 1);
  const auto dense_names = artifact->WeightNames();
  artifact->QuantizeLayers(4, 16);
  const auto twin = Bf16Twin::Create(*artifact);
  ASSERT_TRUE(twin.ok()) << twin.status();
  ThreadPool pool(1);
  const auto model = DecoderModel::Load(**twin, {.pool = &pool});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->DataPathName(), "BF16/bf16");
  const auto original = DecoderModel::Load(*SyntheticArtifact::Random(kConfig, 1), {.pool = &pool});
  EXPECT_EQ((*model)->resident_weight_bytes(), (*original)->resident_weight_bytes());
  EXPECT_EQ((*twin)->weight_bytes(), 2 * (50 * 32 + 2 * (64 * 32 + 2 * 32 * 32 + 32 * 64 + 3 * 64 * 32)));
  EXPECT_EQ((*twin)->WeightNames().size(), dense_names.size());
}

TEST(Bf16TwinTest, ValuesAreFiniteNormalAndOfBothSigns) {
  const auto artifact = SyntheticArtifact::Random(kConfig, 1);
  const auto twin = Bf16Twin::Create(*artifact);
  const auto weight = (*twin)->ReadWeight("model.layers.0.mlp.down_proj");
  ASSERT_TRUE(weight.ok());
  const auto* values = reinterpret_cast<const bfloat16*>(weight->dense->data);
  int negative = 0;
  for (int64_t i = 0; i < 32 * 64; ++i) {
    const float value = ToFloat(values[i]);
    EXPECT_GE(std::fabs(value), 0x1p-6f);
    EXPECT_LT(std::fabs(value), 0x1p-5f);
    negative += value < 0 ? 1 : 0;
  }
  EXPECT_NEAR(negative, 32 * 64 / 2, 200);
  // Vectors are the artifact's own.
  EXPECT_EQ((*twin)->ReadWeight("model.norm")->dense->data, artifact->ReadWeight("model.norm")->dense->data);
}

}  // namespace
}  // namespace pith
