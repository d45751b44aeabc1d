#include "model/pass_profile.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/decoder_model.h"
#include "model/synthetic_artifact.h"
#include "model/test_sequence.h"

namespace pith {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::StartsWith;

constexpr int64_t kVocab = 50, kHidden = 32, kInter = 64, kLayers = 2, kHeads = 4, kKvHeads = 2, kHeadDim = 16;
constexpr int64_t kQueries = kHeads * kHeadDim, kQkv = kQueries + 2 * kKvHeads * kHeadDim;

Json TinyConfig(const std::string& model_type) {
  Json config = {{"model_type", model_type},        {"vocab_size", kVocab},         {"hidden_size", kHidden},
                 {"intermediate_size", kInter},     {"num_hidden_layers", kLayers}, {"num_attention_heads", kHeads},
                 {"num_key_value_heads", kKvHeads}, {"head_dim", kHeadDim},         {"max_position_embeddings", 2048},
                 {"tie_word_embeddings", true}};
  if (model_type == "gemma3_text") config.update({{"query_pre_attn_scalar", 16}, {"sliding_window", 4}, {"sliding_window_pattern", 2}});
  return config;
}

class PassProfileTest : public testing::Test {
 protected:
  void Load(const std::string& model_type) {
    artifact_ = SyntheticArtifact::Random(TinyConfig(model_type), 1);
    LoadArtifact();
  }
  // Layers of `bits`, inputs as declared.
  void LoadQuantized(int bits, const std::optional<InputQuantization>& input) {
    artifact_ = SyntheticArtifact::Random(TinyConfig("llama"), 1);
    artifact_->QuantizeLayers(bits, 0);
    if (input.has_value()) artifact_->SetInput(*input);
    LoadArtifact();
  }
  void LoadArtifact() {
    auto model = DecoderModel::Load(*artifact_, {.pool = &pool_});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    model_->SetProfiler(&profiler_);
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const OperatorRecord& record : profiler_.records()) names.emplace_back(record.name);
    return names;
  }
  const OperatorRecord& Find(absl::string_view name, int64_t layer) const {
    for (const OperatorRecord& record : profiler_.records()) {
      if (record.name == name && record.layer == layer) return record;
    }
    ADD_FAILURE() << name << " of layer " << layer;
    return profiler_.records()[0];
  }

  ThreadPool pool_{2};
  std::unique_ptr<SyntheticArtifact> artifact_;
  std::unique_ptr<DecoderModel> model_;
  Profiler profiler_;
};

TEST_F(PassProfileTest, EveryOperatorInOrder) {
  Load("llama");
  TestCache cache(*model_, 4);
  BlockTable table;
  AppendTokens(*model_, cache, table, {1, 2, 3});
  const std::vector<std::string> layer = {"norm", "qkv", "rope_kv", "attention", "o", "norm", "gate_up", "down"};
  std::vector<std::string> expected = {"embedding"};
  for (int64_t i = 0; i < kLayers; ++i) expected.insert(expected.end(), layer.begin(), layer.end());
  expected.insert(expected.end(), {"norm", "lm_head"});
  EXPECT_THAT(Names(), ElementsAreArray(expected));
  EXPECT_EQ(profiler_.num_passes(), 1);
  int64_t end = 0;
  for (const OperatorRecord& record : profiler_.records()) {
    EXPECT_EQ(record.rows, 3) << record.name;
    EXPECT_EQ(record.threads, 2);
    EXPECT_GE(record.begin_ns, end);
    EXPECT_GE(record.end_ns, record.begin_ns);
    EXPECT_NE(record.kernel, "") << record.name;
    end = record.end_ns;
  }
  EXPECT_EQ(Find("norm", 1).layer, 1);
  EXPECT_EQ(Find("lm_head", kNoLayer).layer, kNoLayer);
}

TEST_F(PassProfileTest, PostNormsHaveTheirOwnRecords) {
  Load("gemma3_text");
  TestCache cache(*model_, 4);
  BlockTable table;
  AppendTokens(*model_, cache, table, {1});
  const std::vector<std::string> names = Names();
  EXPECT_THAT(std::vector<std::string>(names.begin(), names.begin() + 11),
              ElementsAre("embedding", "norm", "qkv", "rope_kv", "attention", "o", "norm", "norm", "gate_up", "down", "norm"));
}

