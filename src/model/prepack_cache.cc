#include "model/prepack_cache.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "artifact/safetensors.h"
#include "artifact/safetensors_writer.h"
#include "base/interrupt.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{4} << 20;
constexpr uint64_t kLengthBytes = 8;  // of the header's length
constexpr char kFormat[] = "pith-prepack";
constexpr char kChecksums[] = "checksums", kDescription[] = "description";

std::string MatrixName(const std::string& layer, size_t index) { return absl::StrCat(layer, ".", index); }
std::string TableName(const std::string& layer) { return absl::StrCat(layer, ".table"); }

uint64_t NumPieces(uint64_t bytes) { return (bytes + kPieceBytes - 1) / kPieceBytes; }

// Header length and header of a safetensors file.
absl::StatusOr<std::string> ReadPrefix(const RandomAccessFile& file) {
  constexpr uint64_t kMaxHeaderBytes = uint64_t{16} << 20;
  uint8_t length_bytes[kLengthBytes];
  RETURN_IF_ERROR(file.ReadAt(0, length_bytes));
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | length_bytes[i];
  if (length > kMaxHeaderBytes || length > file.size() - kLengthBytes) {
    return BadFileError("header length: expected at most ", std::min(kMaxHeaderBytes, file.size() - kLengthBytes), " bytes, found ",
                        length);
  }
  std::string prefix(kLengthBytes + length, '\0');
  RETURN_IF_ERROR(file.ReadAt(0, absl::MakeSpan(reinterpret_cast<uint8_t*>(prefix.data()), prefix.size())));
  return prefix;
}

absl::Status CheckChecksums() {
  if (HasChecksum()) return absl::OkStatus();
  return NotSupportedError("expected an OpenSSL with Poly1305, found one without (a FIPS provider has none)");
}

