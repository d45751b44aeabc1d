#include "model/key_centers.h"

#include <cmath>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/synthetic_artifact.h"
#include "model/test_sequence.h"

namespace pith {
namespace {

constexpr int64_t kCenterHeads = 2, kCenterHeadDim = 16;

Json Config(const std::string& model_type) {
  return {{"model_type", model_type},
          {"vocab_size", 50},
          {"hidden_size", 32},
          {"intermediate_size", 64},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"num_key_value_heads", kCenterHeads},
          {"head_dim", kCenterHeadDim},
          {"max_position_embeddings", 128},
          {"rope_theta", 1000000.0},
          {"tie_word_embeddings", true}};
}

std::vector<float> Ramp(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), -3.0f);
  return values;
}

// By the operator itself, position after position.
TEST(KeyCenters, AreTheMeanOfTheRotatedBias) {
  ThreadPool pool(1);
  const ComputeContext context = MakeComputeContext(&pool, Isa::kScalar);
  const RopeConfig plain{.theta = 10000}, slow{.theta = 1e6},
      yarn{.theta = 1e4, .scaling = "yarn", .factor = 4, .original_max_position = 64, .attention_factor = 1.5};
  for (const RopeConfig& rope : {plain, slow, yarn}) {
    for (const int64_t positions : {1, 7, 100}) {
      RotaryEmbedding rotary(rope, kCenterHeadDim, positions);
      rotary.Reserve(positions);
      const std::vector<float> bias = Ramp(kCenterHeads * kCenterHeadDim);
      std::vector<double> expected(bias.size(), 0.0);
      for (int32_t p = 0; p < positions; ++p) {
        std::vector<float> rotated = bias;
        rotary.Run(context, rotated.data(), kCenterHeads * kCenterHeadDim, 1, kCenterHeads, kCenterHeadDim, &p);
        for (size_t i = 0; i < rotated.size(); ++i) expected[i] += rotated[i] / static_cast<double>(positions);
      }
      const std::vector<float> center = KeyCenter(bias, rope, kCenterHeadDim, positions);
      for (size_t i = 0; i < center.size(); ++i) EXPECT_NEAR(center[i], expected[i], 1e-4) << rope.scaling << " " << positions << " " << i;
    }
  }
}

TEST(KeyCenters, AreOfModelsWithABiasAlone) {
  for (const auto& [model_type, count] :
       {std::pair{"qwen2", 2u}, std::pair{"llama", 0u}, std::pair{"qwen3", 0u}, std::pair{"gemma3_text", 0u}}) {
    Json json = Config(model_type);
    if (model_type == std::string("gemma3_text")) {
      json.update({{"query_pre_attn_scalar", 16}, {"sliding_window", 4}, {"sliding_window_pattern", 2}});
    }
    const auto artifact = SyntheticArtifact::Random(json, 1);
    const DecoderConfig config = *ParseDecoderConfig(json);
    const auto centers = ReadKeyCenters(*artifact, config, WeightMap{.prefix = "model."});
    ASSERT_TRUE(centers.ok()) << centers.status();
    EXPECT_EQ(centers->size(), count) << model_type;
  }
}

// The logits with one format of the cache.
std::vector<float> Logits(DecoderModel& model, KvDtype dtype, int64_t chunk) {
  TestCache cache(model, 4, 0, dtype);
  BlockTable table;
  return AppendInChunks(model, cache, table, {7, 3, 49, 0, 12, 12, 31, 8, 20, 5, 44, 2}, chunk);
}

double RelativeError(const std::vector<float>& found, const std::vector<float>& expected) {
  double error = 0, spread = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    error += std::pow(found[i] - expected[i], 2);
    spread += std::pow(expected[i], 2);
  }
  return std::sqrt(error / spread);
}

// A bias a hundred times the keys, in the channels that hardly turn. Without centers an int8 step would be larger than the keys themselves.
// Slow channels alone: the same model without this part of the bias gives the same logits, but for what those few positions turn.
TEST(KeyCenters, ALargeBiasCostsNothing) {
  ThreadPool pool(2);
  auto artifact = SyntheticArtifact::Random(Config("qwen2"), 1);
  const auto plain = DecoderModel::Load(*artifact, {.pool = &pool, .isa = *SelectIsa()});
  ASSERT_TRUE(plain.ok()) << plain.status();
  for (int layer = 0; layer < 2; ++layer) {
    const std::string name = absl::StrCat("model.layers.", layer, ".self_attn.k_proj.bias");
    Tensor& bias = artifact->dense(name);
    for (int64_t head = 0; head < kCenterHeads; ++head) {
      bias.as<bfloat16>()[static_cast<size_t>(head * kCenterHeadDim + 7)] = ToBfloat16(150);
      bias.as<bfloat16>()[static_cast<size_t>(head * kCenterHeadDim + 15)] = ToBfloat16(-90);
    }
  }
  const auto biased = DecoderModel::Load(*artifact, {.pool = &pool, .isa = *SelectIsa()});
  ASSERT_TRUE(biased.ok()) << biased.status();
  const std::vector<float> exact = Logits(**plain, KvDtype::kBf16, 12);
  for (const auto& [dtype, tolerance] : {std::pair{KvDtype::kInt8, 0.03}, std::pair{KvDtype::kFp8, 0.1}}) {
    const std::vector<float> found = Logits(**biased, dtype, 12);
    EXPECT_LT(RelativeError(found, exact), tolerance) << KvDtypeName(dtype);
    for (const int64_t chunk : {1, 5}) EXPECT_EQ(Logits(**biased, dtype, chunk), found) << KvDtypeName(dtype) << " " << chunk;
  }
}

}  // namespace
}  // namespace pith
