#include "model/memory_forecast.h"

#include "gtest/gtest.h"
#include "model/decoder_model.h"
#include "model/synthetic_artifact.h"
#include "model/test_sequence.h"

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

// `rows` rows of one sequence from position `first` on, and the logits of the last `logits` of them.
ForwardBatch Pass(int64_t rows, int64_t first, int64_t logits) {
  ForwardBatch batch{.token_ids = std::vector<int32_t>(rows, 1), .sequences = {{.num_rows = rows, .first_position = first}}};
  for (int64_t r = rows - logits; r < rows; ++r) batch.logits_rows.push_back(static_cast<int32_t>(r));
  return batch;
}

class WorkspaceForecastTest : public testing::Test {
 protected:
  // Of all passes, each the first of a model.
  void ExpectForecastIsActual(const ArtifactReader& artifact, const std::string& name) {
    for (ForwardBatch batch : {Pass(512, 0, 1), Pass(512, 1000, 512), Pass(1, 2047, 1), Pass(7, 0, 0)}) {
      const auto forecast = ForecastWorkspaceBytes(artifact, MakeComputeContext(&pool_, DetectIsa()), batch);
      ASSERT_TRUE(forecast.ok()) << forecast.status();
      const auto model = DecoderModel::Load(artifact, {.pool = &pool_, .isa = DetectIsa()});
      ASSERT_TRUE(model.ok()) << model.status();
      TestCache cache(**model, 64);
      BlockTable table;
      ASSERT_TRUE(cache.pool.Grow(table, batch.sequences[0].first_position + batch.num_rows()).ok());
      batch.sequences[0].blocks = &table;
      std::vector<float> logits(batch.logits_rows.size() * (*model)->config().vocab_size);
      ASSERT_TRUE((*model)->Forward(batch, cache.storage, absl::MakeSpan(logits)).ok());
      EXPECT_EQ(*forecast, (*model)->workspace_bytes())
          << name << ", " << batch.num_rows() << " rows from " << batch.sequences[0].first_position << " on";
    }
  }
  // A model with room for groups of 128 and for 2048 tokens.
  static std::unique_ptr<SyntheticArtifact> Artifact(const std::string& model_type, bool tied) {
    Json config = TinyConfig(model_type, tied);
    config.update({{"hidden_size", 128}, {"intermediate_size", 384}, {"head_dim", 32}, {"max_position_embeddings", 2048}});
    return SyntheticArtifact::Random(config, 1);
  }
  ThreadPool pool_{2};
};

TEST_F(WorkspaceForecastTest, EveryArchitecture) {
  for (const char* model_type : {"llama", "qwen2", "qwen3", "gemma3_text"}) ExpectForecastIsActual(*Artifact(model_type, true), model_type);
}

TEST_F(WorkspaceForecastTest, EveryFormOfInput) {
  const QuantizationArgs token{.strategy = QuantizationStrategy::kToken, .dynamic = true};
  QuantizationArgs outliers = token, columns = token, fp8 = token;
  outliers.outlier_threshold = columns.outlier_threshold = 6;
  columns.fixed_outliers = true;
  fp8.type = QuantizationType::kFloat;
  struct Form {
    const char* name;
    int bits;
    int64_t group_size;  // 0: per channel
    std::optional<InputQuantization> input;
  };
  for (const Form& form :
       {Form{"int16 in groups of 32", 4, 32, {}}, Form{"int16 in groups of 128", 8, 128, {}},
        Form{"int8 per group", 4, 32, InputQuantization{token}}, Form{"int8 per token", 8, 0, InputQuantization{token}},
        Form{"LLM_INT8", 8, 0, InputQuantization{outliers}}, Form{"LLM_INT8, columns", 8, 0, InputQuantization{columns, 0, {1, 2, 5}}},
        Form{"fp8", 8, 0, InputQuantization{fp8}}}) {
    for (const bool tied : {true, false}) {
      const auto artifact = Artifact("llama", tied);
      const bool is_fp8 = form.input.has_value() && form.input->args.type == QuantizationType::kFloat;
      artifact->QuantizeLayers(form.bits, form.group_size, is_fp8 ? QuantizationType::kFloat : QuantizationType::kInt);
      if (form.input.has_value()) artifact->SetInput(*form.input);
      ExpectForecastIsActual(*artifact, form.name);
    }
  }
}

TEST_F(WorkspaceForecastTest, GrowsWithRowsUpToTheMlpThreadsAndSharedTokens) {
  const auto artifact = Artifact("llama", true);
  const auto bytes = [&](const ForwardBatch& batch, int threads = 1) {
    ThreadPool pool(threads);
    return *ForecastWorkspaceBytes(*artifact, MakeComputeContext(&pool, Isa::kScalar), batch);
  };
  const int64_t one = bytes(Pass(1, 0, 1)), two = bytes(Pass(2, 0, 1));
  EXPECT_GT(two, one);
  EXPECT_EQ(bytes(Pass(3, 0, 1)) - two, two - one);
  EXPECT_LT(bytes(Pass(1025, 0, 1)) - bytes(Pass(1024, 0, 1)), two - one);
  EXPECT_GT(bytes(Pass(1, 0, 1), 2), one);
  EXPECT_EQ(bytes(Pass(1, 2000, 1)), one);
  EXPECT_GT(bytes(Pass(1, 2000, 1), 2), bytes(Pass(1, 0, 1), 2));
}

}  // namespace
}  // namespace pith