absl::Status CheckMetadata(const std::map<std::string, std::string>& metadata, absl::string_view key) {
  const auto format = metadata.find("format"), found = metadata.find("key");
  if (format == metadata.end() || format->second != kFormat || found == metadata.end()) {
    return BadFileError("metadata: expected format \"", kFormat, "\" and a key, found format \"",
                        format == metadata.end() ? "" : Printable(format->second), "\" and ", found == metadata.end() ? "no key" : "a key");
  }
  if (found->second != key) return BadFileError("expected weights prepacked from this model by this build, found others");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PrepackCache> PrepackCache::Open(const std::string& path, absl::string_view key) {
  RETURN_IF_ERROR(CheckChecksums());
  ASSIGN_OR_RETURN(RandomAccessFile file, RandomAccessFile::Open(path));
  PrepackCache cache(std::move(file));
  if (absl::Status status = cache.ReadHeader(key); !status.ok()) return Annotate(status, Printable(path, 500));
  if (absl::Status status = cache.ReadDescription(); !status.ok()) return Annotate(status, Printable(path, 500));
  return cache;
}

absl::Status PrepackCache::ReadHeader(absl::string_view key) {
  ASSIGN_OR_RETURN(const std::string prefix, ReadPrefix(file_));
  ASSIGN_OR_RETURN(const SafetensorsHeader header, ParseSafetensorsHeader(prefix, file_.size()));
  RETURN_IF_ERROR(CheckMetadata(header.metadata, key));
  const SafetensorsTensor* checksums = nullptr;
  size_t count = 0;
  for (const SafetensorsTensor& tensor : header.tensors) {
    if (tensor.name == kChecksums) {
      checksums = &tensor;
      continue;
    }
    tensors_[tensor.name] = {tensor.begin, tensor.end - tensor.begin, count};
    count += NumPieces(tensor.end - tensor.begin);
  }
  if (checksums == nullptr || checksums->end - checksums->begin != count * kChecksumBytes) {
    return BadFileError(kChecksums, ": expected ", count * kChecksumBytes, " bytes, found ",
                        checksums == nullptr ? 0 : checksums->end - checksums->begin);
  }
  std::vector<uint8_t> bytes(count * kChecksumBytes);
  RETURN_IF_ERROR(file_.ReadAt(checksums->begin, absl::MakeSpan(bytes)));
  checksums_.resize(count);
  for (size_t i = 0; i < count; ++i) std::memcpy(checksums_[i].data(), bytes.data() + i * kChecksumBytes, kChecksumBytes);
  return absl::OkStatus();
}

absl::Status PrepackCache::ReadDescription() {
  const auto it = tensors_.find(kDescription);
  if (it == tensors_.end()) return BadFileError(kDescription, ": expected a tensor, found none");
  constexpr uint64_t kMaxDescriptionBytes = uint64_t{64} << 20;
  if (it->second.size > kMaxDescriptionBytes) {
    return BadFileError(kDescription, ": expected at most ", kMaxDescriptionBytes, " bytes, found ", it->second.size);
  }
  std::string text(it->second.size, '\0');
  AddPieces(it->second, absl::MakeSpan(reinterpret_cast<uint8_t*>(text.data()), text.size()));
  for (const Piece& piece : pieces_) RETURN_IF_ERROR(ReadPiece(piece));
  pieces_.clear();
  ASSIGN_OR_RETURN(description_, ParsePrepackDescription(text));
  return absl::OkStatus();
}

absl::StatusOr<const PrepackedLayer*> PrepackCache::Find(const std::string& layer) const {
  const auto it = description_.find(layer);
  if (it == description_.end()) return BadFileError(Printable(file_.path(), 500), ": expected ", layer, ", found no such layer");
  return &it->second;
}

absl::Status PrepackCache::RequestMatrix(const std::string& layer, size_t index, absl::Span<uint8_t> out) {
  return Request(MatrixName(layer, index), out);
}

absl::Status PrepackCache::RequestTable(const std::string& layer, absl::Span<uint8_t> out) { return Request(TableName(layer), out); }

absl::Status PrepackCache::Request(const std::string& tensor, absl::Span<uint8_t> out) {
  const auto it = tensors_.find(tensor);
  if (it == tensors_.end() || it->second.size != out.size()) {
    return BadFileError(Printable(file_.path(), 500), ": ", tensor, ": expected ", out.size(), " bytes, found ",
                        it == tensors_.end() ? "no such tensor" : absl::StrCat(it->second.size));
  }
  AddPieces(it->second, out);
  return absl::OkStatus();
}

void PrepackCache::AddPieces(const Stored& stored, absl::Span<uint8_t> out) {
  for (uint64_t offset = 0; offset < out.size(); offset += kPieceBytes) {
    pieces_.push_back({stored.begin + offset, stored.first_checksum + offset / kPieceBytes, out.subspan(offset, kPieceBytes)});
  }
}

absl::Status PrepackCache::ReadPiece(const Piece& piece) const {
  RETURN_IF_ERROR(file_.ReadAt(piece.begin, piece.out));
  // While the bytes are still in the cache of this core.
  if (ComputeChecksum(piece.out) == checksums_[piece.checksum]) return absl::OkStatus();
  return BadFileError(Printable(file_.path(), 500), ": expected the bytes that were written, found others in [", piece.begin, ", ",
                      piece.begin + piece.out.size(), ")");
}

absl::Status PrepackCache::Read(ThreadPool& pool, const std::function<void(int64_t, int64_t)>& progress) {
  int64_t total = 0, done = 0;
  for (const Piece& piece : pieces_) total += static_cast<int64_t>(piece.out.size());
  std::mutex mutex;  // guards done and first_error
  absl::Status first_error;
  std::atomic<size_t> next = 0;
  pool.Run([&](int) {
    for (size_t i = next++; i < pieces_.size(); i = next++) {
      absl::Status status = CheckInterrupted();
      if (status.ok()) status = ReadPiece(pieces_[i]);
      const std::lock_guard<std::mutex> lock(mutex);
      if (!status.ok()) {
        if (first_error.ok()) first_error = std::move(status);
        next = pieces_.size();
        return;
      }
      done += static_cast<int64_t>(pieces_[i].out.size());
      if (progress) progress(done, total);
    }
  });
  pieces_.clear();
  return first_error;
}

namespace {

// By the names of the tensors, which is the order of a file that has nothing but bytes.
using Payload = std::map<std::string, absl::Span<const uint8_t>>;

Payload ListPayload(const std::string& description, const std::map<std::string, PrepackedBytes>& layers) {
  Payload payload = {{kDescription, {reinterpret_cast<const uint8_t*>(description.data()), description.size()}}};
  for (const auto& [layer, bytes] : layers) {
    if (bytes.matrices.empty()) payload[TableName(layer)] = bytes.table;
    for (size_t i = 0; i < bytes.matrices.size(); ++i) payload[MatrixName(layer, i)] = bytes.matrices[i];
  }
  return payload;
}

std::vector<uint8_t> ChecksumsOf(const Payload& payload, ThreadPool& pool) {
  std::vector<absl::Span<const uint8_t>> pieces;
  for (const auto& [name, bytes] : payload) {
    for (uint64_t offset = 0; offset < bytes.size(); offset += kPieceBytes) pieces.push_back(bytes.subspan(offset, kPieceBytes));
  }
  std::vector<uint8_t> checksums(pieces.size() * kChecksumBytes);
  pool.ParallelForDynamic(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const Checksum sum = ComputeChecksum(pieces[static_cast<size_t>(i)]);
      std::memcpy(checksums.data() + i * static_cast<int64_t>(kChecksumBytes), sum.data(), kChecksumBytes);
    }
  });
  return checksums;
}

}  // namespace

