#include "model/stored_shape.h"

#include "gtest/gtest.h"
#include "model/synthetic_artifact.h"

namespace pith {
namespace {

const Json kConfig = {{"model_type", "llama"},          {"vocab_size", 50},           {"hidden_size", 32},        {"intermediate_size", 64},
                      {"num_hidden_layers", 1},         {"num_attention_heads", 4},   {"num_key_value_heads", 2}, {"head_dim", 16},
                      {"max_position_embeddings", 128}, {"tie_word_embeddings", true}};

TEST(StoredShape, IsThatOfTheWeight) {
  const auto artifact = SyntheticArtifact::Random(kConfig, 1);
  artifact->QuantizeLayers(4, 16);
  const WeightShape table = *StoredShape(*artifact, "model.embed_tokens");
  EXPECT_TRUE(table.dense());
  EXPECT_EQ(table.out, 50);
  EXPECT_EQ(table.in, 32);
  const WeightShape up = *StoredShape(*artifact, "model.layers.0.mlp.up_proj");
  EXPECT_EQ(up.bits, 4);
  EXPECT_EQ(up.group_size, 16);
  EXPECT_EQ(up.out, 64);
  EXPECT_EQ(up.scale, GemmScale::kBf16);
}

TEST(StoredShape, OnlyMatrices) {
  const auto artifact = SyntheticArtifact::Random(kConfig, 1);
  EXPECT_EQ(StoredShape(*artifact, "model.norm").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(StoredShape(*artifact, "model.nothing").status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace pith
