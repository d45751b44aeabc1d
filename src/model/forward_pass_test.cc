#include "model/forward_pass.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;

class ValidateBatchTest : public testing::Test {
 protected:
  ValidateBatchTest() {
    config_.vocab_size = 10;
    config_.num_layers = config_.num_kv_heads = 1;
    config_.head_dim = 4;
    config_.max_position_embeddings = 100;
    table_a_.blocks = {0, 1, 2, 3};
    table_b_.blocks = {4};
    batch_.token_ids = {1, 2, 3, 4, 5};
    batch_.sequences = {{.row_begin = 0, .num_rows = 3, .first_position = 97, .blocks = &table_a_},
                        {.row_begin = 3, .num_rows = 2, .first_position = 30, .blocks = &table_b_}};
    batch_.logits_rows = {2, 4};
  }
  absl::Status Validate(int64_t logits_size = 20) const { return ValidateBatch(batch_, config_, kv_, logits_size); }
  void ExpectRefused(const char* what) {
    const absl::Status status = Validate();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  }

  DecoderConfig config_;
  KvCacheSpec kv_{.num_layers = 1, .num_kv_heads = 1, .head_dim = 4, .num_blocks = 5};
  BlockTable table_a_, table_b_;
  ForwardBatch batch_;
};

TEST_F(ValidateBatchTest, AcceptsTheLimits) { EXPECT_TRUE(Validate().ok()) << Validate(); }

TEST_F(ValidateBatchTest, TokenIds) {
  batch_.token_ids[3] = 10;
  ExpectRefused("row 3 of the batch: expected a token id in [0, 10), found 10");
  batch_.token_ids[3] = -1;
  ExpectRefused("found -1");
}

TEST_F(ValidateBatchTest, Positions) {
  batch_.sequences[0].first_position = 98;
  ExpectRefused("sequence 0 of the batch: expected positions below 100 (max_position_embeddings), found 98 + 3 rows");
  batch_.sequences[0].first_position = std::numeric_limits<int64_t>::max();
  ExpectRefused("sequence 0");
  batch_.sequences[0].first_position = -1;
  ExpectRefused("at least 0, found -1");
}

TEST_F(ValidateBatchTest, Blocks) {
  batch_.sequences[1].first_position = 31;
  ExpectRefused("sequence 1 of the batch: expected blocks for 33 tokens, found 32");
  batch_.sequences[1].first_position = 30;
  table_a_.blocks[2] = 5;
  ExpectRefused("expected blocks in [0, 5), found 5");
  table_a_.blocks[2] = 2;
  batch_.sequences[1].blocks = nullptr;
  ExpectRefused("block table, found none");
}

TEST_F(ValidateBatchTest, RowsAndSequencesAgree) {
  batch_.sequences[1].row_begin = 2;
  ExpectRefused("expected row_begin 3, found 2");
  batch_.sequences[1].row_begin = 3;
  batch_.sequences[1].num_rows = 1;
  ExpectRefused("found 5 and 4");
  batch_.sequences[1].num_rows = 0;
  ExpectRefused("at least 1 row");
  batch_ = {};
  EXPECT_EQ(ValidateBatch(batch_, config_, kv_, 0).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ValidateBatchTest, Logits) {
  EXPECT_THAT(std::string(Validate(19).message()), HasSubstr("expected room for 20 floats, found 19"));
  batch_.logits_rows = {2, 2};
  ExpectRefused("ascending");
  batch_.logits_rows = {2, 5};
  ExpectRefused("found 5");
  batch_.logits_rows = {-1, 2};
  ExpectRefused("found -1");
}

TEST_F(ValidateBatchTest, CacheOfAnotherModel) {
  kv_.head_dim = 8;
  ExpectRefused("KV cache: expected 1 layers of 1 heads of 4, found 1 of 1 of 8");
}

TEST(Workspace, KeepsItsBuffersForSmallerBatches) {
  DecoderConfig config;
  config.hidden_size = 8;
  config.intermediate_size = 16;
  config.num_heads = config.num_kv_heads = 1;
  config.head_dim = 8;
  Workspace workspace(config, 2);
  workspace.Reserve(700);
  const float* hidden = workspace.hidden();
  workspace.Reserve(3);
  EXPECT_EQ(workspace.hidden(), hidden);
  std::fill_n(workspace.hidden(), 700 * 8, 1.0f);
  std::fill_n(workspace.gate_up(), kMaxMlpRows * 32, 1.0f);
  EXPECT_EQ(workspace.branch(), nullptr);  // only models with post-norms need it
  EXPECT_GE(workspace.attention_scratch(1) - workspace.attention_scratch(0), AttentionScratchFloats(1, 1, 8));
}

}  // namespace
}  // namespace pith