TEST_F(PassProfileTest, WorkOfEveryOperator) {
  Load("llama");
  TestCache cache(*model_, 4);
  BlockTable table;
  AppendTokens(*model_, cache, table, {1, 2, 3, 4, 5});
  profiler_.Clear();
  AppendTokens(*model_, cache, table, {6, 7});  // positions 5 and 6
  const OperatorWork& qkv = Find("qkv", 0).work;
  EXPECT_EQ(qkv.activation_bytes, 2 * (kHidden * 2 + kQkv * 4));
  EXPECT_EQ(qkv.operations, 2 * 2 * kHidden * kQkv);
  EXPECT_EQ(Find("down", 1).work.operations, 2 * 2 * kInter * kHidden);
  EXPECT_EQ(Find("lm_head", kNoLayer).work.operations, 2 * 2 * kHidden * kVocab);
  EXPECT_THAT(Find("qkv", 0).kernel, StartsWith("gemm_bf16_bf16_f32__"));
  const int64_t token_bytes = 2 * kKvHeads * kHeadDim * 2;  // keys and values of one layer, bf16
  EXPECT_EQ(Find("rope_kv", 0).work.kv_bytes, 2 * token_bytes);
  EXPECT_EQ(Find("attention", 0).work.kv_bytes, 7 * token_bytes);
  EXPECT_EQ(Find("attention", 0).work.operations, 4 * (6 + 7) * kQueries);
  // One pass reads every resident weight once, and two rows of the tied table for its look-ups.
  int64_t weights = 0;
  for (const OperatorRecord& record : profiler_.records()) weights += record.work.weight_bytes;
  EXPECT_EQ(weights, model_->resident_weight_bytes() + 2 * (model_->data_path().back().resident_bytes / kVocab));
}

TEST_F(PassProfileTest, AnInputTakesTheBytesOfItsIntegers) {
  const QuantizationArgs per_token{.strategy = QuantizationStrategy::kToken, .dynamic = true};
  QuantizationArgs outliers = per_token;
  outliers.outlier_threshold = 6;
  struct {
    int bits;
    std::optional<InputQuantization> input;
    const char* kernel;
    int64_t input_bytes;
  } const cases[] = {
      {8, InputQuantization{per_token}, "gemm_int8_w8g_f32__", 1},
      {8, InputQuantization{outliers}, "gemm_int8_w8g_f32__", 1},  // LLM.int8()
      {8, std::nullopt, "gemm_int16_w8g_f32__", 2},                // two planes
  };
  for (const auto& c : cases) {
    LoadQuantized(c.bits, c.input);
    TestCache cache(*model_, 4);
    BlockTable table;
    profiler_.Clear();
    AppendTokens(*model_, cache, table, {1, 2, 3});
    EXPECT_THAT(Find("qkv", 0).kernel, StartsWith(c.kernel));
    EXPECT_EQ(Find("qkv", 0).work.activation_bytes, 3 * (kHidden * c.input_bytes + kQkv * 4)) << c.kernel;
    EXPECT_EQ(Find("down", 1).work.activation_bytes, 3 * (kInter * c.input_bytes + kHidden * 4)) << c.kernel;
    EXPECT_EQ(Find("qkv", 0).work.operations, 3 * 2 * kHidden * kQkv) << c.kernel;
    EXPECT_EQ(Find("lm_head", kNoLayer).work.activation_bytes, 3 * (kHidden * 2 + kVocab * 4)) << c.kernel;  // dense
  }
}

TEST_F(PassProfileTest, ASlidingWindowReadsOnlyItsTokens) {
  Load("gemma3_text");  // layer 0 slides over 4 tokens, layer 1 sees all
  TestCache cache(*model_, 4);
  BlockTable table;
  AppendTokens(*model_, cache, table, {1, 2, 3, 4, 5, 6});
  profiler_.Clear();
  AppendTokens(*model_, cache, table, {7, 8});
  const int64_t token_bytes = 2 * kKvHeads * kHeadDim * 2;
  EXPECT_EQ(Find("attention", 0).work.kv_bytes, 5 * token_bytes);  // positions 3 to 7
  EXPECT_EQ(Find("attention", 0).work.operations, 4 * (4 + 4) * kQueries);
  EXPECT_EQ(Find("attention", 1).work.kv_bytes, 8 * token_bytes);
}

TEST_F(PassProfileTest, LongPromptsReachTheMlpInPieces) {
  Load("llama");
  TestCache cache(*model_, 32);
  BlockTable table;
  AppendTokens(*model_, cache, table, std::vector<int32_t>(600, 1));
  std::map<std::string, std::vector<int64_t>> rows;
  for (const OperatorRecord& record : profiler_.records()) {
    if (record.layer == 0) rows[record.name].push_back(record.rows);
  }
  EXPECT_THAT(rows["gate_up"], ElementsAre(128, 128, 128, 128, 88));
  EXPECT_THAT(rows["down"], ElementsAre(128, 128, 128, 128, 88));
  EXPECT_THAT(rows["qkv"], ElementsAre(600));
}

TEST_F(PassProfileTest, TheSameLogitsWithAndWithout) {
  Load("llama");
  TestCache cache(*model_, 4);
  BlockTable table, again;
  const std::vector<float> with = AppendTokens(*model_, cache, table, {1, 2, 3});
  model_->SetProfiler(nullptr);
  const size_t before = profiler_.records().size();
  EXPECT_EQ(AppendTokens(*model_, cache, again, {1, 2, 3}), with);
  EXPECT_EQ(profiler_.records().size(), before);
}

}  // namespace
}  // namespace pith
