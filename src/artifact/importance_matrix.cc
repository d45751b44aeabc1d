#include "artifact/importance_matrix.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "artifact/byte_reader.h"
#include "artifact/gguf.h"
#include "artifact/gguf_writer.h"
#include "base/file.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr absl::string_view kSums = ".in_sum2", kCounts = ".counts";
constexpr int64_t kMaxNameBytes = 255, kSmallestEntry = 4 + 1 + 4 + 4 + 4;

absl::Status CheckEntry(const ImportanceMatrix::Entry& entry) {
  for (size_t i = 0; i < entry.sum_squares.size(); ++i) {
    if (std::isfinite(entry.sum_squares[i]) && entry.sum_squares[i] >= 0) continue;
    return BadFileError("expected finite sums of squares, found ", entry.sum_squares[i], " in column ", i);
  }
  if (std::isfinite(entry.count) && entry.count >= 0) return absl::OkStatus();
  return BadFileError("expected a finite count, found ", entry.count);
}

// A length of text, and the text.
absl::StatusOr<std::string> ReadText(ByteReader& reader, absl::string_view what) {
  ASSIGN_OR_RETURN(const int32_t size, reader.Read<int32_t>(what));
  if (size < 0 || static_cast<uint64_t>(size) > reader.remaining()) {
    return BadFileError(what, ": expected a length of 0 to ", reader.remaining(), ", found ", size);
  }
  ASSIGN_OR_RETURN(const absl::string_view text, reader.ReadBytes(static_cast<uint64_t>(size), what));
  return std::string(text);
}

absl::Status ReadLegacyEntry(ByteReader& reader, const std::string& what, ImportanceMatrix& matrix) {
  ASSIGN_OR_RETURN(const std::string name, ReadText(reader, what + ": name"));
  if (name.empty() || static_cast<int64_t>(name.size()) > kMaxNameBytes || Printable(name, kMaxNameBytes) != name) {
    return BadFileError(what, ": expected a name of 1 to ", kMaxNameBytes, " printable characters, found \"", Printable(name, 60), "\"");
  }
  ASSIGN_OR_RETURN(const int32_t calls, reader.Read<int32_t>(what + ": calls"));
  ASSIGN_OR_RETURN(const int32_t columns, reader.Read<int32_t>(what + ": columns"));
  if (calls < 0) return BadFileError(what, " (", name, "): calls: expected at least 0, found ", calls);
  if (columns < 1 || static_cast<uint64_t>(columns) > reader.remaining() / 4) {
    return BadFileError(what, " (", name, "): columns: expected 1 to ", reader.remaining() / 4, ", found ", columns);
  }
  ASSIGN_OR_RETURN(const absl::string_view raw, reader.ReadBytes(static_cast<uint64_t>(columns) * 4, what));
  ImportanceMatrix::Entry entry{std::vector<float>(static_cast<size_t>(columns)), static_cast<float>(calls)};
  std::memcpy(entry.sum_squares.data(), raw.data(), raw.size());
  RETURN_IF_ERROR(Annotate(CheckEntry(entry), name));
  if (!matrix.entries.emplace(name, std::move(entry)).second) return BadFileError(name, ": expected one entry, found two");
  return absl::OkStatus();
}

absl::StatusOr<ImportanceMatrix> ParseLegacy(absl::string_view bytes) {
  ByteReader reader(bytes);
  ASSIGN_OR_RETURN(const int32_t count, reader.Read<int32_t>("number of entries"));
  if (count < 1 || count > static_cast<int64_t>(reader.remaining()) / kSmallestEntry) {
    return BadFileError("number of entries: expected 1 to ", reader.remaining() / kSmallestEntry, ", found ", count);
  }
  ImportanceMatrix matrix;
  for (int32_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(ReadLegacyEntry(reader, absl::StrCat("entry ", i + 1, " of ", count), matrix));
  }
  if (reader.remaining() == 0) return matrix;  // the oldest files end here
  ASSIGN_OR_RETURN(const int32_t chunks, reader.Read<int32_t>("number of chunks"));
  matrix.chunk_count = std::max(chunks, 0);
  if (reader.remaining() == 0) return matrix;
  ASSIGN_OR_RETURN(std::string dataset, ReadText(reader, "data set"));
  matrix.datasets.push_back(std::move(dataset));
  if (reader.remaining() > 0) return BadFileError("data set: expected the end of the file, found ", reader.remaining(), " more bytes");
  return matrix;
}

