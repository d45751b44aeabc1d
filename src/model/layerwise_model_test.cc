#include "model/layerwise_model.h"

#include <map>
#include <string>

#include "gtest/gtest.h"
#include "model/synthetic_artifact.h"
#include "model/test_sequence.h"

namespace pith {
namespace {

Json TinyConfig(const std::string& model_type) {
  Json config = {{"model_type", model_type},       {"vocab_size", 50},           {"hidden_size", 32},        {"intermediate_size", 64},
                 {"num_hidden_layers", 3},         {"num_attention_heads", 4},   {"num_key_value_heads", 2}, {"head_dim", 16},
                 {"max_position_embeddings", 128}, {"tie_word_embeddings", true}};
  if (model_type == "gemma3_text") config.update({{"query_pre_attn_scalar", 16}, {"sliding_window", 4}, {"sliding_window_pattern", 2}});
  return config;
}

// Keeps the inputs of every module: bf16 bits, in order.
class Recorder : public LayerObserver {
 public:
  void OnLinearInput(absl::string_view module, const uint16_t* input, int64_t num_rows, int64_t dim) override {
    std::vector<uint16_t>& seen = inputs[std::string(module)];
    seen.insert(seen.end(), input, input + num_rows * dim);
  }
  std::map<std::string, std::vector<uint16_t>> inputs;
};

class LayerwiseModelTest : public testing::TestWithParam<const char*> {
 protected:
  ThreadPool pool_{2};
  const std::vector<int32_t> tokens_ = {7, 3, 49, 0, 12, 12, 31, 8, 20};
};

// The observer of a whole model sees the bits that flow through a model run layer by layer, whatever ran before.
TEST_P(LayerwiseModelTest, HasTheBitsOfTheWholeModel) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig(GetParam()), 1);
  const auto whole = DecoderModel::Load(*artifact, {.pool = &pool_, .isa = *SelectIsa()});
  ASSERT_TRUE(whole.ok()) << whole.status();
  Recorder expected, found;
  TestCache cache(**whole, 4);
  BlockTable table;
  ASSERT_TRUE(cache.pool.Grow(table, 9).ok());
  const ForwardBatch batch{.token_ids = tokens_, .sequences = {{.num_rows = 9, .blocks = &table}}};
  (*whole)->SetObserver(&expected);
  ASSERT_TRUE((*whole)->Forward(batch, cache.storage, {}).ok());

  const auto model = LayerwiseModel::Create(*artifact, {.pool = &pool_, .isa = *SelectIsa(), .max_tokens = 16});
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<float> hidden(9 * 32), other(4 * 32);
  ASSERT_TRUE((*model)->Embed(tokens_, absl::MakeSpan(hidden)).ok());
  ASSERT_TRUE((*model)->Embed({1, 2, 3, 4}, absl::MakeSpan(other)).ok());
  for (int64_t i = 0; i < 3; ++i) {
    const auto layer = (*model)->LoadLayer(*artifact, i);
    ASSERT_TRUE(layer.ok()) << layer.status();
    ASSERT_TRUE((*model)->RunLayer(*layer, 4, absl::MakeSpan(other), nullptr).ok());
    ASSERT_TRUE((*model)->RunLayer(*layer, 9, absl::MakeSpan(hidden), &found).ok());
  }
  EXPECT_EQ(found.inputs.size(), 3u * 7u);
  EXPECT_EQ(found.inputs, expected.inputs);
}
INSTANTIATE_TEST_SUITE_P(Architectures, LayerwiseModelTest, testing::Values("llama", "qwen2", "qwen3", "gemma3_text"));

TEST_P(LayerwiseModelTest, HasTheLogitsOfTheWholeModel) {
  for (const bool tied : {true, false}) {
    Json config = TinyConfig(GetParam());
    config["tie_word_embeddings"] = tied;
    const auto artifact = SyntheticArtifact::Random(config, 1);
    const auto whole = DecoderModel::Load(*artifact, {.pool = &pool_, .isa = *SelectIsa()});
    ASSERT_TRUE(whole.ok()) << whole.status();
    TestCache cache(**whole, 4);
    BlockTable table;
    const std::vector<float> expected = AppendTokens(**whole, cache, table, tokens_);
    const auto model = LayerwiseModel::Create(*artifact, {.pool = &pool_, .isa = *SelectIsa(), .max_tokens = 16, .with_head = true});
    ASSERT_TRUE(model.ok()) << model.status();
    std::vector<float> hidden(9 * 32), logits(9 * 50);
    ASSERT_TRUE((*model)->Embed(tokens_, absl::MakeSpan(hidden)).ok());
    for (int64_t i = 0; i < 3; ++i)
      ASSERT_TRUE((*model)->RunLayer(*(*model)->LoadLayer(*artifact, i), 9, absl::MakeSpan(hidden), nullptr).ok());
    (*model)->Logits(hidden, absl::MakeSpan(logits));
    EXPECT_EQ(logits, expected) << tied;
  }
}

