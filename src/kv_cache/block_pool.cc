#include "kv_cache/block_pool.h"

#include <algorithm>

#include "base/check.h"
#include "base/status.h"

namespace pith {

BlockPool::BlockPool(int64_t num_blocks) {
  CHECK(num_blocks >= 0);
  ref_count_.assign(num_blocks, 0);
  free_.reserve(num_blocks);
  for (int64_t block = num_blocks - 1; block >= 0; --block) free_.push_back(static_cast<int32_t>(block));
}

int32_t BlockPool::ref_count(int32_t block) const {
  CHECK(block >= 0 && block < num_blocks());
  return ref_count_[block];
}

absl::Status BlockPool::Grow(BlockTable& table, int64_t num_tokens) {
  CHECK(num_tokens >= 0);
  const int64_t missing = BlocksForTokens(num_tokens) - static_cast<int64_t>(table.blocks.size());
  if (missing <= 0) return absl::OkStatus();
  if (missing > num_free()) {
    return OutOfMemoryError("KV cache: expected ", missing, " free blocks of ", kBlockSizeTokens, " tokens, found ", num_free(), " of ",
                            num_blocks());
  }
  for (int64_t i = 0; i < missing; ++i) {
    const int32_t block = free_.back();
    free_.pop_back();
    DCHECK(ref_count_[block] == 0);
    ref_count_[block] = 1;
    table.blocks.push_back(block);
  }
  return absl::OkStatus();
}

void BlockPool::Truncate(BlockTable& table, int64_t num_tokens) {
  CHECK(num_tokens >= 0);
  const size_t kept = static_cast<size_t>(BlocksForTokens(num_tokens));
  while (table.blocks.size() > kept) {
    const int32_t block = table.blocks.back();
    CHECK(ref_count(block) > 0);
    if (--ref_count_[block] == 0) free_.push_back(block);
    table.blocks.pop_back();
  }
  table.num_tokens = std::min(table.num_tokens, num_tokens);
}

void BlockPool::Release(BlockTable& table) { Truncate(table, 0); }

BlockTable BlockPool::Share(const BlockTable& table, int64_t num_tokens) {
  CHECK(num_tokens >= 0 && num_tokens <= table.num_tokens);
  const int64_t shared = num_tokens / kBlockSizeTokens;
  BlockTable copy;
  copy.blocks.assign(table.blocks.begin(), table.blocks.begin() + shared);
  copy.num_tokens = shared * kBlockSizeTokens;
  for (const int32_t block : copy.blocks) {
    CHECK(ref_count(block) > 0);
    ++ref_count_[block];
  }
  return copy;
}

}  // namespace pith
