// The KV cache's half of a layer: appends keys and values, and attends to them.
#pragma once

#include <cstdint>

#include "model/forward_pass.h"

namespace pith {

// Queries, keys and values of a row lie one after the other in Workspace::qkv().
struct QkvLayout {
  int64_t queries, keys, row;  // floats
  explicit QkvLayout(const DecoderConfig& config)
      : queries(config.num_heads * config.head_dim), keys(config.num_kv_heads * config.head_dim), row(queries + 2 * keys) {}
};

// Stores the keys and values of rows [begin, end) of the batch. Disjoint rows may be stored at the same time.
void AppendKeys(ForwardPass& pass, int64_t layer, int64_t begin, int64_t end);

// From queries and cache to Workspace::attention(), for all rows, on all threads. `window`: of the layer, one that has a plan.
void RunCachedAttention(ForwardPass& pass, int64_t layer, int64_t window);

}  // namespace pith
