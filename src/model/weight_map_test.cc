#include "model/weight_map.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/synthetic_artifact.h"

namespace pith {
namespace {

TEST(WeightMap, FindsThePrefixOfTheEmbedding) {
  const struct {
    const char* embedding;
    const char* layer;
    const char* head;
  } kCases[] = {
      {"model.embed_tokens", "model.layers.3.mlp.up_proj", "lm_head"},
      {"language_model.model.embed_tokens", "language_model.model.layers.3.mlp.up_proj", "language_model.lm_head"},
      {"model.language_model.embed_tokens", "model.language_model.layers.3.mlp.up_proj", "lm_head"},
  };
  for (const auto& c : kCases) {
    SyntheticArtifact artifact(Json::object());
    artifact.Set(absl::StrCat(c.embedding, ".weight"), {1, 1}, {1.0f});
    const auto map = MakeWeightMap(artifact, {});
    ASSERT_TRUE(map.ok()) << map.status();
    EXPECT_EQ(map->Embedding(), c.embedding);
    EXPECT_EQ(map->Layer(3, "mlp.up_proj"), c.layer);
    EXPECT_EQ(map->head, c.head);
  }
}

TEST(WeightMap, NamesTheMissingEmbedding) {
  const SyntheticArtifact artifact(Json::object());
  const absl::Status status = MakeWeightMap(artifact, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("model.embed_tokens.weight"));
}

}  // namespace
}  // namespace pith
