#include "model/decoder_model.h"

#include <cmath>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/synthetic_artifact.h"
#include "model/test_sequence.h"

namespace pith {
namespace {

Json TinyConfig(const std::string& model_type) {
  Json config = {{"model_type", model_type},       {"vocab_size", 50},           {"hidden_size", 32},        {"intermediate_size", 64},
                 {"num_hidden_layers", 2},         {"num_attention_heads", 4},   {"num_key_value_heads", 2}, {"head_dim", 16},
                 {"max_position_embeddings", 128}, {"tie_word_embeddings", true}};
  if (model_type == "gemma3_text") config.update({{"query_pre_attn_scalar", 16}, {"sliding_window", 4}, {"sliding_window_pattern", 2}});
  return config;
}

class DecoderModelTest : public testing::Test {
 protected:
  std::unique_ptr<DecoderModel> Load(const ArtifactReader& artifact) {
    auto model = DecoderModel::Load(artifact, {.pool = &pool_});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }
  ThreadPool pool_{2};
  const std::vector<int32_t> tokens_ = {7, 3, 49, 0, 12, 12, 31, 8, 20};
};

TEST_F(DecoderModelTest, LogitsDoNotDependOnWhatIsAskedFor) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  const auto model = Load(*artifact);
  TestCache cache(*model, 8);
  BlockTable table;
  const std::vector<float> all = AppendTokens(*model, cache, table, tokens_);
  for (const float x : all) ASSERT_TRUE(std::isfinite(x));
  cache.pool.Release(table);

  // The same rows again, but only two of the logits; the cache is left as it was.
  ASSERT_TRUE(cache.pool.Grow(table, 9).ok());
  ForwardBatch batch{.token_ids = tokens_, .sequences = {{.num_rows = 9, .blocks = &table}}, .logits_rows = {2, 8}};
  std::vector<float> some(2 * 50);
  ASSERT_TRUE(model->Forward(batch, cache.storage, absl::MakeSpan(some)).ok());
  EXPECT_TRUE(std::equal(some.begin(), some.begin() + 50, all.begin() + 2 * 50));
  EXPECT_TRUE(std::equal(some.begin() + 50, some.end(), all.begin() + 8 * 50));
  batch.logits_rows.clear();
  EXPECT_TRUE(model->Forward(batch, cache.storage, {}).ok());
}

TEST_F(DecoderModelTest, ForwardRefusesBadBatches) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  const auto model = Load(*artifact);
  TestCache cache(*model, 8);
  BlockTable table;
  ASSERT_TRUE(cache.pool.Grow(table, 200).ok());
  ForwardBatch batch{.token_ids = {50}, .sequences = {{.num_rows = 1, .blocks = &table}}};
  EXPECT_EQ(model->Forward(batch, cache.storage, {}).code(), absl::StatusCode::kInvalidArgument);
  batch.token_ids = {1};
  batch.sequences[0].first_position = 128;
  EXPECT_EQ(model->Forward(batch, cache.storage, {}).code(), absl::StatusCode::kInvalidArgument);
  batch.sequences[0].first_position = 127;
  EXPECT_TRUE(model->Forward(batch, cache.storage, {}).ok());
}

// Eight bits per element move a logit by little against the spread of all logits: an e4m3 element is off by 2.6 % of itself (root mean
// square), keys and values in two layers add up to about twice that; an int8 element by 0.2 % of the vector's largest.
TEST_F(DecoderModelTest, CacheFormatsAgree) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("qwen2"), 1);
  const auto model = Load(*artifact);
  std::map<KvDtype, std::vector<float>> logits;
  for (const KvDtype dtype : {KvDtype::kBf16, KvDtype::kInt8, KvDtype::kFp8}) {
    TestCache cache(*model, 4, 0, dtype);
    BlockTable table;
    logits[dtype] = AppendTokens(*model, cache, table, tokens_);
  }
  const std::vector<float>& reference = logits[KvDtype::kBf16];
  double spread = 0;
  for (const float x : reference) spread += static_cast<double>(x) * x / static_cast<double>(reference.size());
  for (const auto& [dtype, tolerance] : {std::pair{KvDtype::kInt8, 0.02}, std::pair{KvDtype::kFp8, 0.1}}) {
    double error = 0;
    for (size_t i = 0; i < reference.size(); ++i) {
      error += std::pow(logits[dtype][i] - reference[i], 2) / static_cast<double>(reference.size());
    }
    EXPECT_GT(error, 0.0) << KvDtypeName(dtype);  // it is another format
    EXPECT_LT(std::sqrt(error / spread), tolerance) << KvDtypeName(dtype);
  }
}

TEST_F(DecoderModelTest, TheArtifactMayDeclareTheCacheFormat) {
  Json config = TinyConfig("llama");
  EXPECT_EQ(Load(*SyntheticArtifact::Random(config, 1))->MakeKvSpec(3).dtype, KvDtype::kBf16);
  Json& scheme = config["quantization_config"]["kv_cache_scheme"];
  scheme = nullptr;
  EXPECT_EQ(Load(*SyntheticArtifact::Random(config, 1))->MakeKvSpec(3).dtype, KvDtype::kBf16);
  scheme = {{"num_bits", 8}, {"type", "float"}, {"strategy", "tensor"}, {"dynamic", false}, {"symmetric", true}};
  EXPECT_EQ(Load(*SyntheticArtifact::Random(config, 1))->MakeKvSpec(3).dtype, KvDtype::kFp8);
  scheme["type"] = "int";
  EXPECT_EQ(Load(*SyntheticArtifact::Random(config, 1))->MakeKvSpec(3).dtype, KvDtype::kInt8);
  scheme["num_bits"] = 4;
  const auto refused = DecoderModel::Load(*SyntheticArtifact::Random(config, 1), {.pool = &pool_});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(refused.status().message()), testing::HasSubstr("kv_cache_scheme: expected 8 bits, symmetric, found 4 bits"));
}

