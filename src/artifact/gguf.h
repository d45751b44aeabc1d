// Reads GGUF containers (version 2 and 3), strictly: metadata, tensor table, and the bytes of each tensor. What the tensors mean for a
// model is gguf_model.h's matter.
//
//   ASSIGN_OR_RETURN(GgufFile file, GgufFile::Open("model.gguf"));
//   ASSIGN_OR_RETURN(std::string architecture, file.metadata().GetString("general.architecture"));
//
// Rules (docs/formats/gguf.md lists them): counts fit the bytes left before anything is reserved; general.alignment is a u32 power of two
// of at most 1 MiB; tensor names are distinct, 1 to 63 bytes; at most four dimensions whose product stays below 2^63; a row is whole
// blocks; each offset is exactly the padded sum of the sizes before it; every tensor lies inside the file; nothing follows the last.
// Source: ggml docs/gguf.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "artifact/gguf_metadata.h"
#include "base/file.h"
#include "quantization/formats/gguf_blocks.h"
#include "tensor/tensor.h"

namespace pith {

struct GgufTensor {
  std::string name;
  const GgufType* type = nullptr;
  Shape shape;         // rows first, the fastest dimension last: the reverse of the file's order
  uint64_t begin = 0;  // offset in the file
  uint64_t size = 0;   // bytes, padding left out
};

// Movable; everything it hands out stays valid as long as the object (or what it was moved to) lives. Thread-safe to read.
class GgufFile {
 public:
  // Errors: kNotFound, kAborted (I/O), kDataLoss with path, field, expectation and finding; kUnimplemented for a tensor type that cannot
  // be decoded.
  static absl::StatusOr<GgufFile> Open(const std::string& path);
  // The same over borrowed bytes; messages do not name a file.
  static absl::StatusOr<GgufFile> Parse(absl::string_view bytes);

  const std::string& path() const { return file_.path(); }
  const FileIdentity& identity() const { return file_.identity(); }
  uint32_t version() const { return version_; }
  const GgufMetadata& metadata() const { return metadata_; }
  absl::Span<const GgufTensor> tensors() const { return tensors_; }  // in file order

  const GgufTensor* Find(absl::string_view name) const;  // nullptr when absent
  absl::Span<const uint8_t> Bytes(const GgufTensor& tensor) const;

 private:
  GgufFile() = default;
  absl::Status ParseHeader(absl::string_view bytes);
  absl::Status ParseTensors(ByteReader& reader, uint64_t count);
  absl::Status ReadTensor(ByteReader& reader, absl::string_view name, uint64_t alignment, uint64_t* next_offset);
  absl::Status PlaceTensors(uint64_t header_end, uint64_t alignment);

  MappedFile file_;
  absl::string_view bytes_;
  uint32_t version_ = 0;
  GgufMetadata metadata_;
  std::vector<GgufTensor> tensors_;
  absl::flat_hash_map<std::string, size_t> index_;  // name -> position in tensors_
};

}  // namespace pith
