#include "artifact/artifact_writer.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "artifact/huggingface_files.h"
#include "artifact/model_card.h"
#include "artifact/module_names.h"
#include "artifact/safetensors_shards.h"
#include "base/sha256.h"
#include "base/status.h"

namespace pith {
namespace {

// Room for what is not tensors: tokenizer, manifest, headers.
constexpr uint64_t kSideFileBytes = uint64_t{64} << 20;

// Loaders of transformers refuse a safetensors file that does not name its framework.
const std::map<std::string, std::string>& SafetensorsMetadata() {
  static const auto* const metadata = new std::map<std::string, std::string>{{"format", "pt"}};
  return *metadata;
}

bool SamePath(const std::string& a, const std::string& b) {
  std::error_code error;
  const auto canonical_a = std::filesystem::weakly_canonical(a, error), canonical_b = std::filesystem::weakly_canonical(b, error);
  return !error && canonical_a == canonical_b;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ArtifactWriter>> ArtifactWriter::Create(const std::string& path, const ArtifactWriterOptions& options) {
  if (path.empty()) return CannotCreateError("output: expected a path, found none");
  if (!options.source_path.empty() && SamePath(path, options.source_path)) {
    return CannotCreateError(Printable(path, 500), ": expected an output apart from the input ", Printable(options.source_path, 500));
  }
  ASSIGN_OR_RETURN(AtomicDirectoryWriter directory, AtomicDirectoryWriter::Create(path));
  return std::unique_ptr<ArtifactWriter>(new ArtifactWriter(Printable(path, 500), std::move(directory), options));
}

std::string ArtifactWriter::StagingPath(absl::string_view name) const { return JoinPath(directory_.staging_path(), name); }

absl::Status ArtifactWriter::CheckName(absl::string_view name) const {
  if (name.empty() || name == "." || name == ".." || name.find('/') != absl::string_view::npos || name == kManifestName ||
      name == kModelCardName) {
    return BugError(path_, ": expected a plain file name, found \"", Printable(name), "\"");
  }
  if (files_.contains(std::string(name))) return BugError(path_, ": expected \"", Printable(name), "\" to be added once, found it twice");
  return absl::OkStatus();
}

absl::Status ArtifactWriter::CheckSpace(uint64_t needed) const {
  ASSIGN_OR_RETURN(const uint64_t free, FreeDiskBytes(directory_.staging_path()));
  if (free >= needed) return absl::OkStatus();
  return IoError(path_, ": expected ", needed, " bytes of free disk space, found ", free);
}

absl::Status ArtifactWriter::DeclareTensors(std::vector<TensorSpec> tensors) {
  if (declared_) return BugError(path_, ": expected the tensors to be declared once");
  declared_ = true;
  std::sort(tensors.begin(), tensors.end(), [](const TensorSpec& a, const TensorSpec& b) { return ModuleNameLess(a.name, b.name); });
  int64_t shard_bytes = 0;
  for (TensorSpec& spec : tensors) {
    const absl::StatusOr<int64_t> elements = CheckedNumElements(spec.shape);
    if (!elements.ok()) return Annotate(elements.status(), spec.name);
    const int64_t bytes = *elements * ByteSize(spec.dtype);
    if (shards_.empty() || (shard_bytes > 0 && bytes > 0 && bytes > options_.max_shard_bytes - shard_bytes)) {
      shards_.emplace_back();
      shard_bytes = 0;
    }
    shard_bytes += bytes;
    shards_.back().unwritten_bytes += static_cast<uint64_t>(bytes);
    if (!shard_of_.emplace(spec.name, shards_.size() - 1).second)
      return BugError(path_, ": tensor \"", spec.name, "\": expected one declaration");
    shards_.back().specs.push_back(std::move(spec));
  }
  if (shards_.empty()) shards_.emplace_back();
  uint64_t needed = kSideFileBytes;
  for (const Shard& shard : shards_) needed += shard.unwritten_bytes;
  RETURN_IF_ERROR(CheckSpace(needed));
  const int64_t count = static_cast<int64_t>(shards_.size());
  for (int64_t i = 0; i < count; ++i) {
    Shard& shard = shards_[static_cast<size_t>(i)];
    shard.name = count == 1 ? kSafetensorsFileName : ShardFileName(i + 1, count);
    ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(StagingPath(shard.name), shard.specs, SafetensorsMetadata()));
    shard.writer = std::make_unique<SafetensorsWriter>(std::move(writer));
  }
  return absl::OkStatus();
}

absl::Status ArtifactWriter::WriteTensor(absl::string_view name, absl::Span<const uint8_t> bytes) {
  return Write(name, std::nullopt, bytes);
}

absl::Status ArtifactWriter::WriteTensorPart(absl::string_view name, uint64_t offset, absl::Span<const uint8_t> bytes) {
  return Write(name, offset, bytes);
}

absl::Status ArtifactWriter::Write(absl::string_view name, std::optional<uint64_t> offset, absl::Span<const uint8_t> bytes) {
  const auto it = shard_of_.find(name);
  if (it == shard_of_.end()) return BugError(path_, ": tensor \"", Printable(name), "\": expected a declared tensor");
  Shard& shard = shards_[it->second];
  if (shard.writer == nullptr) {  // every byte of this shard is written; only empty tensors can follow
    return bytes.empty() ? absl::OkStatus() : BugError(path_, ": tensor \"", name, "\": expected bytes that were not written before");
  }
  RETURN_IF_ERROR(offset.has_value() ? shard.writer->WritePart(name, *offset, bytes) : shard.writer->Write(name, bytes));
  shard.unwritten_bytes -= bytes.size();
  return shard.unwritten_bytes == 0 ? CommitShard(&shard) : absl::OkStatus();
}

// A complete shard is closed and hashed at once, while its pages are in memory.
absl::Status ArtifactWriter::CommitShard(Shard* shard) {
  const uint64_t size = shard->writer->file_size();
  ASSIGN_OR_RETURN(const std::string sha256, shard->writer->Commit());
  shard->writer = nullptr;
  files_[shard->name] = {size, sha256};
  return absl::OkStatus();
}

absl::Status ArtifactWriter::AddFile(absl::string_view name, absl::string_view content) {
  RETURN_IF_ERROR(CheckName(name));
  RETURN_IF_ERROR(WriteFileAtomically(StagingPath(name), content));
  files_[std::string(name)] = {content.size(), Sha256Hex(content)};
  return absl::OkStatus();
}

absl::Status ArtifactWriter::AddJson(absl::string_view name, const Json& json) { return AddFile(name, DumpJson(json, 2) + "\n"); }

absl::Status ArtifactWriter::CopyFile(const std::string& source_path) {
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(source_path));
  return AddFile(BaseName(source_path), file.text());
}

absl::Status ArtifactWriter::CopySideFiles(const std::string& source_directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, SideFileNames(source_directory));
  for (const std::string& name : names) {
    if (files_.contains(name)) continue;
    RETURN_IF_ERROR(CopyFile(JoinPath(source_directory, name)));
  }
  return absl::OkStatus();
}

