#include "artifact/gguf.h"

#include <algorithm>
#include <limits>

#include "absl/strings/match.h"
#include "base/foreign_file.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr absl::string_view kMagic = "GGUF";
constexpr uint64_t kSmallestMetadataEntry = 8 + 1 + 4 + 1;    // key length, key, type, value
constexpr uint64_t kSmallestTensorEntry = 8 + 1 + 4 + 4 + 8;  // name length, name, rank, type, offset
constexpr uint64_t kMaxTensorNameBytes = 63;
constexpr uint32_t kMaxDimensions = 4;
constexpr int64_t kDefaultAlignment = 32;
constexpr int64_t kMaxAlignment = int64_t{1} << 20;

absl::Status CheckVersion(uint32_t version) {
  if (version == 2 || version == 3) return absl::OkStatus();
  if ((version & 0xFFFF) == 0 && version != 0)
    return BadFileError("version: expected 2 or 3 in little-endian order, found a big-endian file");
  return BadFileError("version: expected 2 or 3, found ", version, version == 1 ? " (convert the model again with current tools)" : "");
}

absl::StatusOr<uint64_t> ReadCount(ByteReader& reader, absl::string_view what, uint64_t smallest_entry) {
  ASSIGN_OR_RETURN(const int64_t count, reader.Read<int64_t>(what));
  if (count < 0 || static_cast<uint64_t>(count) > reader.remaining() / smallest_entry) {
    return BadFileError(what, ": expected 0 to ", reader.remaining() / smallest_entry, " in the ", reader.remaining(),
                        " bytes left, found ", count);
  }
  return static_cast<uint64_t>(count);
}

absl::StatusOr<uint64_t> Alignment(const GgufMetadata& metadata) {
  constexpr absl::string_view kKey = "general.alignment";
  const GgufValue* value = metadata.Find(kKey);
  if (value != nullptr && value->type != GgufValueType::kU32) {
    return BadFileError(kKey, ": expected a u32, found ", GgufValueTypeName(value->type));
  }
  ASSIGN_OR_RETURN(const int64_t alignment, metadata.GetInt(kKey, 1, kMaxAlignment, kDefaultAlignment));
  if ((alignment & (alignment - 1)) != 0) return BadFileError(kKey, ": expected a power of two, found ", alignment);
  return static_cast<uint64_t>(alignment);
}

// `position` rounded up. No overflow: positions lie within a file, sums are checked before.
uint64_t Padded(uint64_t position, uint64_t alignment) { return (position + alignment - 1) / alignment * alignment; }

// Dimensions in file order (fastest first) to shape and byte size.
absl::Status ReadShape(ByteReader& reader, std::vector<int64_t>* dims) {
  ASSIGN_OR_RETURN(const uint32_t rank, reader.Read<uint32_t>("number of dimensions"));
  if (rank > kMaxDimensions) return BadFileError("number of dimensions: expected at most ", kMaxDimensions, ", found ", rank);
  int64_t product = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    ASSIGN_OR_RETURN(const int64_t dim, reader.Read<int64_t>("dimension"));
    if (dim < 0) return BadFileError("dimension ", i, ": expected at least 0, found ", dim);
    if (__builtin_mul_overflow(product, dim, &product)) return BadFileError("dimensions: expected a product below 2^63, found more");
    dims->push_back(dim);
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> TensorBytes(const GgufType& type, const std::vector<int64_t>& dims) {
  const int64_t row = dims.empty() ? 1 : dims[0];
  ASSIGN_OR_RETURN(const int64_t row_bytes, GgufRowBytes(type, row));
  uint64_t size = static_cast<uint64_t>(row_bytes);
  for (size_t i = 1; i < dims.size(); ++i) {
    if (__builtin_mul_overflow(size, static_cast<uint64_t>(dims[i]), &size))
      return BadFileError("size: expected less than 2^64 bytes, found more");
  }
  return size;
}

}  // namespace

absl::StatusOr<GgufFile> GgufFile::Open(const std::string& path) {
  GgufFile file;
  ASSIGN_OR_RETURN(file.file_, MappedFile::Open(path));
  RETURN_IF_ERROR(Annotate(file.ParseHeader(file.file_.text()), Printable(path, 500)));
  return file;
}

absl::StatusOr<GgufFile> GgufFile::Parse(absl::string_view bytes) {
  GgufFile file;
  RETURN_IF_ERROR(file.ParseHeader(bytes));
  return file;
}

