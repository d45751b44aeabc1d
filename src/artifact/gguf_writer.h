// Writes GGUF version 3: metadata, tensor table, and the data of each tensor, which may come in any order. The file appears under its name
// at Commit, or not at all. What the tensors of a model are called is gguf_export.h's matter. Source: ggml docs/gguf.md;
// docs/formats/gguf.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "artifact/gguf_metadata.h"
#include "base/file.h"
#include "quantization/formats/gguf_blocks.h"
#include "tensor/tensor.h"

namespace pith {

// The key-value section, in the order of the calls.
class GgufMetadataWriter {
 public:
  void AddU32(absl::string_view key, uint32_t value);
  void AddF32(absl::string_view key, float value);
  void AddBool(absl::string_view key, bool value);
  void AddString(absl::string_view key, absl::string_view value);
  void AddStrings(absl::string_view key, absl::Span<const std::string> values);
  void AddInts(absl::string_view key, absl::Span<const int32_t> values);
  void AddFloats(absl::string_view key, absl::Span<const float> values);

  const std::string& bytes() const { return bytes_; }
  int64_t count() const { return count_; }

 private:
  void AddKey(absl::string_view key, GgufValueType type);
  void AddArrayKey(absl::string_view key, GgufValueType element_type, size_t count);

  std::string bytes_;
  int64_t count_ = 0;
};

struct GgufTensorSpec {
  std::string name;
  const GgufType* type = nullptr;
  Shape shape;  // rows first
};

// Not thread-safe.
class GgufWriter {
 public:
  // Refuses a path that exists. Errors: kPermissionDenied (exists, cannot create), kInternal (a name twice or of a length that readers
  // refuse, rows that are not whole blocks), kAborted (no space, I/O).
  static absl::StatusOr<GgufWriter> Create(const std::string& path, const GgufMetadataWriter& metadata,
                                           std::vector<GgufTensorSpec> tensors);

  // All bytes of a declared tensor, once. Errors: kInternal, kAborted.
  absl::Status Write(absl::string_view name, absl::Span<const uint8_t> bytes);
  // Errors: kInternal naming a tensor that was not written; kAborted.
  absl::Status Commit();

  uint64_t file_size() const { return file_size_; }

 private:
  struct Place {
    uint64_t begin = 0, size = 0;
    bool written = false;
  };

  explicit GgufWriter(AtomicFileWriter file) : file_(std::move(file)) {}

  AtomicFileWriter file_;
  absl::flat_hash_map<std::string, Place> places_;
  uint64_t file_size_ = 0;
};

}  // namespace pith