uint64_t ArtifactWriter::bytes_written() const {
  uint64_t bytes = 0;
  for (const auto& [name, file] : files_) bytes += file.size;
  return bytes;
}

absl::Status ArtifactWriter::AddIndex() {
  std::map<std::string, std::string> weight_map;
  uint64_t tensor_bytes = 0;
  for (const Shard& shard : shards_) {
    for (const TensorSpec& spec : shard.specs) {
      weight_map[spec.name] = shard.name;
      tensor_bytes += static_cast<uint64_t>(NumElements(spec.shape) * ByteSize(spec.dtype));
    }
  }
  return AddFile(kSafetensorsIndexName, MakeSafetensorsIndex(weight_map, tensor_bytes));
}

absl::StatusOr<Manifest> ArtifactWriter::Commit(Manifest manifest) {
  for (Shard& shard : shards_) {
    if (shard.writer != nullptr) RETURN_IF_ERROR(CommitShard(&shard));
  }
  if (shards_.size() > 1) RETURN_IF_ERROR(AddIndex());
  manifest.files = files_;
  RETURN_IF_ERROR(WriteFileAtomically(StagingPath(kManifestName), DumpJson(ToJson(manifest), 2) + "\n"));
  RETURN_IF_ERROR(WriteFileAtomically(StagingPath(kModelCardName), RenderModelCard(manifest, std::nullopt)));
  RETURN_IF_ERROR(directory_.Commit());
  return manifest;
}

}  // namespace pith
