#include "model/weight_check.h"

#include "absl/strings/str_cat.h"
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

std::unique_ptr<SyntheticArtifact> With(const std::string& tensor, const Json& config = TinyConfig("llama")) {
  auto artifact = SyntheticArtifact::Random(config, 1);
  artifact->Set(tensor, {32}, std::vector<float>(32, 0.5f));
  return artifact;
}

TEST(CheckWeights, RefusesWeightsThatTheConfigDoesNotAskFor) {
  auto artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  artifact->mutable_config()["num_hidden_layers"] = 1;
  EXPECT_EQ(Check(*artifact).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Check(*artifact).message(),
            "model.layers.1.input_layernorm.weight: expected 1 layer as config.json says, found a weight of layer 2 (and 8 more)");
  EXPECT_EQ(Check(*With("model.layers.9.mlp.up_proj.weight")).message(),
            "model.layers.9.mlp.up_proj.weight: expected 2 layers as config.json says, found a weight of layer 10");
  for (const char* name :
       {"model.layers.0.self_attn.q_norm.weight", "model.layers.1.mlp.experts.0.up_proj.weight", "model.layers.one.mlp.up_proj.weight",
        "model.layers.01.mlp.up_proj.weight", "model.layers.0.input_layernorm.bias", "model.norm.bias"}) {
    EXPECT_EQ(Check(*With(name)).message(), absl::StrCat(name, ": expected only weights that config.json asks for, found this one"));
  }
}

TEST(CheckWeights, TensorsThatChangeNothingAreLeftOut) {
  Json tied = TinyConfig("llama");
  tied["tie_word_embeddings"] = true;
  EXPECT_TRUE(Check(*With("lm_head.weight", tied)).ok());
  for (const char* name : {"model.layers.0.self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq", "model.layers.1.self_attn.k_scale",
                           "model.layers.1.self_attn.v_proj.output_scale", "vision_tower.encoder.layers.9.mlp.fc1.weight",
                           "model.visual.blocks.0.norm1.weight", "mtp.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.bias"}) {
    EXPECT_TRUE(Check(*With(name)).ok()) << Check(*With(name));
    EXPECT_THAT(UnusedTensors(*With(name)), testing::IsEmpty()) << name;
  }
}

TEST(UnusedTensors, AreThoseOfWhichNothingIsKnown) {
  for (const char* name : {"score.weight", "model.layers.0.self_attn.rotation", "model.other_norm.weight"}) {
    EXPECT_TRUE(Check(*With(name)).ok()) << Check(*With(name));
    EXPECT_THAT(UnusedTensors(*With(name)), testing::ElementsAre(name));
  }
  Json config = TinyConfig("llama");
  config["model_type"] = "mamba";
  SyntheticArtifact other(config);
  other.Set("score.weight", {1}, {1.0f});
  EXPECT_THAT(UnusedTensors(other), testing::IsEmpty());
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
