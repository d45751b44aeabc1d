#include "model/attention_plan.h"

#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/attention.h"

namespace pith {
namespace {

DecoderConfig Config(int64_t num_kv_heads) {
  DecoderConfig config;
  config.num_heads = 2 * num_kv_heads;
  config.num_kv_heads = num_kv_heads;
  config.head_dim = 16;
  return config;
}

// Every (sequence, head, row, partition the row's tile sees) is computed exactly once.
void ExpectCoversEverythingOnce(const ForwardBatch& batch, const DecoderConfig& config, const AttentionPlan& plan) {
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, int> seen;
  int64_t previous_cost = std::numeric_limits<int64_t>::max();
  std::vector<int32_t> tasks_of_split(plan.splits.size());
  for (const AttentionTask& task : plan.tasks) {
    const SequenceSlice& slice = batch.sequences[static_cast<size_t>(task.sequence)];
    EXPECT_LE(task.row_end - task.row_begin, kAttentionTileRows);
    for (int64_t r = task.row_begin; r < task.row_end; ++r) {
      for (int64_t partition = task.partition_begin; partition < task.partition_end; ++partition) {
        ++seen[{task.sequence, task.kv_head, r, partition}];
      }
    }
    const int64_t begin = std::max(AttentionFirstToken(slice.first_position + task.row_begin, plan.window),
                                   task.partition_begin * kAttentionPartition);
    const int64_t end = std::min(slice.first_position + task.row_end, task.partition_end * kAttentionPartition);
    EXPECT_LT(begin, end);
    const int64_t cost = (task.row_end - task.row_begin) * (end - begin);
    EXPECT_LE(cost, previous_cost);
    previous_cost = cost;
    if (task.split >= 0) ++tasks_of_split[static_cast<size_t>(task.split)];
  }
  for (size_t i = 0; i < plan.splits.size(); ++i) EXPECT_EQ(plan.splits[i].num_tasks, tasks_of_split[i]);
  EXPECT_EQ(plan.unfinished.size(), plan.splits.size());
  for (size_t s = 0; s < batch.sequences.size(); ++s) {
    const SequenceSlice& slice = batch.sequences[s];
    for (int64_t r = 0; r < slice.num_rows; ++r) {
      const int64_t position = slice.first_position + r;
      const int64_t first = AttentionFirstToken(position, plan.window) / kAttentionPartition;
      for (int64_t head = 0; head < config.num_kv_heads; ++head) {
        for (int64_t partition = first; partition < AttentionPartitionEnd(position); ++partition) {
          EXPECT_EQ((seen[{static_cast<int64_t>(s), head, r, partition}]), 1);
        }
      }
    }
  }
}

TEST(PlanAttention, CoversEveryRowHeadAndPartitionOnceAndStartsWithTheLongest) {
  ForwardBatch batch;
  batch.sequences = {{.row_begin = 0, .num_rows = 37, .first_position = 5},
                     {.row_begin = 37, .num_rows = 1, .first_position = 5000},
                     {.row_begin = 38, .num_rows = 3, .first_position = 1022},
                     {.row_begin = 41, .num_rows = 16, .first_position = 0}};
  for (const int64_t window : {0, 20, 700}) {
    for (const int threads : {1, 2, 8}) {
      const DecoderConfig config = Config(3);
      const AttentionPlan plan = PlanAttention(batch, config, window, threads);
      EXPECT_EQ(plan.window, window);
      ExpectCoversEverythingOnce(batch, config, plan);
      if (threads == 1) {
        EXPECT_TRUE(plan.splits.empty());
      }
    }
  }
}

// One sequence, one KV head: without a split the second thread would wait.
TEST(PlanAttention, SplitsALongSequenceForAllThreads) {
  ForwardBatch batch;
  batch.sequences = {{.num_rows = 1, .first_position = 8191}};
  const AttentionPlan plan = PlanAttention(batch, Config(1), 0, 2);
  EXPECT_EQ(plan.tasks.size(), 8192u / kAttentionPartition);
  ASSERT_EQ(plan.splits.size(), 1u);
  EXPECT_EQ(plan.state_floats, 8192 / kAttentionPartition * 2 * AttentionStateFloats(16));
}

TEST(PlanAttention, KeepsTilesWholeWhereThereAreEnough) {
  ForwardBatch batch;
  batch.sequences = {{.num_rows = 512, .first_position = 8000}};
  const AttentionPlan prefill = PlanAttention(batch, Config(1), 0, 2);
  EXPECT_TRUE(prefill.splits.empty());
  EXPECT_EQ(prefill.tasks.size(), 32u);
  batch.sequences.clear();
  for (int64_t s = 0; s < 16; ++s) batch.sequences.push_back({.row_begin = s, .num_rows = 1, .first_position = 4000});
  EXPECT_TRUE(PlanAttention(batch, Config(1), 0, 2).splits.empty());
}

TEST(PlanAttention, OnePlanPerWindow) {
  ForwardBatch batch;
  batch.sequences = {{.num_rows = 1, .first_position = 3000}};
  DecoderConfig config = Config(1);
  config.layer_window = {512, 512, 0, 512, 0};
  const std::vector<AttentionPlan> plans = PlanAttention(batch, config, 2);
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0].window, 512);
  EXPECT_EQ(plans[0].tasks.size(), 2u);
  EXPECT_EQ(plans[1].window, 0);
  EXPECT_EQ(plans[1].tasks.size(), 6u);
}

}  // namespace
}  // namespace pith
