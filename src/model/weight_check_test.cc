#include "model/weight_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/synthetic_artifact.h"

namespace pith {
namespace {

using testing::HasSubstr;

Json TinyConfig(const std::string& model_type) {
  return {{"model_type", model_type},    {"vocab_size", 50},       {"hidden_size", 32},
          {"intermediate_size", 64},     {"num_hidden_layers", 2}, {"num_attention_heads", 4},
          {"num_key_value_heads", 2},    {"head_dim", 16},         {"max_position_embeddings", 128},
          {"tie_word_embeddings", false}};
}

absl::Status Check(const ArtifactReader& artifact) { return CheckWeights(artifact, *ParseDecoderConfig(artifact.config())); }

TEST(CheckWeights, EveryArchitectureHasTheWeightsItsConfigAsksFor) {
  for (const char* model_type : {"llama", "qwen2", "qwen3", "gemma3_text"}) {
    const auto artifact = SyntheticArtifact::Random(TinyConfig(model_type), 1);
    EXPECT_TRUE(Check(*artifact).ok()) << model_type << ": " << Check(*artifact);
  }
}

// Every weight of every architecture, missing and misshapen.
TEST(CheckWeights, NamesTheFirstWeightThatIsMissingOrMisshapen) {
  for (const char* model_type : {"llama", "qwen3", "gemma3_text"}) {
    const auto names = SyntheticArtifact::Random(TinyConfig(model_type), 1)->WeightNames();
    EXPECT_GT(names.size(), 18u);
    for (const std::string& name : names) {
      auto artifact = SyntheticArtifact::Random(TinyConfig(model_type), 1);
      artifact->Set(name + ".weight", {3, 7}, std::vector<float>(21, 0.5f));
      EXPECT_THAT(Check(*artifact).message(), testing::AllOf(HasSubstr(name + ".weight: expected ["), HasSubstr("found [3, 7]")));
      EXPECT_EQ(Check(*artifact).code(), absl::StatusCode::kDataLoss);
      artifact->Erase(name + ".weight");
      EXPECT_THAT(Check(*artifact).message(), HasSubstr(name));
    }
  }
}

TEST(CheckKnownWeights, OtherArchitecturesPass) {
  auto artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  EXPECT_TRUE(CheckKnownWeights(*artifact).ok());
  artifact->Erase("model.layers.1.mlp.up_proj.weight");
  EXPECT_TRUE(absl::IsDataLoss(CheckKnownWeights(*artifact)));
  EXPECT_THAT(CheckKnownWeights(*artifact).message(), HasSubstr("model.layers.1.mlp.up_proj"));
  Json config = TinyConfig("llama");
  config["model_type"] = "mamba";
  EXPECT_TRUE(CheckKnownWeights(SyntheticArtifact(config)).ok());
  config = TinyConfig("llama");
  config.erase("vocab_size");
  EXPECT_TRUE(absl::IsDataLoss(CheckKnownWeights(SyntheticArtifact(config)))) << CheckKnownWeights(SyntheticArtifact(config));
}

}  // namespace
}  // namespace pith