TEST_F(DecoderModelTest, EveryArchitectureRuns) {
  for (const char* model_type : {"llama", "qwen2", "qwen3", "gemma3_text"}) {
    const auto artifact = SyntheticArtifact::Random(TinyConfig(model_type), 1);
    const auto model = Load(*artifact);
    TestCache cache(*model, 4);
    BlockTable table;
    for (const float x : AppendTokens(*model, cache, table, tokens_)) ASSERT_TRUE(std::isfinite(x)) << model_type;
  }
}

TEST_F(DecoderModelTest, ReportsTheDataPath) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  auto model = Load(*artifact);
  EXPECT_EQ(model->DataPathName(), "BF16/bf16");
  const std::vector<TensorDataPath>& path = model->data_path();
  ASSERT_EQ(path.size(), 1u + 2 * 7 + 1);
  EXPECT_EQ(path[0].name, "model.embed_tokens");
  EXPECT_EQ(path[1].name, "model.layers.0.self_attn.q_proj");
  EXPECT_EQ(path[7].name, "model.layers.0.mlp.down_proj");
  EXPECT_EQ(path.back().name, "lm_head");
  EXPECT_EQ(path.back().stored_bytes, 0);  // tied: stored once, resident twice
  EXPECT_EQ(path.back().tied_to, "model.embed_tokens");
  EXPECT_GT(path.back().resident_bytes, 0);
  int64_t resident = 0;
  for (const TensorDataPath& row : path) resident += row.resident_bytes;
  const int64_t norms = (2 * 2 + 1) * 32 * 4;
  EXPECT_EQ(model->resident_weight_bytes(), resident + norms);

  artifact->QuantizeLayers(4, 16);
  model = Load(*artifact);
  EXPECT_EQ(model->DataPathName(), "W4A16/int16");
  EXPECT_EQ(model->data_path()[3].packing, "pack-quantized");
  EXPECT_EQ(model->data_path()[3].group_size, 16);
}

TEST_F(DecoderModelTest, QuantizedLogitsStayNearDenseOnes) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  const auto dense = Load(*artifact);
  TestCache dense_cache(*dense, 4);
  BlockTable dense_table;
  const std::vector<float> reference = AppendTokens(*dense, dense_cache, dense_table, tokens_);
  double previous = INFINITY;
  for (const int bits : {4, 6, 8}) {  // each finer grid must come closer
    const auto copy = SyntheticArtifact::Random(TinyConfig("llama"), 1);
    copy->QuantizeLayers(bits, 16);
    const auto model = Load(*copy);
    TestCache cache(*model, 4);
    BlockTable table;
    const std::vector<float> logits = AppendTokens(*model, cache, table, tokens_);
    double squares = 0, scale = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      squares += (logits[i] - reference[i]) * static_cast<double>(logits[i] - reference[i]);
      scale += reference[i] * static_cast<double>(reference[i]);
    }
    const double error = std::sqrt(squares / scale);
    EXPECT_LT(error, previous / 2) << bits;
    previous = error;
  }
  EXPECT_LT(previous, 0.03);
}

class RecordingObserver : public LayerObserver {
 public:
  void OnLinearInput(absl::string_view module, const uint16_t* input, int64_t num_rows, int64_t dim) override {
    order.emplace_back(module);
    inputs[std::string(module)].assign(input, input + num_rows * dim);
  }
  std::vector<std::string> order;
  std::map<std::string, std::vector<uint16_t>> inputs;
};

TEST_F(DecoderModelTest, ObserverSeesEveryLinearInput) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("gemma3_text"), 1);
  const auto model = Load(*artifact);
  RecordingObserver observer;
  model->SetObserver(&observer);
  TestCache cache(*model, 4);
  BlockTable table;
  AppendTokens(*model, cache, table, tokens_);
  ASSERT_EQ(observer.order.size(), 2u * 7 + 1);
  for (size_t i = 0; i < observer.order.size(); ++i) EXPECT_EQ(observer.order[i], model->data_path()[i + 1].name);
  EXPECT_EQ(observer.inputs["model.layers.0.self_attn.q_proj"], observer.inputs["model.layers.0.self_attn.v_proj"]);
  EXPECT_EQ(observer.inputs["model.layers.1.mlp.gate_proj"], observer.inputs["model.layers.1.mlp.up_proj"]);
  EXPECT_NE(observer.inputs["model.layers.1.mlp.gate_proj"], observer.inputs["model.layers.1.self_attn.q_proj"]);
  EXPECT_EQ(observer.inputs["model.layers.0.mlp.down_proj"].size(), 9u * 64);
  EXPECT_EQ(observer.inputs["lm_head"].size(), 9u * 32);
  model->SetObserver(nullptr);
  observer.order.clear();
  AppendTokens(*model, cache, table, {1});
  EXPECT_TRUE(observer.order.empty());
}

}  // namespace
}  // namespace pith
