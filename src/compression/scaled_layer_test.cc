#include "compression/scaled_layer.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/random.h"
#include "compression/overlay_reader.h"
#include "model/layerwise_model.h"
#include "model/synthetic_artifact.h"

namespace pith {
namespace {

Json TinyConfig(const std::string& model_type) {
  Json config = {{"model_type", model_type},       {"vocab_size", 50},           {"hidden_size", 32},        {"intermediate_size", 64},
                 {"num_hidden_layers", 1},         {"num_attention_heads", 4},   {"num_key_value_heads", 2}, {"head_dim", 16},
                 {"max_position_embeddings", 128}, {"tie_word_embeddings", true}};
  if (model_type == "gemma3_text") config.update({{"query_pre_attn_scalar", 16}, {"sliding_window", 4}, {"sliding_window_pattern", 2}});
  return config;
}

const char* kMatrices[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                           "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};

// Powers of two, equal where columns are tied.
std::vector<float> RandomScales(const LayerInput& input, int64_t in, RandomStream& random) {
  std::vector<float> scales(static_cast<size_t>(in));
  for (float& scale : scales) scale = std::ldexp(1.0f, static_cast<int>(random.Below(5)) - 2);
  for (size_t i = 0; i < input.tied_columns.size(); ++i) scales[i] = scales[static_cast<size_t>(input.tied_columns[i])];
  return scales;
}

class ScaledLayerTest : public testing::TestWithParam<const char*> {
 protected:
  ThreadPool pool_{2};
};

// Scales in all four inputs at once change nothing of what a layer computes: powers of two not a bit of it, but where the norm's weight
// is stored less one (Gemma).
TEST_P(ScaledLayerTest, FoldingKeepsWhatTheLayerComputes) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig(GetParam()), 1);
  const auto model = LayerwiseModel::Create(*artifact, {.pool = &pool_, .isa = *SelectIsa()});
  ASSERT_TRUE(model.ok()) << model.status();
  const DecoderConfig& config = (*model)->config();
  ScaledLayer scaled(*artifact, config.norm_weight_plus_one);
  RandomStream random(3);
  for (const LayerInput& input : LayerInputs(config, (*model)->weight_map(), 0)) {
    const int64_t in = (*artifact->ReadWeight(input.consumers[0])).dense->shape[1];
    const std::vector<float> scales = RandomScales(input, in, random);
    const auto divisors = scaled.Fold(input, scales);
    ASSERT_TRUE(divisors.ok()) << divisors.status();
    for (size_t i = 0; i < scales.size(); ++i) EXPECT_NEAR((*divisors)[i], scales[i], 0.02f * scales[i]) << input.producer;
  }
  OverlayReader overlay(*artifact);
  for (const char* name : kMatrices) {
    const std::string module = (*model)->weight_map().Layer(0, name);
    auto matrix = scaled.ReadMatrix(module);
    ASSERT_TRUE(matrix.ok()) << matrix.status();
    overlay.SetTensor(module + ".weight", std::make_shared<Tensor>(*std::move(matrix)));
  }
  for (const auto& [name, tensor] : scaled.changed()) overlay.SetTensor(name, tensor);
  std::vector<float> expected(9 * 32), found;
  ASSERT_TRUE((*model)->Embed({7, 3, 49, 0, 12, 12, 31, 8, 20}, absl::MakeSpan(expected)).ok());
  found = expected;
  ASSERT_TRUE((*model)->RunLayer(*(*model)->LoadLayer(*artifact, 0), 9, absl::MakeSpan(expected), nullptr).ok());
  ASSERT_TRUE((*model)->RunLayer(*(*model)->LoadLayer(overlay, 0), 9, absl::MakeSpan(found), nullptr).ok());
  if (!config.norm_weight_plus_one) {
    EXPECT_EQ(found, expected);
    return;
  }
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 0.03f * (1 + std::fabs(expected[i]))) << i;
}
INSTANTIATE_TEST_SUITE_P(Architectures, ScaledLayerTest, testing::Values("llama", "qwen2", "qwen3", "gemma3_text"));

// Scales that bf16 cannot divide by exactly: what the norm's rounding leaves is made up for by the columns.
TEST_F(ScaledLayerTest, RoundingOfTheNormIsMadeUpFor) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  Tensor& norm = artifact->dense("model.layers.0.input_layernorm.weight");
  norm.as<bfloat16>()[4] = ToBfloat16(0.0f);
  const LayerInput input{
      .consumers = {"model.layers.0.self_attn.q_proj"}, .producer = "model.layers.0.input_layernorm", .producer_is_norm = true};
  std::vector<float> scales(32, 1.7f);
  ScaledLayer scaled(*artifact, false);
  const auto divisors = scaled.Fold(input, scales);
  ASSERT_TRUE(divisors.ok());
  const auto changed = scaled.changed().at("model.layers.0.input_layernorm.weight")->as<bfloat16>();
  const auto matrix = scaled.ReadMatrix(input.consumers[0]);
  ASSERT_TRUE(matrix.ok());
  const auto dense = artifact->ReadWeight(input.consumers[0]);
  for (size_t i = 0; i < 32; ++i) {
    const float original = ToFloat(norm.as<bfloat16>()[i]) * ToFloat(dense->dense->as<bfloat16>()[i]);
    EXPECT_NEAR(ToFloat(changed[i]) * matrix->as<float>()[i], original, 1e-6f * std::fabs(original)) << i;
  }
  EXPECT_EQ((*divisors)[4], 1.0f);  // nothing to divide
}

// One row of v_proj feeds o_proj once per query head: it can be divided by one number only.
TEST_F(ScaledLayerTest, RefusesUnequalScalesOfTiedColumns) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("qwen2"), 1);
  const auto model = LayerwiseModel::Create(*artifact, {.pool = &pool_, .isa = *SelectIsa()});
  ASSERT_TRUE(model.ok()) << model.status();
  int refused = 0;
  for (const LayerInput& input : LayerInputs((*model)->config(), (*model)->weight_map(), 0)) {
    if (input.tied_columns.empty()) continue;
    std::vector<float> scales(input.tied_columns.size(), 2.0f);
    scales.back() = 4.0f;
    ScaledLayer scaled(*artifact, false);
    EXPECT_EQ(scaled.Fold(input, scales).status().code(), absl::StatusCode::kInternal);
    ++refused;
  }
  EXPECT_EQ(refused, 1);
}

TEST_F(ScaledLayerTest, RefusesANormOfAnotherSize) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  ScaledLayer scaled(*artifact, false);
  const LayerInput input{.consumers = {"model.layers.0.mlp.down_proj"}, .producer = "model.norm", .producer_is_norm = true};
  EXPECT_TRUE(absl::IsDataLoss(scaled.Fold(input, std::vector<float>(64, 2.0f)).status()));
}

}  // namespace
}  // namespace pith
