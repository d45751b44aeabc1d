#include "cli/workload.h"

#include "gtest/gtest.h"

namespace pith {
namespace {

// Remembers the batches it was given; computes nothing.
class RecordingModel : public DecoderModel {
 public:
  RecordingModel() {
    config_.vocab_size = 11;
    config_.max_position_embeddings = 4096;
    for (const auto& [name, bytes] :
         {std::pair("model.embed_tokens", 30), std::pair("model.layers.0.mlp.down_proj", 63), std::pair("lm_head", 7)}) {
      data_path_.push_back({.name = name, .resident_bytes = bytes});
    }
  }
  const DecoderConfig& config() const override { return config_; }
  KvCacheSpec MakeKvSpec(int64_t blocks) const override {
    return {.num_layers = 1, .num_kv_heads = 1, .head_dim = 8, .num_blocks = blocks};
  }
  const std::vector<TensorDataPath>& data_path() const override { return data_path_; }
  std::string DataPathName() const override { return ""; }
  int64_t resident_weight_bytes() const override { return 100; }
  absl::Status Forward(const ForwardBatch& batch, KvStorage&, absl::Span<float> logits) override {
    EXPECT_EQ(logits.size(), batch.logits_rows.size() * 11);
    batches.push_back(batch);
    return absl::OkStatus();
  }
  void SetObserver(LayerObserver*) override {}
  void SetProfiler(Profiler*) override {}

  std::vector<ForwardBatch> batches;

 private:
  DecoderConfig config_;
  std::vector<TensorDataPath> data_path_;
};

TEST(WorkloadTest, PassesOfAtMost512RowsWithTheLogitsOfTheLastRow) {
  RecordingModel model;
  auto workload = Workload::Create(model, 2, 700);
  ASSERT_TRUE(workload.ok()) << workload.status();
  ASSERT_TRUE(workload->Advance(600).ok());
  ASSERT_EQ(model.batches.size(), 2u);
  EXPECT_EQ(model.batches[0].num_rows(), 2 * 512);
  EXPECT_EQ(model.batches[0].logits_rows, (std::vector<int32_t>{511, 1023}));
  EXPECT_EQ(model.batches[1].num_rows(), 2 * 88);
  EXPECT_EQ(model.batches[1].sequences[1].first_position, 512);
  EXPECT_EQ(model.batches[1].sequences[1].row_begin, 88);
}

TEST(WorkloadTest, APassStreamsEverythingButTheEmbedding) { EXPECT_EQ(StreamedWeightBytes(RecordingModel()), 70); }

TEST(WorkloadTest, AllLogitsAndTruncation) {
  RecordingModel model;
  auto workload = Workload::Create(model, 1, 40);
  ASSERT_TRUE(workload->Advance(30).ok());
  workload->Truncate(20);
  ASSERT_TRUE(workload->Advance(3, LogitsRows::kAll).ok());
  EXPECT_EQ(model.batches[1].sequences[0].first_position, 20);
  EXPECT_EQ(model.batches[1].logits_rows, (std::vector<int32_t>{0, 1, 2}));
  for (const int32_t token : model.batches[0].token_ids) EXPECT_LT(token, 11);
}

TEST(CheckKvCacheFits, ComparesWholeBlocksOfAllSequencesWithWhatIsFree) {
  const RecordingModel model;  // 2 * 8 * 2 bytes a token
  constexpr int64_t kNeeded = 64 * 1'000'000 * 32;
  EXPECT_TRUE(CheckKvCacheFits(model, 64, 1'000'000, std::nullopt, kNeeded).ok());
  EXPECT_TRUE(CheckKvCacheFits(model, 64, 1'000'000, KvDtype::kInt8, kNeeded).ok());
  EXPECT_TRUE(CheckKvCacheFits(model, 64, 1'000'000, std::nullopt, 0).ok());
  const absl::Status status = CheckKvCacheFits(model, 64, 1'000'000, std::nullopt, kNeeded - 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "KV cache of 64 sequences of 1000000 tokens: expected 2.05 GB of free memory, found 2.05 GB");
  EXPECT_FALSE(CheckKvCacheFits(model, 1, 1, std::nullopt, kBlockSizeTokens * 32 - 1).ok());
}

}  // namespace
}  // namespace pith
