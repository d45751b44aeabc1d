#include "artifact/gguf_writer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr uint64_t kAlignment = 32;  // what readers assume without general.alignment
constexpr uint32_t kVersion = 3;
constexpr size_t kMaxNameBytes = 63;

uint64_t Padded(uint64_t position) { return (position + kAlignment - 1) / kAlignment * kAlignment; }

template <typename T> void AppendRaw(const T& value, std::string& bytes) { bytes.append(reinterpret_cast<const char*>(&value), sizeof(T)); }

void AppendText(absl::string_view text, std::string& bytes) {
  AppendRaw(static_cast<uint64_t>(text.size()), bytes);
  absl::StrAppend(&bytes, text);
}

}  // namespace

void GgufMetadataWriter::AddKey(absl::string_view key, GgufValueType type) {
  AppendText(key, bytes_);
  AppendRaw(static_cast<uint32_t>(type), bytes_);
  ++count_;
}

void GgufMetadataWriter::AddArrayKey(absl::string_view key, GgufValueType element_type, size_t count) {
  AddKey(key, GgufValueType::kArray);
  AppendRaw(static_cast<uint32_t>(element_type), bytes_);
  AppendRaw(static_cast<uint64_t>(count), bytes_);
}

void GgufMetadataWriter::AddU32(absl::string_view key, uint32_t value) {
  AddKey(key, GgufValueType::kU32);
  AppendRaw(value, bytes_);
}

void GgufMetadataWriter::AddF32(absl::string_view key, float value) {
  AddKey(key, GgufValueType::kF32);
  AppendRaw(value, bytes_);
}

void GgufMetadataWriter::AddBool(absl::string_view key, bool value) {
  AddKey(key, GgufValueType::kBool);
  AppendRaw(static_cast<uint8_t>(value ? 1 : 0), bytes_);
}

void GgufMetadataWriter::AddString(absl::string_view key, absl::string_view value) {
  AddKey(key, GgufValueType::kString);
  AppendText(value, bytes_);
}

void GgufMetadataWriter::AddStrings(absl::string_view key, absl::Span<const std::string> values) {
  AddArrayKey(key, GgufValueType::kString, values.size());
  for (const std::string& value : values) AppendText(value, bytes_);
}

void GgufMetadataWriter::AddInts(absl::string_view key, absl::Span<const int32_t> values) {
  AddArrayKey(key, GgufValueType::kI32, values.size());
  for (const int32_t value : values) AppendRaw(value, bytes_);
}

void GgufMetadataWriter::AddFloats(absl::string_view key, absl::Span<const float> values) {
  AddArrayKey(key, GgufValueType::kF32, values.size());
  for (const float value : values) AppendRaw(value, bytes_);
}

absl::StatusOr<GgufWriter> GgufWriter::Create(const std::string& path, const GgufMetadataWriter& metadata,
                                              std::vector<GgufTensorSpec> tensors) {
  if (path.empty()) return CannotCreateError("output: expected a path, found none");
  if (FileExists(path) || IsDirectory(path)) {
    return CannotCreateError(Printable(path, 500), ": expected no such file yet, found one");
  }
  ASSIGN_OR_RETURN(AtomicFileWriter file, AtomicFileWriter::Create(path));
  GgufWriter writer(std::move(file));
  std::string header = "GGUF";
  AppendRaw(kVersion, header);
  AppendRaw(static_cast<int64_t>(tensors.size()), header);
  AppendRaw(metadata.count(), header);
  header += metadata.bytes();
  uint64_t offset = 0;
  for (const GgufTensorSpec& spec : tensors) {
    if (spec.name.empty() || spec.name.size() > kMaxNameBytes) return BugError("tensor \"", spec.name, "\": expected a shorter name");
    ASSIGN_OR_RETURN(const int64_t row_bytes, GgufRowBytes(*spec.type, spec.shape.empty() ? 1 : spec.shape.back()));
    const uint64_t rows = spec.shape.empty() ? 1 : static_cast<uint64_t>(NumElements(spec.shape) / std::max<int64_t>(spec.shape.back(), 1));
    const Place place{offset, rows * static_cast<uint64_t>(row_bytes)};
    if (!writer.places_.emplace(spec.name, place).second) return BugError("tensor \"", spec.name, "\": expected one declaration");
    AppendText(spec.name, header);
    AppendRaw(static_cast<uint32_t>(spec.shape.size()), header);
    for (size_t i = spec.shape.size(); i > 0; --i) AppendRaw(spec.shape[i - 1], header);
    AppendRaw(spec.type->id, header);
    AppendRaw(offset, header);
    offset = Padded(offset + place.size);
  }
  header.resize(Padded(header.size()), '\0');
  for (auto& [name, place] : writer.places_) place.begin += header.size();
  writer.file_size_ = header.size() + offset;
  RETURN_IF_ERROR(writer.file_.Append(absl::string_view(header)));
  return writer;
}

absl::Status GgufWriter::Write(absl::string_view name, absl::Span<const uint8_t> bytes) {
  const auto it = places_.find(name);
  if (it == places_.end() || it->second.written || it->second.size != bytes.size()) {
    return BugError("tensor \"", Printable(name), "\": expected one write of a declared tensor, found ", bytes.size(), " bytes");
  }
  it->second.written = true;
  return file_.WriteAt(it->second.begin, bytes);
}

absl::Status GgufWriter::Commit() {
  uint64_t end = 0;
  for (const auto& [name, place] : places_) {
    if (!place.written) return BugError("tensor \"", name, "\": expected its bytes before the file is closed");
    end = std::max(end, place.begin + place.size);
  }
  // The padding of the last tensor.
  const std::vector<uint8_t> padding(file_size_ > end && end > 0 ? file_size_ - end : 0);
  if (!padding.empty()) RETURN_IF_ERROR(file_.WriteAt(end, padding));
  return file_.Commit();
}

}  // namespace pith
