#include "kv_cache/kv_storage.h"

#include <unistd.h>

#include <new>

#include "base/check.h"
#include "base/status.h"
#include "kv_cache/block_pool.h"

namespace pith {
namespace {

// Bytes of one array (keys or values of one layer), or -1 when the spec makes no sense or the whole passes 2^62.
int64_t ArrayBytes(const KvCacheSpec& spec) {
  if (spec.num_layers <= 0 || spec.num_kv_heads <= 0 || spec.head_dim <= 0 || spec.num_blocks <= 0) return -1;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(spec.head_dim, KvElementBytes(spec.dtype), &bytes) || bytes > (int64_t{1} << 62)) return -1;
  bytes += KvScaleBytes(spec.dtype);
  for (const int64_t factor : {kBlockSizeTokens, spec.num_kv_heads, spec.num_blocks, 2 * spec.num_layers}) {
    if (__builtin_mul_overflow(bytes, factor, &bytes) || bytes > (int64_t{1} << 62)) return -1;
  }
  return bytes / (2 * spec.num_layers);
}

int64_t PhysicalMemoryBytes() { return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE); }

}  // namespace

absl::string_view KvDtypeName(KvDtype dtype) {
  switch (dtype) {
    case KvDtype::kBf16: return "bf16";
    case KvDtype::kInt8: return "int8";
    case KvDtype::kFp8: return "fp8";
  }
  return "unknown";
}

std::optional<KvDtype> ParseKvDtype(absl::string_view name) {
  for (int dtype = 0; dtype < kNumKvDtypes; ++dtype) {
    if (KvDtypeName(static_cast<KvDtype>(dtype)) == name) return static_cast<KvDtype>(dtype);
  }
  return std::nullopt;
}

int64_t KvCacheSpec::block_stride() const { return num_kv_heads * head_stride(); }
int64_t KvCacheSpec::head_stride() const { return kBlockSizeTokens * (head_dim * KvElementBytes(dtype) + KvScaleBytes(dtype)); }
int64_t KvCacheSpec::bytes_per_token() const { return 2 * num_layers * block_stride() / kBlockSizeTokens; }

absl::StatusOr<KvStorage> KvStorage::Create(const KvCacheSpec& spec) {
  const int64_t array_bytes = ArrayBytes(spec);
  if (array_bytes < 0) {
    return UsageError("KV cache: expected positive sizes under 2^62 bytes in all, found ", spec.num_layers, " layers, ", spec.num_kv_heads,
                      " KV heads of ", spec.head_dim, ", ", spec.num_blocks, " blocks");
  }
  // The kernel would grant the addresses and kill the process on first touch, so refuse what cannot be had.
  const int64_t total = array_bytes * 2 * spec.num_layers;
  if (total > PhysicalMemoryBytes()) {
    return OutOfMemoryError("KV cache of ", spec.num_blocks * kBlockSizeTokens, " tokens: expected ", total, " bytes of memory, found ",
                            PhysicalMemoryBytes(), " in this machine");
  }
  KvStorage storage;
  storage.spec_ = spec;
  try {
    for (int64_t i = 0; i < 2 * spec.num_layers; ++i) storage.layers_.emplace_back(static_cast<size_t>(array_bytes));
  } catch (const std::bad_alloc&) {
    return OutOfMemoryError("KV cache of ", spec.num_blocks * kBlockSizeTokens, " tokens: could not allocate ", total, " bytes");
  }
  return storage;
}

uint8_t* KvStorage::key(int64_t layer) {
  DCHECK(layer >= 0 && layer < spec_.num_layers);
  return reinterpret_cast<uint8_t*>(layers_[layer].data());
}

uint8_t* KvStorage::value(int64_t layer) {
  DCHECK(layer >= 0 && layer < spec_.num_layers);
  return reinterpret_cast<uint8_t*>(layers_[spec_.num_layers + layer].data());
}

int64_t KvStorage::bytes() const {
  int64_t total = 0;
  for (const AlignedBuffer& layer : layers_) total += static_cast<int64_t>(layer.size());
  return total;
}

}  // namespace pith
