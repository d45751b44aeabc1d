#include "model/memory_forecast.h"

#include "gtest/gtest.h"
#include "model/decoder_model.h"
#include "model/synthetic_artifact.h"

namespace pith {
namespace {

Json TinyConfig(const std::string& model_type, bool tied) {
  Json config = {{"model_type", model_type},       {"vocab_size", 50},           {"hidden_size", 32},        {"intermediate_size", 64},
                 {"num_hidden_layers", 2},         {"num_attention_heads", 4},   {"num_key_value_heads", 2}, {"head_dim", 16},
                 {"max_position_embeddings", 128}, {"tie_word_embeddings", tied}};
  if (model_type == "gemma3_text") config.update({{"query_pre_attn_scalar", 16}, {"sliding_window", 4}, {"sliding_window_pattern", 2}});
  return config;
}

class MemoryForecastTest : public testing::Test {
 protected:
  void ExpectAgreement(const ArtifactReader& artifact, const std::string& name) {
    for (const Isa isa : {Isa::kScalar, DetectIsa()}) {
      const auto model = DecoderModel::Load(artifact, {.pool = &pool_, .isa = isa});
      ASSERT_TRUE(model.ok()) << model.status();
      const auto forecast = ForecastWeightBytes(artifact, MakeComputeContext(&pool_, isa));
      ASSERT_TRUE(forecast.ok()) << forecast.status();
      EXPECT_EQ(forecast->total(), (*model)->resident_weight_bytes()) << name << " " << IsaName(isa);
      const WeightBytes actual = CountWeightBytes((*model)->data_path(), (*model)->resident_weight_bytes());
      EXPECT_EQ(forecast->attention, actual.attention) << name;
      EXPECT_EQ(forecast->mlp, actual.mlp) << name;
      EXPECT_EQ(forecast->embedding, actual.embedding) << name;
      EXPECT_EQ(forecast->lm_head, actual.lm_head) << name;
      EXPECT_EQ(actual.total(), (*model)->resident_weight_bytes());
    }
  }
  ThreadPool pool_{2};
};

TEST_F(MemoryForecastTest, EveryArchitectureAndFormat) {
  for (const char* model_type : {"llama", "qwen2", "qwen3", "gemma3_text"}) {
    for (const bool tied : {true, false}) {
      ExpectAgreement(*SyntheticArtifact::Random(TinyConfig(model_type, tied), 1), absl::StrCat(model_type, tied));
    }
  }
  const auto llm_int8 = SyntheticArtifact::Random(TinyConfig("qwen2", true), 1);
  llm_int8->QuantizeLayers(8, 0);
  const QuantizationArgs args{.strategy = QuantizationStrategy::kToken, .dynamic = true, .outlier_threshold = 6, .fixed_outliers = true};
  llm_int8->SetInput({args, 0, {1, 2, 5}});
  ExpectAgreement(*llm_int8, "outlier columns");
  for (const int bits : {3, 4, 6, 8}) {
    const auto artifact = SyntheticArtifact::Random(TinyConfig("llama", true), 1);
    artifact->QuantizeLayers(bits, 16);
    ExpectAgreement(*artifact, absl::StrCat("llama ", bits, " bits"));
  }
}

TEST_F(MemoryForecastTest, QuantizedActivations) {
  const InputQuantization per_token{{.strategy = QuantizationStrategy::kToken, .dynamic = true}}, fixed{{}, 0.125f};
  for (const int64_t group_size : {16, 0}) {
    for (const InputQuantization& input : {per_token, fixed}) {
      const auto artifact = SyntheticArtifact::Random(TinyConfig("llama", true), 1);
      artifact->QuantizeLayers(group_size == 0 ? 8 : 4, group_size);
      artifact->SetInput(input);
      ExpectAgreement(*artifact, absl::StrCat("groups of ", group_size, ", ", DescribeInput(input.args)));
    }
  }
}

TEST_F(MemoryForecastTest, Fp8Weights) {
  const QuantizationArgs per_token{.type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kToken, .dynamic = true};
  for (const int64_t group_size : {16, 0}) {
    for (const std::optional<InputQuantization>& input :
         {std::optional<InputQuantization>(), std::optional(InputQuantization{per_token})}) {
      const auto artifact = SyntheticArtifact::Random(TinyConfig("llama", true), 1);
      artifact->QuantizeLayers(8, group_size, QuantizationType::kFloat);
      if (input.has_value()) artifact->SetInput(*input);
      ExpectAgreement(*artifact, absl::StrCat("fp8 in groups of ", group_size));
    }
  }
}

TEST_F(MemoryForecastTest, BiasesCountWithTheNorms) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("qwen2", true), 1);
  const auto forecast = ForecastWeightBytes(*artifact, MakeComputeContext(&pool_, Isa::kScalar));
  const auto without = ForecastWeightBytes(*SyntheticArtifact::Random(TinyConfig("llama", true), 1),
                                           MakeComputeContext(&pool_, Isa::kScalar));
  EXPECT_EQ(forecast->norms - without->norms, 2 * (64 + 32 + 32) * 4);
}

TEST_F(MemoryForecastTest, StoredBytesByPart) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("llama", true), 1);
  const auto stored = StoredWeightBytes(*artifact);
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(stored->attention, 2 * 2 * (2 * 64 * 32 + 2 * 32 * 32));
  EXPECT_EQ(stored->mlp, 2 * 2 * 3 * 64 * 32);
  EXPECT_EQ(stored->embedding, 2 * 50 * 32);
  EXPECT_EQ(stored->lm_head, 0);
  EXPECT_EQ(stored->norms, 2 * 5 * 32);
}

TEST_F(MemoryForecastTest, AWorkspaceGrowsWithItsRowsUpToTheMlp) {
  const auto config = ParseDecoderConfig(TinyConfig("llama", true));
  const int64_t one = WorkspaceBytes(*config, 1, 1), two = WorkspaceBytes(*config, 1, 2);
  EXPECT_GT(two, one);
  EXPECT_EQ(WorkspaceBytes(*config, 1, 3) - two, two - one);
  EXPECT_LT(WorkspaceBytes(*config, 1, 1025) - WorkspaceBytes(*config, 1, 1024), two - one);
  EXPECT_GT(WorkspaceBytes(*config, 2, 1), one);
}

}  // namespace
}  // namespace pith
