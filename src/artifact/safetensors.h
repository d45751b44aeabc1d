// Reads safetensors files, strictly: a file is either exactly what the format's rules allow, or refused with the rule it breaks.
//
//   ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open("model.safetensors"));
//   const SafetensorsTensor* tensor = file.Find("model.norm.weight");
//
// Rules (docs/formats/safetensors.md lists them with the message of each): header length within the file and at most 100 MB; header
// is one JSON object from its first byte, followed by spaces only; every entry has exactly dtype, shape and data_offsets; no duplicate
// name or key; __metadata__ maps strings to strings; sizes do not overflow and match the ranges; the ranges, sorted, cover the data
// section without hole, overlap or trailing byte. Ours: at most 1M tensors and 32 dimensions.
// Source: huggingface/safetensors README and tensor.rs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/file.h"
#include "tensor/tensor.h"

namespace pith {

struct SafetensorsTensor {
  std::string name;
  std::string type;            // as written: "BF16", "F4", ...
  std::optional<DType> dtype;  // nullopt for the types that only other tools compute with (F4, F6_*, F8_E8M0, *FNUZ, C64)
  Shape shape;
  uint64_t begin = 0, end = 0;  // byte range in the file
};

struct SafetensorsHeader {
  std::vector<SafetensorsTensor> tensors;       // in file order
  std::map<std::string, std::string> metadata;  // __metadata__
};

// Parses the header of a file of `file_size` bytes that starts with `prefix` (which holds the header; the rest may be missing).
// Linear in the header. Messages name the tensor and the byte ranges, not the file. Errors: kDataLoss.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view prefix, uint64_t file_size);

// One mapped file. Movable; views stay valid as long as the object (or what it was moved to) lives. Thread-safe to read.
class SafetensorsFile {
 public:
  // Errors: kNotFound, kAborted (I/O), kDataLoss with path, field, expectation and finding.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const FileIdentity& identity() const { return file_.identity(); }
  absl::Span<const SafetensorsTensor> tensors() const { return header_.tensors; }  // in file order
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }

  // nullptr when absent.
  const SafetensorsTensor* Find(absl::string_view name) const;
  // The raw bytes; `tensor` is one of this file's. They need not be aligned: the format allows any header length.
  absl::Span<const uint8_t> Bytes(const SafetensorsTensor& tensor) const;
  // Errors: kUnimplemented for an element type without a DType.
  absl::StatusOr<TensorView> View(const SafetensorsTensor& tensor) const;

 private:
  SafetensorsFile() = default;

  MappedFile file_;
  SafetensorsHeader header_;
  absl::flat_hash_map<std::string, size_t> index_;  // name -> position in header_.tensors
};

}  // namespace pith
