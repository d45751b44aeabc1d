// The bytes of the paged KV cache: per layer a key and a value array [num_blocks, num_kv_heads, kBlockSizeTokens, head_dim] of bf16.
// Written and read through the kernels' params; sequences touch disjoint blocks. Movable.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace pith {

struct KvCacheSpec {
  int64_t num_layers = 0, num_kv_heads = 0, head_dim = 0;
  int64_t num_blocks = 0;

  int64_t bytes_per_token() const { return 2 * num_layers * num_kv_heads * head_dim * 2; }  // keys and values, bf16
  int64_t block_stride() const;                                                             // elements between blocks of one layer
  int64_t head_stride() const;                                                              // elements between KV heads of one block
};

class KvStorage {
 public:
  // Errors: kResourceExhausted when the memory cannot be had.
  static absl::StatusOr<KvStorage> Create(const KvCacheSpec& spec);
  const KvCacheSpec& spec() const { return spec_; }
  uint16_t* key(int64_t layer);  // first element of the layer's keys
  uint16_t* value(int64_t layer);
  int64_t bytes() const;

 private:
  KvCacheSpec spec_;
  std::vector<AlignedBuffer> layers_;  // keys then values
};

}  // namespace pith