absl::Status GgufFile::ParseHeader(absl::string_view bytes) {
  bytes_ = bytes;
  if (!absl::StartsWith(bytes, kMagic)) {
    const std::string found = FoundContent(bytes);
    return BadFileError("magic: expected \"GGUF\"",
                        found.empty() ? absl::StrCat(", found \"", Printable(bytes.substr(0, 4)), "\"") : found);
  }
  ByteReader reader(bytes);
  RETURN_IF_ERROR(reader.ReadBytes(kMagic.size(), "magic").status());
  ASSIGN_OR_RETURN(version_, reader.Read<uint32_t>("version"));
  RETURN_IF_ERROR(CheckVersion(version_));
  ASSIGN_OR_RETURN(const uint64_t num_tensors, ReadCount(reader, "tensor count", kSmallestTensorEntry));
  ASSIGN_OR_RETURN(const uint64_t num_values, ReadCount(reader, "metadata count", kSmallestMetadataEntry));
  ASSIGN_OR_RETURN(metadata_, GgufMetadata::Parse(reader, num_values));
  return ParseTensors(reader, num_tensors);
}

absl::Status GgufFile::ParseTensors(ByteReader& reader, uint64_t count) {
  ASSIGN_OR_RETURN(const uint64_t alignment, Alignment(metadata_));
  if (count > reader.remaining() / kSmallestTensorEntry) {
    return BadFileError("tensor count: expected at most ", reader.remaining() / kSmallestTensorEntry, " in the ", reader.remaining(),
                        " bytes left, found ", count);
  }
  tensors_.reserve(count);
  index_.reserve(count);
  uint64_t next_offset = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string what = absl::StrCat("tensor ", i + 1, " of ", count);
    ASSIGN_OR_RETURN(const uint64_t name_size, reader.Read<uint64_t>(what));
    if (name_size == 0 || name_size > kMaxTensorNameBytes) {
      return BadFileError(what, ": expected a name of 1 to ", kMaxTensorNameBytes, " bytes, found ", name_size);
    }
    ASSIGN_OR_RETURN(const absl::string_view name, reader.ReadBytes(name_size, what));
    const absl::Status status = ReadTensor(reader, name, alignment, &next_offset);
    if (!status.ok()) return Annotate(status, absl::StrCat("tensor \"", Printable(name), "\""));
  }
  return PlaceTensors(reader.position(), alignment);
}

absl::Status GgufFile::ReadTensor(ByteReader& reader, absl::string_view name, uint64_t alignment, uint64_t* next_offset) {
  if (!index_.emplace(name, tensors_.size()).second) return BadFileError("expected the name once, found it twice");
  GgufTensor tensor;
  tensor.name = std::string(name);
  std::vector<int64_t> dims;
  RETURN_IF_ERROR(ReadShape(reader, &dims));
  ASSIGN_OR_RETURN(const uint32_t type, reader.Read<uint32_t>("type"));
  ASSIGN_OR_RETURN(tensor.type, FindGgufType(type));
  ASSIGN_OR_RETURN(tensor.begin, reader.Read<uint64_t>("offset"));
  tensor.shape.assign(dims.rbegin(), dims.rend());
  ASSIGN_OR_RETURN(tensor.size, TensorBytes(*tensor.type, dims));
  if (tensor.begin != *next_offset) {
    return BadFileError("offset: expected ", *next_offset, " (the padded end of the tensors before it), found ", tensor.begin);
  }
  // Bounded by the file before the sum is taken, so that no sum of sizes can wrap.
  if (tensor.size > bytes_.size() || tensor.begin > bytes_.size() - tensor.size) {
    return BadFileError("expected ", tensor.size, " bytes of data (", tensor.type->name, " ", ShapeName(tensor.shape), ") at offset ",
                        tensor.begin, ", found a file of ", bytes_.size(), " bytes");
  }
  *next_offset = Padded(tensor.begin + tensor.size, alignment);
  tensors_.push_back(std::move(tensor));
  return absl::OkStatus();
}

absl::Status GgufFile::PlaceTensors(uint64_t header_end, uint64_t alignment) {
  const uint64_t data_begin = tensors_.empty() ? header_end : Padded(header_end, alignment);
  uint64_t end = data_begin;
  for (GgufTensor& tensor : tensors_) {
    tensor.begin += data_begin;
    end = tensor.begin + tensor.size;
    if (end > bytes_.size()) {
      return BadFileError("tensor \"", Printable(tensor.name), "\": expected ", tensor.size, " bytes at offset ", tensor.begin,
                          " of the file, found ", bytes_.size() - std::min<uint64_t>(tensor.begin, bytes_.size()),
                          " before its end (is the file truncated?)");
    }
  }
  if (bytes_.size() > Padded(end, alignment)) {
    return BadFileError("data: expected the file to end at ", Padded(end, alignment), ", found ", bytes_.size() - end, " more bytes");
  }
  return absl::OkStatus();
}

const GgufTensor* GgufFile::Find(absl::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &tensors_[it->second];
}

absl::Span<const uint8_t> GgufFile::Bytes(const GgufTensor& tensor) const {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(bytes_.data()) + tensor.begin, tensor.size);
}

}  // namespace pith
