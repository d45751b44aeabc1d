// Which blocks of the paged KV cache are free, and how many tables hold each: bookkeeping only, no storage.
// A block holds kBlockSizeTokens consecutive tokens of one sequence, for every layer. Not thread-safe (the engine thread owns it).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace pith {

constexpr int64_t kBlockSizeTokens = 32;

// The blocks of one sequence in order; token t lies in blocks[t / kBlockSizeTokens].
struct BlockTable {
  std::vector<int32_t> blocks;
  int64_t num_tokens = 0;  // tokens whose keys and values are stored
  int64_t capacity() const { return static_cast<int64_t>(blocks.size()) * kBlockSizeTokens; }
};

class BlockPool {
 public:
  explicit BlockPool(int64_t num_blocks);

  int64_t num_blocks() const { return static_cast<int64_t>(ref_count_.size()); }
  int64_t num_free() const { return static_cast<int64_t>(free_.size()); }
  int32_t ref_count(int32_t block) const;

  // Blocks for `num_tokens` tokens in all; grows `table` or leaves it unchanged. num_tokens of the table stays: whoever stores the keys
  // and values counts them. Errors: kResourceExhausted with needed and free counts.
  absl::Status Grow(BlockTable& table, int64_t num_tokens);
  // Drops tokens and capacity from the end (speculation's rollback) and frees blocks no longer used. Never cut below a prefix that was
  // shared: the next append would write into a block that others read.
  void Truncate(BlockTable& table, int64_t num_tokens);
  // Gives every block back; the table becomes empty.
  void Release(BlockTable& table);
  // A second holder of the first num_tokens tokens; whole blocks are shared (num_tokens is rounded down to a block boundary).
  BlockTable Share(const BlockTable& table, int64_t num_tokens);

  static int64_t BlocksForTokens(int64_t num_tokens) { return (num_tokens + kBlockSizeTokens - 1) / kBlockSizeTokens; }

 private:
  std::vector<int32_t> ref_count_;  // per block; 0 = free
  std::vector<int32_t> free_;       // LIFO
};

}  // namespace pith
