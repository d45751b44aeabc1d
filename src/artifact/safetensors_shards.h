// The safetensors of a model directory as one set of tensors: model.safetensors, or the shards that model.safetensors.index.json names.
// The index must match the shards exactly, and may only name plain files inside the directory.
// Source: the sharding convention of transformers; docs/formats/safetensors.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "artifact/safetensors.h"

namespace pith {

inline constexpr char kSafetensorsFileName[] = "model.safetensors";
inline constexpr char kSafetensorsIndexName[] = "model.safetensors.index.json";

// "model-00002-of-00005.safetensors"
std::string ShardFileName(int64_t shard, int64_t num_shards);

// weight_map of an index: tensor name -> shard file name. Errors: kDataLoss for anything but {"metadata"?: {...}, "weight_map": {name:
// file}} or a file name that could leave the directory (separators, "..", control characters) or does not end in ".safetensors".
absl::StatusOr<std::map<std::string, std::string>> ParseSafetensorsIndex(absl::string_view text);
// The text of an index, as transformers writes it.
std::string MakeSafetensorsIndex(const std::map<std::string, std::string>& weight_map, uint64_t total_size);

// One stored tensor and the file it lies in; borrowed from SafetensorsShards.
struct ShardedTensor {
  const SafetensorsFile* file = nullptr;
  const SafetensorsTensor* tensor = nullptr;
};

// Movable. Thread-safe to read.
class SafetensorsShards {
 public:
  // Errors: kNotFound when there is neither file nor index; kDataLoss when there are both, when the index and the shards disagree, and
  // those of SafetensorsFile::Open.
  static absl::StatusOr<SafetensorsShards> Open(const std::string& directory);

  // Of all shards, sorted by name.
  absl::Span<const ShardedTensor> tensors() const { return tensors_; }
  absl::Span<const std::unique_ptr<SafetensorsFile>> files() const { return files_; }
  // A null tensor when absent.
  ShardedTensor Find(absl::string_view name) const;

 private:
  SafetensorsShards() = default;
  absl::Status AddFile(const std::string& path);
  absl::Status AddIndexedFiles(const std::string& directory, const std::map<std::string, std::string>& weight_map);

  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::vector<ShardedTensor> tensors_;
  absl::flat_hash_map<absl::string_view, size_t> index_;  // name -> position in tensors_; keys point into files_
};

}  // namespace pith
