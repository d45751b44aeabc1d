#include "model/attention_plan.h"

#include <algorithm>

#include "kernels/attention.h"

namespace pith {
namespace {

constexpr int64_t kTasksPerThread = 4;

struct PlannedTask {
  AttentionTask task;
  int64_t cost = 0;  // rows x tokens
};

// The tokens that rows [row_begin, row_end) of a sequence see.
struct TokenRange {
  int64_t begin, end;
};
TokenRange TokensOf(const SequenceSlice& slice, const AttentionTask& task, int64_t window) {
  return {AttentionFirstToken(slice.first_position + task.row_begin, window), slice.first_position + task.row_end};
}

std::vector<PlannedTask> PlanTiles(const ForwardBatch& batch, int64_t num_kv_heads, int64_t window) {
  std::vector<PlannedTask> tiles;
  for (size_t s = 0; s < batch.sequences.size(); ++s) {
    const SequenceSlice& slice = batch.sequences[s];
    for (int64_t begin = 0; begin < slice.num_rows; begin += kAttentionTileRows) {
      AttentionTask task{
          .sequence = static_cast<int32_t>(s), .row_begin = begin, .row_end = std::min(slice.num_rows, begin + kAttentionTileRows)};
      const TokenRange tokens = TokensOf(slice, task, window);
      task.partition_begin = tokens.begin / kAttentionPartition;
      task.partition_end = AttentionPartitionEnd(tokens.end - 1);
      for (int64_t head = 0; head < num_kv_heads; ++head) {
        task.kv_head = static_cast<int32_t>(head);
        tiles.push_back({task, (task.row_end - begin) * (tokens.end - tokens.begin)});
      }
    }
  }
  return tiles;
}

}  // namespace

AttentionPlan PlanAttention(const ForwardBatch& batch, const DecoderConfig& config, int64_t window, int num_threads) {
  AttentionPlan plan{.window = window};
  const std::vector<PlannedTask> tiles = PlanTiles(batch, config.num_kv_heads, window);
  int64_t total = 0;
  for (const PlannedTask& tile : tiles) total += tile.cost;
  std::vector<PlannedTask> planned;
  for (const auto& [tile, cost] : tiles) {
    const int64_t partitions = tile.partition_end - tile.partition_begin;
    if (num_threads == 1 || partitions == 1 || cost <= total / (kTasksPerThread * num_threads)) {
      planned.push_back({tile, cost});
      continue;
    }
    const TokenRange tokens = TokensOf(batch.sequences[tile.sequence], tile, window);
    for (int64_t partition = tile.partition_begin; partition < tile.partition_end; ++partition) {
      AttentionTask task = tile;
      task.partition_begin = partition;
      task.partition_end = partition + 1;
      task.split = static_cast<int32_t>(plan.splits.size());
      const int64_t begin = std::max(tokens.begin, partition * kAttentionPartition);
      const int64_t end = std::min(tokens.end, (partition + 1) * kAttentionPartition);
      planned.push_back({task, (task.row_end - task.row_begin) * (end - begin)});
    }
    plan.splits.push_back({plan.state_floats, tile.partition_begin, static_cast<int32_t>(partitions)});
    const int64_t queries = (tile.row_end - tile.row_begin) * (config.num_heads / config.num_kv_heads);
    plan.state_floats += partitions * queries * AttentionStateFloats(config.head_dim);
  }
  std::stable_sort(planned.begin(), planned.end(), [](const PlannedTask& a, const PlannedTask& b) { return a.cost > b.cost; });
  for (const PlannedTask& task : planned) plan.tasks.push_back(task.task);
  plan.unfinished.resize(plan.splits.size());
  return plan;
}

std::vector<AttentionPlan> PlanAttention(const ForwardBatch& batch, const DecoderConfig& config, int num_threads) {
  std::vector<AttentionPlan> plans;
  for (const int64_t window : config.layer_window) {
    const bool planned = std::any_of(plans.begin(), plans.end(), [&](const AttentionPlan& plan) { return plan.window == window; });
    if (!planned) plans.push_back(PlanAttention(batch, config, window, num_threads));
  }
  return plans;
}

}  // namespace pith
