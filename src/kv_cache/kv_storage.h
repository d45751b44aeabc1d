// The bytes of the paged KV cache: per layer a key and a value array [num_blocks, num_kv_heads] of kBlockSizeTokens tokens of one head in
// one of the formats of kernels/attention.h (docs/formats/kv_cache.md).
// Written and read through the kernels' params; sequences touch disjoint blocks. Movable.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/attention.h"
#include "tensor/tensor.h"

namespace pith {

absl::string_view KvDtypeName(KvDtype dtype);                 // "bf16", "int8", "fp8"
std::optional<KvDtype> ParseKvDtype(absl::string_view name);  // the inverse; nullopt for any other

struct KvCacheSpec {
  int64_t num_layers = 0, num_kv_heads = 0, head_dim = 0;
  int64_t num_blocks = 0;

  KvDtype dtype = KvDtype::kBf16;

  int64_t bytes_per_token() const;  // keys and values of all layers, with scales
  int64_t block_stride() const;     // bytes between blocks of one layer
  int64_t head_stride() const;      // bytes between KV heads of one block
};

class KvStorage {
 public:
  // Errors: kResourceExhausted when the memory cannot be had.
  static absl::StatusOr<KvStorage> Create(const KvCacheSpec& spec);
  const KvCacheSpec& spec() const { return spec_; }
  uint8_t* key(int64_t layer);  // first byte of the layer's keys
  uint8_t* value(int64_t layer);
  int64_t bytes() const;

 private:
  KvCacheSpec spec_;
  std::vector<AlignedBuffer> layers_;  // keys then values
};

}  // namespace pith
