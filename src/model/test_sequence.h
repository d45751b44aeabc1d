// For tests only: sequences with their own blocks in a cache, run through a model chunk by chunk.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "base/check.h"
#include "kv_cache/block_pool.h"
#include "kv_cache/kv_storage.h"
#include "model/decoder_model.h"

namespace pith {

// A cache for a model, with the blocks handed out in an order that `skip` shifts (other physical blocks, same tokens).
struct TestCache {
  TestCache(const DecoderModel& model, int64_t num_blocks, int64_t skip = 0, KvDtype dtype = KvDtype::kBf16)
      : storage(*KvStorage::Create(model.KvSpecAs(dtype, num_blocks))), pool(num_blocks) {
    CHECK(pool.Grow(skipped, skip * kBlockSizeTokens).ok());
  }
  KvStorage storage;
  BlockPool pool;
  BlockTable skipped;
};

// Appends `tokens` to the sequence of `table` and returns the logits of every one of them, [tokens, vocab]. Status checks are fatal.
inline std::vector<float> AppendTokens(DecoderModel& model, TestCache& cache, BlockTable& table, absl::Span<const int32_t> tokens) {
  const int64_t rows = static_cast<int64_t>(tokens.size());
  CHECK(cache.pool.Grow(table, table.num_tokens + rows).ok());
  ForwardBatch batch;
  batch.token_ids.assign(tokens.begin(), tokens.end());
  batch.sequences.push_back({.row_begin = 0, .num_rows = rows, .first_position = table.num_tokens, .blocks = &table});
  for (int64_t r = 0; r < rows; ++r) batch.logits_rows.push_back(static_cast<int32_t>(r));
  std::vector<float> logits(rows * model.config().vocab_size);
  CHECK(model.Forward(batch, cache.storage, absl::MakeSpan(logits)).ok());
  table.num_tokens += rows;
  return logits;
}

// All tokens in chunks of at most `chunk` rows.
inline std::vector<float> AppendInChunks(DecoderModel& model, TestCache& cache, BlockTable& table, absl::Span<const int32_t> tokens,
                                         int64_t chunk) {
  std::vector<float> logits;
  for (size_t begin = 0; begin < tokens.size(); begin += chunk) {
    const std::vector<float> part = AppendTokens(model, cache, table, tokens.subspan(begin, chunk));
    logits.insert(logits.end(), part.begin(), part.end());
  }
  return logits;
}

inline int32_t ArgMax(absl::Span<const float> row) { return static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin()); }

// Greedy continuation of `prompt` by `count` tokens.
inline std::vector<int32_t> GreedyTokens(DecoderModel& model, TestCache& cache, absl::Span<const int32_t> prompt, int64_t count) {
  const int64_t vocab = model.config().vocab_size;
  BlockTable table;
  std::vector<float> logits = AppendTokens(model, cache, table, prompt);
  std::vector<int32_t> out;
  while (static_cast<int64_t>(out.size()) < count) {
    out.push_back(ArgMax(absl::MakeConstSpan(logits).last(vocab)));
    logits = AppendTokens(model, cache, table, {out.back()});
  }
  cache.pool.Release(table);
  return out;
}

}  // namespace pith