absl::StatusOr<std::vector<float>> ReadFloats(const GgufFile& file, const GgufTensor& tensor) {
  if (tensor.type->name != "F32") return BadFileError(tensor.name, ": expected F32, found ", tensor.type->name);
  std::vector<float> values(tensor.size / 4);
  std::memcpy(values.data(), file.Bytes(tensor).data(), values.size() * 4);
  return values;
}

absl::StatusOr<ImportanceMatrix> ParseGguf(absl::string_view bytes) {
  ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Parse(bytes));
  ASSIGN_OR_RETURN(const std::string type, file.metadata().GetString("general.type", ""));
  if (type != "imatrix") return BadFileError("general.type: expected \"imatrix\", found \"", Printable(type, 60), "\"");
  ImportanceMatrix matrix;
  ASSIGN_OR_RETURN(matrix.datasets, file.metadata().GetStrings("imatrix.datasets"));
  ASSIGN_OR_RETURN(matrix.chunk_count, file.metadata().GetInt("imatrix.chunk_count", 0, int64_t{1} << 40, 0));
  ASSIGN_OR_RETURN(matrix.chunk_size, file.metadata().GetInt("imatrix.chunk_size", 0, int64_t{1} << 40, 0));
  for (const GgufTensor& tensor : file.tensors()) {
    absl::string_view name = tensor.name;
    if (absl::EndsWith(name, kCounts)) continue;
    if (!absl::ConsumeSuffix(&name, kSums)) return BadFileError(tensor.name, ": expected only sums and counts, found this tensor");
    const GgufTensor* counts = file.Find(absl::StrCat(name, kCounts));
    if (counts == nullptr) return BadFileError(name, kCounts, ": expected a tensor beside the sums, found none");
    if (NumElements(counts->shape) > 1) {
      return NotSupportedError(counts->name, ": expected one expert, found ", NumElements(counts->shape));
    }
    ImportanceMatrix::Entry entry;
    ASSIGN_OR_RETURN(entry.sum_squares, ReadFloats(file, tensor));
    ASSIGN_OR_RETURN(const std::vector<float> count, ReadFloats(file, *counts));
    if (count.size() != 1 || entry.sum_squares.empty()) return BadFileError(name, ": expected a count and sums, found an empty tensor");
    entry.count = count[0];
    RETURN_IF_ERROR(Annotate(CheckEntry(entry), name));
    matrix.entries.emplace(std::string(name), std::move(entry));
  }
  return matrix;
}

}  // namespace

absl::StatusOr<std::vector<float>> ImportanceMatrix::Importance(const std::string& tensor_name, int64_t in) const {
  const auto it = entries.find(tensor_name);
  if (it == entries.end()) return std::vector<float>();
  const Entry& entry = it->second;
  if (static_cast<int64_t>(entry.sum_squares.size()) != in) {
    return BadFileError("importance matrix: ", tensor_name, ": expected ", in, " columns, found ", entry.sum_squares.size());
  }
  if (entry.count == 0) return std::vector<float>(entry.sum_squares.size(), 1.0f);
  std::vector<float> means = entry.sum_squares;
  for (float& mean : means) mean /= entry.count;
  return means;
}

absl::StatusOr<ImportanceMatrix> ParseImportanceMatrix(absl::string_view bytes) {
  return absl::StartsWith(bytes, "GGUF") ? ParseGguf(bytes) : ParseLegacy(bytes);
}

