#include "model/cached_attention.h"

#include <algorithm>
#include <atomic>

#include "base/check.h"

namespace pith {
namespace {

AttentionParams TileParams(const ForwardPass& pass, int64_t layer, int64_t window, const AttentionTask& task) {
  const DecoderConfig& config = pass.config;
  const QkvLayout layout(config);
  const SequenceSlice& slice = pass.batch.sequences[static_cast<size_t>(task.sequence)];
  return {.query = pass.workspace.qkv() + slice.row_begin * layout.row,
          .query_stride = layout.row,
          .out = pass.workspace.attention() + slice.row_begin * layout.queries,
          .out_stride = layout.queries,
          .num_rows = slice.num_rows,
          .first_position = slice.first_position,
          .num_heads = config.num_heads,
          .num_kv_heads = config.num_kv_heads,
          .head_dim = config.head_dim,
          .key_cache = pass.kv.key(layer),
          .value_cache = pass.kv.value(layer),
          .block_table = slice.blocks->blocks.data(),
          .block_size = kBlockSizeTokens,
          .block_stride = pass.kv.spec().block_stride(),
          .head_stride = pass.kv.spec().head_stride(),
          .window = window,
          .scale = config.attention_scale,
          .kv_head_begin = task.kv_head,
          .kv_head_end = task.kv_head + 1,
          .row_begin = task.row_begin,
          .row_end = task.row_end};
}

void RunTask(ForwardPass& pass, int64_t layer, AttentionPlan& plan, const AttentionTask& task, int thread) {
  AttentionParams params = TileParams(pass, layer, plan.window, task);
  params.scratch = pass.workspace.attention_scratch(thread);
  const OperatorEntry& kernel = *pass.attention.attention;
  if (task.split < 0) return kernel.attention(params);
  const auto split = static_cast<size_t>(task.split);
  params.partial = pass.workspace.attention_states() + plan.splits[split].state_offset;
  params.partial_begin = plan.splits[split].partition_begin;
  params.partition_begin = task.partition_begin;
  params.partition_end = task.partition_end;
  kernel.attention(params);
  // Acquire: whoever counts down to zero sees the states of all.
  if (std::atomic_ref(plan.unfinished[split]).fetch_sub(1, std::memory_order_acq_rel) == 1) kernel.attention_combine(params);
}

}  // namespace

void AppendKeys(ForwardPass& pass, int64_t layer, int64_t begin, int64_t end) {
  const QkvLayout layout(pass.config);
  const KvScales* scales = pass.kv_scales == nullptr ? nullptr : &(*pass.kv_scales)[static_cast<size_t>(layer)];
  for (const SequenceSlice& slice : pass.batch.sequences) {
    const int64_t first = std::max(begin, slice.row_begin), last = std::min(end, slice.row_begin + slice.num_rows);
    if (first >= last) continue;
    const float* key = pass.workspace.qkv() + first * layout.row + layout.queries;
    pass.attention.kv_append->kv_append({.key = key,
                                         .value = key + layout.keys,
                                         .key_stride = layout.row,
                                         .value_stride = layout.row,
                                         .num_rows = last - first,
                                         .first_position = slice.first_position + first - slice.row_begin,
                                         .num_kv_heads = pass.config.num_kv_heads,
                                         .head_dim = pass.config.head_dim,
                                         .key_cache = pass.kv.key(layer),
                                         .value_cache = pass.kv.value(layer),
                                         .block_table = slice.blocks->blocks.data(),
                                         .block_size = kBlockSizeTokens,
                                         .block_stride = pass.kv.spec().block_stride(),
                                         .head_stride = pass.kv.spec().head_stride(),
                                         .key_scales = scales == nullptr ? nullptr : scales->key.data(),
                                         .value_scales = scales == nullptr ? nullptr : scales->value.data()});
  }
}

void RunCachedAttention(ForwardPass& pass, int64_t layer, int64_t window) {
  const auto plan = std::find_if(pass.attention_plans.begin(), pass.attention_plans.end(),
                                 [&](const AttentionPlan& candidate) { return candidate.window == window; });
  CHECK(plan != pass.attention_plans.end());
  for (size_t i = 0; i < plan->splits.size(); ++i) plan->unfinished[i] = plan->splits[i].num_tasks;
  pass.context.pool->ParallelForDynamic(static_cast<int64_t>(plan->tasks.size()), 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t i = begin; i < end; ++i) RunTask(pass, layer, *plan, plan->tasks[static_cast<size_t>(i)], thread);
  });
}

}  // namespace pith
