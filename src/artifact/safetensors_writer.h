// Writes one safetensors file: all tensors are declared up front, then their bytes come in any order, whole or in parts.
//
//   ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, {{"a", DType::kBF16, {4, 8}}}, {{"format", "pt"}}));
//   RETURN_IF_ERROR(writer.Write("a", bytes));
//   ASSIGN_OR_RETURN(std::string sha256, writer.Commit());
//
// Layout: tensors by element size (largest first), then by name; header padded with spaces to a multiple of 8 bytes, so every tensor
// is aligned for its type. The file appears under its name at Commit or not at all.
// Source: huggingface/safetensors README; docs/formats/safetensors.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "artifact/safetensors.h"
#include "base/file.h"
#include "base/sha256.h"
#include "tensor/tensor.h"

namespace pith {

struct TensorSpec {
  std::string name;
  DType dtype = DType::kBF16;
  Shape shape;
};

struct SafetensorsLayout {
  std::string prefix;                      // header length and header
  std::vector<SafetensorsTensor> tensors;  // in file order, with byte ranges in the file
  uint64_t file_size = 0;
};

// Errors: kInvalidArgument for a repeated or reserved name, or a size that overflows.
absl::StatusOr<SafetensorsLayout> LayOutSafetensors(std::vector<TensorSpec> tensors, const std::map<std::string, std::string>& metadata);

// Not thread-safe.
class SafetensorsWriter {
 public:
  // Errors: those of LayOutSafetensors; kPermissionDenied (cannot create), kAborted (I/O).
  static absl::StatusOr<SafetensorsWriter> Create(const std::string& path, std::vector<TensorSpec> tensors,
                                                  const std::map<std::string, std::string>& metadata);
  SafetensorsWriter(SafetensorsWriter&&) noexcept = default;

  uint64_t file_size() const { return layout_.file_size; }

  // All bytes of one tensor. Errors: kInternal for an undeclared name, a wrong size or a second write; kAborted (I/O).
  absl::Status Write(absl::string_view name, absl::Span<const uint8_t> bytes);
  // Bytes [offset, offset + bytes.size()) of one tensor; parts may come in any order but must not overlap.
  absl::Status WritePart(absl::string_view name, uint64_t offset, absl::Span<const uint8_t> bytes);

  // Syncs, renames, and returns the SHA-256 of the file. It is computed while writing when the bytes came in file order, and by reading
  // the file again otherwise. Errors: kInternal naming a tensor that was not written completely; kAborted, kPermissionDenied.
  absl::StatusOr<std::string> Commit();

 private:
  SafetensorsWriter(std::string path, SafetensorsLayout layout, AtomicFileWriter file)
      : path_(std::move(path)), layout_(std::move(layout)), file_(std::move(file)), hash_(std::make_unique<Sha256>()) {}
  absl::Status WriteAt(uint64_t offset, absl::Span<const uint8_t> bytes);

  std::string path_;
  SafetensorsLayout layout_;
  AtomicFileWriter file_;
  std::unique_ptr<Sha256> hash_;
  uint64_t hashed_bytes_ = 0;                       // prefix of the file that hash_ has seen
  absl::flat_hash_map<std::string, size_t> index_;  // name -> position in layout_.tensors
  std::vector<uint64_t> written_;                   // bytes per tensor
};

}  // namespace pith