absl::StatusOr<ImportanceMatrix> ReadImportanceMatrix(const std::string& path) {
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  absl::StatusOr<ImportanceMatrix> matrix = ParseImportanceMatrix(file.text());
  if (!matrix.ok()) return Annotate(matrix.status(), Printable(path, 500));
  return matrix;
}

absl::StatusOr<bool> IsImportanceMatrix(const std::string& path) {
  if (!FileExists(path) || IsDirectory(path)) return false;
  ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(path));
  if (!absl::StartsWith(mapped.text(), "GGUF")) return true;
  const absl::StatusOr<GgufFile> file = GgufFile::Parse(mapped.text());
  if (!file.ok()) return Annotate(file.status(), Printable(path, 500));
  ASSIGN_OR_RETURN(const std::string type, file->metadata().GetString("general.type", ""));
  return type == "imatrix";
}

absl::Status WriteImportanceMatrix(const ImportanceMatrix& matrix, const std::string& path) {
  GgufMetadataWriter metadata;
  metadata.AddString("general.type", "imatrix");
  metadata.AddStrings("imatrix.datasets", matrix.datasets);
  metadata.AddU32("imatrix.chunk_count", static_cast<uint32_t>(matrix.chunk_count));
  metadata.AddU32("imatrix.chunk_size", static_cast<uint32_t>(matrix.chunk_size));
  ASSIGN_OR_RETURN(const GgufType* f32, FindGgufType(0));
  std::vector<GgufTensorSpec> specs;
  for (const auto& [name, entry] : matrix.entries) {
    specs.push_back({absl::StrCat(name, kSums), f32, {1, static_cast<int64_t>(entry.sum_squares.size())}});
    specs.push_back({absl::StrCat(name, kCounts), f32, {1, 1}});
  }
  ASSIGN_OR_RETURN(GgufWriter writer, GgufWriter::Create(path, metadata, std::move(specs)));
  for (const auto& [name, entry] : matrix.entries) {
    RETURN_IF_ERROR(writer.Write(absl::StrCat(name, kSums),
                                 {reinterpret_cast<const uint8_t*>(entry.sum_squares.data()), entry.sum_squares.size() * sizeof(float)}));
    RETURN_IF_ERROR(writer.Write(absl::StrCat(name, kCounts), {reinterpret_cast<const uint8_t*>(&entry.count), sizeof(float)}));
  }
  return writer.Commit();
}

absl::Status WriteLegacyImportanceMatrix(const ImportanceMatrix& matrix, const std::string& path) {
  if (FileExists(path)) return CannotCreateError(Printable(path, 500), ": expected no such file yet, found one");
  const int32_t calls = static_cast<int32_t>(std::clamp<int64_t>(matrix.chunk_count, 1, INT32_MAX));
  std::string bytes;
  const auto append = [&](const auto& value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  const auto append_text = [&](const std::string& text) {
    append(static_cast<int32_t>(text.size()));
    bytes += text;
  };
  int32_t count = 0;
  for (const auto& [name, entry] : matrix.entries) {
    if (entry.count == 0) continue;
    ++count;
    append_text(name);
    append(calls);
    append(static_cast<int32_t>(entry.sum_squares.size()));
    for (const float sum : entry.sum_squares) append(sum / entry.count * static_cast<float>(calls));
  }
  if (count == 0) return BadFileError("importance matrix: expected a matrix that met an input, found none");
  append(static_cast<int32_t>(std::clamp<int64_t>(matrix.chunk_count, 0, INT32_MAX)));
  append_text(absl::StrJoin(matrix.datasets, ", "));
  return WriteFileAtomically(path, absl::StrCat(absl::string_view(reinterpret_cast<const char*>(&count), sizeof(count)), bytes));
}

}  // namespace pith
