// The rows of one forward pass: consecutive tokens of one or more sequences, concatenated. A plain struct the engine fills.
#pragma once

#include <cstdint>
#include <vector>

#include "kv_cache/block_pool.h"

namespace pith {

struct SequenceSlice {
  int64_t row_begin = 0;               // of the concatenated rows
  int64_t num_rows = 0;                // >= 1
  int64_t first_position = 0;          // position of the first row; keys and values of [0, first_position) are in the cache already
  const BlockTable* blocks = nullptr;  // capacity >= first_position + num_rows; borrowed for the call
};

struct ForwardBatch {
  std::vector<int32_t> token_ids;  // [num_rows], each in [0, vocab_size)
  std::vector<SequenceSlice> sequences;
  std::vector<int32_t> logits_rows;  // rows whose logits are wanted, ascending; may be empty

  int64_t num_rows() const { return static_cast<int64_t>(token_ids.size()); }
};

}  // namespace pith