// What is observed is what the head multiplies: with its rows it gives the logits of the whole model, up to the rounding of sums.
TEST_P(LayerwiseModelTest, ObservesTheInputOfTheHead) {
  for (const bool tied : {true, false}) {
    Json config = TinyConfig(GetParam());
    config["tie_word_embeddings"] = tied;
    const auto artifact = SyntheticArtifact::Random(config, 1);
    const auto model = LayerwiseModel::Create(*artifact, {.pool = &pool_, .isa = *SelectIsa(), .max_tokens = 16, .with_head = true});
    ASSERT_TRUE(model.ok()) << model.status();
    std::vector<float> hidden(9 * 32), logits(9 * 50);
    ASSERT_TRUE((*model)->Embed(tokens_, absl::MakeSpan(hidden)).ok());
    Recorder recorder;
    (*model)->ObserveHead(hidden, recorder);
    (*model)->Logits(hidden, absl::MakeSpan(logits));
    ASSERT_EQ(recorder.inputs.size(), 1u);
    const std::vector<uint16_t>& input = recorder.inputs.at("lm_head");
    ASSERT_EQ(input.size(), 9u * 32u);
    const auto head = artifact->dense(tied ? "model.embed_tokens.weight" : "lm_head.weight").as<bfloat16>();
    for (size_t t = 0; t < 9; ++t) {
      for (size_t v = 0; v < 50; ++v) {
        double sum = 0;
        for (size_t i = 0; i < 32; ++i) sum += static_cast<double>(ToFloat(bfloat16{input[t * 32 + i]})) * ToFloat(head[v * 32 + i]);
        EXPECT_NEAR(logits[t * 50 + v], sum, 1e-4) << tied;
      }
    }
  }
}

TEST_F(LayerwiseModelTest, RunsALayerWithOtherWeights) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  const auto quantized = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  quantized->QuantizeLayers(8, 16);
  const auto model = LayerwiseModel::Create(*artifact, {.pool = &pool_, .isa = *SelectIsa()});
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<float> dense_hidden(9 * 32);
  ASSERT_TRUE((*model)->Embed(tokens_, absl::MakeSpan(dense_hidden)).ok());
  std::vector<float> hidden = dense_hidden;
  ASSERT_TRUE((*model)->RunLayer(*(*model)->LoadLayer(*artifact, 1), 9, absl::MakeSpan(dense_hidden), nullptr).ok());
  ASSERT_TRUE((*model)->RunLayer(*(*model)->LoadLayer(*quantized, 1), 9, absl::MakeSpan(hidden), nullptr).ok());
  double error = 0, magnitude = 0;
  for (size_t i = 0; i < hidden.size(); ++i) {
    error += (hidden[i] - dense_hidden[i]) * (hidden[i] - dense_hidden[i]);
    magnitude += dense_hidden[i] * dense_hidden[i];
  }
  EXPECT_GT(error, 0.0);
  EXPECT_LT(error, 1e-3 * magnitude);  // eight bits
}

TEST_F(LayerwiseModelTest, RefusesBadTokensAndLengths) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  const auto model = LayerwiseModel::Create(*artifact, {.pool = &pool_, .isa = *SelectIsa(), .max_tokens = 8});
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<float> hidden(9 * 32);
  EXPECT_EQ((*model)->Embed({50}, absl::MakeSpan(hidden).first(32)).code(), absl::StatusCode::kInvalidArgument);
  const auto layer = (*model)->LoadLayer(*artifact, 0);
  EXPECT_EQ((*model)->RunLayer(*layer, 9, absl::MakeSpan(hidden), nullptr).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pith
