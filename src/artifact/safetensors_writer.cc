#include "artifact/safetensors_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/json.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr size_t kHeaderAlignment = 8;

}  // namespace

absl::StatusOr<SafetensorsLayout> LayOutSafetensors(std::vector<TensorSpec> tensors, const std::map<std::string, std::string>& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorSpec& a, const TensorSpec& b) {
    const int64_t a_size = ByteSize(a.dtype), b_size = ByteSize(b.dtype);
    return a_size != b_size ? a_size > b_size : a.name < b.name;
  });
  SafetensorsLayout layout;
  std::string header = metadata.empty() ? "{" : absl::StrCat("{\"__metadata__\":", DumpJson(Json(metadata)));
  uint64_t position = 0;
  for (TensorSpec& spec : tensors) {
    const absl::StatusOr<int64_t> elements = CheckedNumElements(spec.shape);
    uint64_t end = 0;
    if (!elements.ok() || __builtin_mul_overflow(static_cast<uint64_t>(*elements), static_cast<uint64_t>(ByteSize(spec.dtype)), &end) ||
        __builtin_add_overflow(end, position, &end)) {
      return UsageError("tensor \"", Printable(spec.name), "\": expected a size of less than 2^64 bytes, found ", ShapeName(spec.shape));
    }
    const std::string type(DTypeName(spec.dtype));
    absl::StrAppend(&header, header.size() == 1 ? "" : ",", DumpJson(Json(spec.name)), ":{\"dtype\":\"", type, "\",\"shape\":[",
                    absl::StrJoin(spec.shape, ","), "],\"data_offsets\":[", position, ",", end, "]}");
    layout.tensors.push_back({std::move(spec.name), type, spec.dtype, std::move(spec.shape), position, end});
    position = end;
  }
  header += "}";
  header.resize((header.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  for (uint64_t i = 0; i < kLengthBytes; ++i) layout.prefix.push_back(static_cast<char>(header.size() >> (8 * i)));
  layout.prefix += header;
  layout.file_size = layout.prefix.size() + position;
  // Repeated and reserved names, text that is not UTF-8 and passed limits are what the reader refuses; it is asked once for all.
  absl::StatusOr<SafetensorsHeader> parsed = ParseSafetensorsHeader(layout.prefix, layout.file_size);
  if (!parsed.ok()) return UsageError("tensors cannot be stored: ", parsed.status().message());
  for (size_t i = 0; i < layout.tensors.size(); ++i) {
    if (parsed->tensors[i].name != layout.tensors[i].name) {
      return UsageError("tensor \"", Printable(layout.tensors[i].name), "\": expected a name in UTF-8");
    }
    layout.tensors[i].begin += layout.prefix.size();
    layout.tensors[i].end += layout.prefix.size();
  }
  return layout;
}

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::Create(const std::string& path, std::vector<TensorSpec> tensors,
                                                            const std::map<std::string, std::string>& metadata) {
  ASSIGN_OR_RETURN(SafetensorsLayout layout, LayOutSafetensors(std::move(tensors), metadata));
  ASSIGN_OR_RETURN(AtomicFileWriter file, AtomicFileWriter::Create(path));
  SafetensorsWriter writer(path, std::move(layout), std::move(file));
  for (size_t i = 0; i < writer.layout_.tensors.size(); ++i) writer.index_.emplace(writer.layout_.tensors[i].name, i);
  writer.written_.resize(writer.layout_.tensors.size());
  const std::string& prefix = writer.layout_.prefix;
  RETURN_IF_ERROR(writer.WriteAt(0, absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(prefix.data()), prefix.size())));
  return writer;
}

absl::Status SafetensorsWriter::WriteAt(uint64_t offset, absl::Span<const uint8_t> bytes) {
  RETURN_IF_ERROR(file_.WriteAt(offset, bytes));
  if (offset == hashed_bytes_) {
    hash_->Update({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    hashed_bytes_ += bytes.size();
  }
  return absl::OkStatus();
}

absl::Status SafetensorsWriter::Write(absl::string_view name, absl::Span<const uint8_t> bytes) {
  const auto it = index_.find(name);
  if (it != index_.end()) {
    const SafetensorsTensor& tensor = layout_.tensors[it->second];
    if (bytes.size() != tensor.end - tensor.begin) {
      return BugError(path_, ": tensor \"", name, "\": expected ", tensor.end - tensor.begin, " bytes, found ", bytes.size());
    }
  }
  return WritePart(name, 0, bytes);
}

absl::Status SafetensorsWriter::WritePart(absl::string_view name, uint64_t offset, absl::Span<const uint8_t> bytes) {
  const auto it = index_.find(name);
  if (it == index_.end()) return BugError(path_, ": tensor \"", name, "\": expected a declared tensor");
  const SafetensorsTensor& tensor = layout_.tensors[it->second];
  const uint64_t size = tensor.end - tensor.begin;
  if (offset > size || bytes.size() > size - offset || bytes.size() > size - written_[it->second]) {
    return BugError(path_, ": tensor \"", name, "\": expected ", size, " bytes in all, found ", bytes.size(), " at offset ", offset,
                    " after ", written_[it->second]);
  }
  written_[it->second] += bytes.size();
  return WriteAt(tensor.begin + offset, bytes);
}

absl::StatusOr<std::string> SafetensorsWriter::Commit() {
  for (size_t i = 0; i < written_.size(); ++i) {
    const SafetensorsTensor& tensor = layout_.tensors[i];
    if (written_[i] != tensor.end - tensor.begin) {
      return BugError(path_, ": tensor \"", tensor.name, "\": expected ", tensor.end - tensor.begin, " bytes written, found ", written_[i]);
    }
  }
  RETURN_IF_ERROR(file_.Commit());
  if (hashed_bytes_ == layout_.file_size) return hash_->HexDigest();
  return Sha256OfFile(path_);
}

}  // namespace pith
