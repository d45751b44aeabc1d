// Through DecoderModel::Load, which adds the path of the artifact to every message.
#include "model/weight_binding.h"

#include <cmath>

#include "base/interrupt.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/decoder_model.h"
#include "model/synthetic_artifact.h"

namespace pith {
namespace {

using testing::HasSubstr;

Json TinyConfig(const std::string& model_type) {
  return {{"model_type", model_type},       {"vocab_size", 50},           {"hidden_size", 32},        {"intermediate_size", 64},
          {"num_hidden_layers", 2},         {"num_attention_heads", 4},   {"num_key_value_heads", 2}, {"head_dim", 16},
          {"max_position_embeddings", 128}, {"tie_word_embeddings", true}};
}

class WeightBinding : public testing::Test {
 protected:
  absl::Status Load(const ArtifactReader& artifact) { return DecoderModel::Load(artifact, {.pool = &pool_}).status(); }
  std::string LoadError(const ArtifactReader& artifact, absl::StatusCode code = absl::StatusCode::kDataLoss) {
    const absl::Status status = DecoderModel::Load(artifact, {.pool = &pool_}).status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }
  ThreadPool pool_{2};
};

TEST_F(WeightBinding, ProgressCountsEveryMatrix) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  std::vector<int64_t> done;
  const auto model = DecoderModel::Load(*artifact, {.pool = &pool_, .progress = [&](int64_t d, int64_t total) {
                                                      done.push_back(d);
                                                      EXPECT_EQ(total, 16);
                                                    }});
  ASSERT_TRUE(model.ok());
  ASSERT_EQ(done.size(), 16u);
  for (size_t i = 0; i < done.size(); ++i) EXPECT_EQ(done[i], static_cast<int64_t>(i) + 1);
}

TEST_F(WeightBinding, LoadNamesWhatIsWrongWithAWeight) {
  const std::string kDown = "model.layers.1.mlp.down_proj.weight";
  auto artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  artifact->Erase(kDown);
  EXPECT_THAT(LoadError(*artifact), HasSubstr(kDown));
  artifact->Set(kDown, {64, 32}, std::vector<float>(64 * 32, 0.1f));
  EXPECT_THAT(LoadError(*artifact), HasSubstr(kDown + ": expected [32, 64] from config.json, found [64, 32]"));
  std::vector<float> values(32 * 64, 0.1f);
  values[3 * 64 + 5] = std::nanf("");
  artifact->Set(kDown, {32, 64}, values);
  EXPECT_THAT(LoadError(*artifact), HasSubstr(kDown + ": expected finite values, found NaN at [3, 5]"));

  artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  artifact->Set("model.layers.0.input_layernorm.weight", {31}, std::vector<float>(31, 1.0f));
  EXPECT_THAT(LoadError(*artifact), HasSubstr("model.layers.0.input_layernorm.weight: expected [32] from config.json, found [31]"));
  artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  artifact->mutable_config()["tie_word_embeddings"] = false;
  EXPECT_THAT(LoadError(*artifact), HasSubstr("lm_head.weight"));
  artifact->mutable_config()["model_type"] = "rwkv";
  EXPECT_THAT(LoadError(*artifact, absl::StatusCode::kUnimplemented), HasSubstr("synthetic: config.json: model_type"));
}

TEST_F(WeightBinding, BiasesMustBeAnnounced) {
  auto artifact = SyntheticArtifact::Random(TinyConfig("qwen2"), 1);
  artifact->Erase("model.layers.1.self_attn.k_proj.bias");
  EXPECT_THAT(LoadError(*artifact), HasSubstr("model.layers.1.self_attn.k_proj.bias: expected a bias of 32 values"));
  artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  artifact->Set("model.layers.0.self_attn.o_proj.bias", {32}, std::vector<float>(32, 0.0f));
  EXPECT_TRUE(Load(*artifact).ok());  // zeros some exporters write
  artifact->Set("model.layers.0.self_attn.o_proj.bias", {32}, std::vector<float>(32, 0.5f));
  EXPECT_THAT(LoadError(*artifact), HasSubstr("o_proj.bias: expected no bias according to config.json"));
}

TEST_F(WeightBinding, LoadStopsWhenInterrupted) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  SetInterruptSignal(2);
  LoadError(*artifact, absl::StatusCode::kCancelled);
  SetInterruptSignal(0);
}

}  // namespace
}  // namespace pith