absl::StatusOr<uint64_t> WritePrepackCache(const std::string& path, absl::string_view key, const PrepackDescription& description,
                                           const std::map<std::string, PrepackedBytes>& bytes, ThreadPool& pool) {
  RETURN_IF_ERROR(CheckChecksums());
  // A directory that others can write to may hold a link of theirs under this name: never write through it.
  if (std::error_code error; std::filesystem::is_symlink(path, error)) {
    return CannotCreateError(Printable(path, 500), ": expected a file or nothing, found a symbolic link");
  }
  const std::string text = MakePrepackDescription(description);
  Payload payload = ListPayload(text, bytes);
  const std::vector<uint8_t> checksums = ChecksumsOf(payload, pool);
  payload[kChecksums] = checksums;
  std::vector<TensorSpec> specs;
  for (const auto& [name, content] : payload) specs.push_back({name, DType::kU8, {static_cast<int64_t>(content.size())}});
  ASSIGN_OR_RETURN(const SafetensorsLayout layout, LayOutSafetensors(std::move(specs), {{"format", kFormat}, {"key", std::string(key)}}));
  ASSIGN_OR_RETURN(const uint64_t free, FreeDiskBytes(DirName(path)));
  if (free < layout.file_size) return IoError(Printable(path, 500), ": expected ", layout.file_size, " bytes of free space, found ", free);
  // No SafetensorsWriter, which hashes what it writes: a second per gigabyte for a hash that nobody asks for.
  ASSIGN_OR_RETURN(AtomicFileWriter file, AtomicFileWriter::Create(path));
  RETURN_IF_ERROR(file.Append(layout.prefix));
  for (const SafetensorsTensor& tensor : layout.tensors) {
    const absl::Span<const uint8_t> content = payload.at(tensor.name);
    for (uint64_t offset = 0; offset < content.size(); offset += kPieceBytes) {
      RETURN_IF_ERROR(CheckInterrupted());
      RETURN_IF_ERROR(file.WriteAt(tensor.begin + offset, content.subspan(offset, kPieceBytes)));
    }
  }
  RETURN_IF_ERROR(file.Commit());
  return layout.file_size;
}

}  // namespace pith
