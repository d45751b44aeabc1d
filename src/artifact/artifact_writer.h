// Writes an artifact: a Hugging Face model directory with safetensors, side files and a manifest, which appears under its name whole
// and synced, or not at all.
//
//   ASSIGN_OR_RETURN(auto writer, ArtifactWriter::Create("out", {.source_path = reader->path()}));
//   RETURN_IF_ERROR(writer->DeclareTensors({{"model.norm.weight", DType::kBF16, {576}}, ...}));
//   RETURN_IF_ERROR(writer->WriteTensor("model.norm.weight", bytes));         // in any order, so one layer at a time
//   RETURN_IF_ERROR(writer->AddJson("config.json", config));
//   RETURN_IF_ERROR(writer->CopySideFiles(reader->path()));
//   ASSIGN_OR_RETURN(Manifest manifest, writer->Commit(Manifest{...}));
//
// All tensors are declared before the first is written: offsets, shards and the space needed are known up front.
// Errors: kPermissionDenied (the output cannot be created, exists, or is the input), kAborted (no space, I/O: path and numbers),
// kInternal (a mistake of the caller). After an error only destruction is valid; it leaves nothing behind. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "artifact/manifest.h"
#include "artifact/safetensors_writer.h"
#include "base/file.h"
#include "base/json.h"

namespace pith {

struct ArtifactWriterOptions {
  std::string source_path;                  // the model this one is made from; refused as output
  int64_t max_shard_bytes = 5'000'000'000;  // tensors over it go into shards (one larger tensor gets its own)
};

class ArtifactWriter {
 public:
  static absl::StatusOr<std::unique_ptr<ArtifactWriter>> Create(const std::string& path, const ArtifactWriterOptions& options = {});

  // Once. Lays the tensors out, asks for the disk space they need, and writes the headers.
  absl::Status DeclareTensors(std::vector<TensorSpec> tensors);
  // All bytes of a tensor, or bytes [offset, offset + size) of it.
  absl::Status WriteTensor(absl::string_view name, absl::Span<const uint8_t> bytes);
  absl::Status WriteTensorPart(absl::string_view name, uint64_t offset, absl::Span<const uint8_t> bytes);

  // A file of that name (a plain name, once) and content; JSON is written with sorted keys and an indent of 2.
  absl::Status AddFile(absl::string_view name, absl::string_view content);
  absl::Status AddJson(absl::string_view name, const Json& json);
  // A byte-identical copy under the same name. Errors: kNotFound.
  absl::Status CopyFile(const std::string& source_path);
  // All of SideFileNames(source_directory) that have not been added already.
  absl::Status CopySideFiles(const std::string& source_directory);

  // Bytes of all files written so far, headers included.
  uint64_t bytes_written() const;

  // Completes the shards, writes the index, pith.json (with the files filled in) and the model card, syncs and renames. Returns the
  // manifest as written.
  absl::StatusOr<Manifest> Commit(Manifest manifest);

 private:
  struct Shard {
    std::string name;
    std::vector<TensorSpec> specs;
    std::unique_ptr<SafetensorsWriter> writer;  // null once committed
    uint64_t unwritten_bytes = 0;               // of tensors
  };

  ArtifactWriter(std::string path, AtomicDirectoryWriter directory, ArtifactWriterOptions options)
      : path_(std::move(path)), directory_(std::move(directory)), options_(std::move(options)) {}
  std::string StagingPath(absl::string_view name) const;
  absl::Status CheckName(absl::string_view name) const;
  absl::Status CheckSpace(uint64_t needed) const;
  absl::Status Write(absl::string_view name, std::optional<uint64_t> offset, absl::Span<const uint8_t> bytes);
  absl::Status CommitShard(Shard* shard);
  absl::Status AddIndex();

  std::string path_;
  AtomicDirectoryWriter directory_;
  ArtifactWriterOptions options_;
  std::vector<Shard> shards_;
  absl::flat_hash_map<std::string, size_t> shard_of_;  // tensor -> position in shards_
  std::map<std::string, ManifestFile> files_;
  bool declared_ = false;
};

}  // namespace pith
