// The attention of a pass cut into tasks for the pool. Any thread may compute any task; the bits are the same (kernels/attention.h).
#pragma once

#include <cstdint>
#include <vector>

#include "model/decoder_config.h"
#include "model/forward_batch.h"

namespace pith {

// A tile of rows of one sequence with one KV head: all tokens the rows see, or, when the tile is split, one partition of them.
struct AttentionTask {
  int32_t sequence = 0;
  int32_t kv_head = 0;
  int64_t row_begin = 0, row_end = 0;              // of the sequence's rows
  int64_t partition_begin = 0, partition_end = 0;  // of kAttentionPartition tokens
  int32_t split = -1;                              // which SplitTile, or -1
};

// A tile whose tokens several tasks share. Each leaves its states; who finishes last combines them.
struct SplitTile {
  int64_t state_offset = 0;  // floats into Workspace::attention_states()
  int64_t partition_begin = 0;
  int32_t num_tasks = 0;
};

// The tasks of every layer with the same window, those with the most to read first, so that threads finish together.
struct AttentionPlan {
  int64_t window = 0;
  std::vector<AttentionTask> tasks;
  std::vector<SplitTile> splits;
  std::vector<int32_t> unfinished;  // [splits] tasks of a tile still at work; set anew for every layer, counted down atomically
  int64_t state_floats = 0;
};

// Tiles that would keep one thread busy while others wait (more than a quarter of a thread's share of the pass) are split.
AttentionPlan PlanAttention(const ForwardBatch& batch, const DecoderConfig& config, int64_t window, int num_threads);

// One plan per window that the layers of a model have.
std::vector<AttentionPlan> PlanAttention(const ForwardBatch& batch, const DecoderConfig& config, int num_threads);

}  // namespace pith
