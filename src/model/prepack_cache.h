// One file of prepacked weights: a safetensors file of byte tensors, read straight into the memory that kernels read.
//
//   "<layer>.<i>"   the bytes of matrix i of a layer; "<layer>.table": bf16 rows
//   "description"   what they are: prepack_description.h
//   "checksums"     one checksum (base/checksum.h) per 4 MiB of every other tensor, in file order
//   metadata        "format": "pith-prepack", "key": PrepackKey
//
// A file is used only if its key is the one asked for and every byte that is read has its checksum; whatever else is found is an error, and
// the caller loads the weights themselves. docs/prepack_cache.md.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/checksum.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "model/prepack_description.h"

namespace pith {

// Not thread-safe.
class PrepackCache {
 public:
  // Reads header, checksums and description. Errors: kNotFound; kDataLoss for a damaged or foreign file and for another key; kAborted
  // (I/O).
  static absl::StatusOr<PrepackCache> Open(const std::string& path, absl::string_view key);

  // By the name of the layer's first part. Errors: kDataLoss when absent.
  absl::StatusOr<const PrepackedLayer*> Find(const std::string& layer) const;

  // Notes that `out` is to be filled with the bytes of matrix `index` of a layer, or of its table. Errors: kDataLoss for another size.
  absl::Status RequestMatrix(const std::string& layer, size_t index, absl::Span<uint8_t> out);
  absl::Status RequestTable(const std::string& layer, absl::Span<uint8_t> out);

  // Reads everything requested, split into pieces over the pool. `progress(done, total)` in bytes, one call at a time; may be empty.
  // Errors: kDataLoss for a byte that is not what was written, kAborted (I/O), kCancelled after an interrupt.
  absl::Status Read(ThreadPool& pool, const std::function<void(int64_t, int64_t)>& progress);

 private:
  struct Stored {
    uint64_t begin = 0, size = 0;  // in the file
    size_t first_checksum = 0;     // index into checksums_
  };
  struct Piece {
    uint64_t begin = 0;  // in the file
    size_t checksum = 0;
    absl::Span<uint8_t> out;
  };

  explicit PrepackCache(RandomAccessFile file) : file_(std::move(file)) {}
  absl::Status ReadHeader(absl::string_view key);
  absl::Status ReadDescription();
  absl::Status Request(const std::string& tensor, absl::Span<uint8_t> out);
  void AddPieces(const Stored& stored, absl::Span<uint8_t> out);
  absl::Status ReadPiece(const Piece& piece) const;

  RandomAccessFile file_;
  absl::flat_hash_map<std::string, Stored> tensors_;
  std::vector<Checksum> checksums_;
  PrepackDescription description_;
  std::vector<Piece> pieces_;
};

// A layer to store: its description and its bytes, borrowed.
struct PrepackedBytes {
  std::vector<absl::Span<const uint8_t>> matrices;
  absl::Span<const uint8_t> table;  // where there are no matrices
};

// Writes the file, whole or not at all, and returns its size. `bytes` has an entry per layer of `description`. Errors: kPermissionDenied,
// kAborted (no space, I/O).
absl::StatusOr<uint64_t> WritePrepackCache(const std::string& path, absl::string_view key, const PrepackDescription& description,
                                           const std::map<std::string, PrepackedBytes>& bytes, ThreadPool& pool);

}  // namespace pith
