#include "artifact/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "base/foreign_file.h"
#include "base/json.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxTensors = 1'000'000;
constexpr size_t kMaxDimensions = 32;
constexpr absl::string_view kMetadataKey = "__metadata__";

struct ElementType {
  absl::string_view name;
  int bits;
};

// Every type the format defines. DType covers those pith computes with.
constexpr ElementType kElementTypes[] = {
    {"BOOL", 8},    {"F4", 4},          {"F6_E2M3", 6},     {"F6_E3M2", 6}, {"U8", 8},   {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8},
    {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16}, {"F16", 16}, {"BF16", 16},   {"I32", 32},
    {"U32", 32},    {"F32", 32},        {"C64", 64},        {"F64", 64},    {"I64", 64}, {"U64", 64}};

int ElementBits(absl::string_view type) {
  for (const ElementType& row : kElementTypes) {
    if (row.name == type) return row.bits;
  }
  return 0;
}

std::string Quoted(absl::string_view name) { return absl::StrCat("tensor \"", Printable(name), "\""); }

// Walks the header's JSON and collects tensors without building a document, so that a header of a million tensors stays cheap and a
// duplicate key is seen. Depth: 1 header, 2 entry (or __metadata__), 3 shape or data_offsets.
class HeaderHandler : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderHandler(SafetensorsHeader* header) : header_(header) {}

  bool null() override { return Fail("null"); }
  bool boolean(bool) override { return Fail("a boolean"); }
  bool number_integer(number_integer_t) override { return Fail("a negative integer"); }
  bool number_float(number_float_t, const string_t&) override { return Fail("a fraction or a number of 2^64 or more"); }
  bool binary(binary_t&) override { return Fail("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ != 3) return Fail("a number");
    if (field_ == Field::kShape) {
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return Fail("a dimension of 2^63 or more");
      if (tensor_.shape.size() == kMaxDimensions) return Fail(absl::StrCat("more than ", kMaxDimensions, " dimensions"));
      tensor_.shape.push_back(static_cast<int64_t>(value));
    } else {
      if (num_offsets_ == 2) return Fail("more than two offsets");
      (num_offsets_++ == 0 ? tensor_.begin : tensor_.end) = value;
    }
    return true;
  }

  bool string(string_t& value) override {
    if (depth_ == 2 && in_metadata_) {
      header_->metadata[key_] = std::move(value);
      return true;
    }
    if (depth_ != 2 || field_ != Field::kDType) return Fail("a string");
    if (ElementBits(value) == 0) return Fail(absl::StrCat("\"", Printable(value, 40), "\", which is no type of the format"));
    tensor_.type = std::move(value);
    return true;
  }

  bool start_object(std::size_t) override {
    ++depth_;
    if (depth_ == 1) return true;
    if (depth_ > 2) return Fail("an object");
    in_metadata_ = name_ == kMetadataKey;
    tensor_ = SafetensorsTensor{};
    tensor_.name = name_;
    seen_ = 0;
    num_offsets_ = 0;
    field_ = Field::kNone;
    return true;
  }

  bool end_object() override {
    if (depth_-- == 1) return true;
    if (in_metadata_) return true;
    field_ = Field::kNone;
    if (seen_ != 7) return FailWith(absl::StrCat(Quoted(name_), ": expected dtype, shape and data_offsets, found no ", MissingField()));
    tensor_.dtype = ParseDType(tensor_.type);
    header_->tensors.push_back(std::move(tensor_));
    return true;
  }

  bool start_array(std::size_t) override {
    ++depth_;
    return depth_ == 3 && (field_ == Field::kShape || field_ == Field::kOffsets) ? true : Fail("an array");
  }

  bool end_array() override {
    --depth_;
    if (field_ == Field::kOffsets && num_offsets_ != 2) return Fail(absl::StrCat(num_offsets_, " offsets"));
    return true;
  }

  bool key(string_t& value) override { return depth_ == 1 ? TensorKey(value) : in_metadata_ ? MetadataKey(value) : FieldKey(value); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    if (error_.empty()) error_ = absl::StrCat("header: expected JSON, found a syntax error at byte ", kLengthBytes + position);
    return false;
  }

  const std::string& error() const { return error_; }

 private:
  enum class Field { kNone, kDType, kShape, kOffsets };

  bool TensorKey(string_t& value) {
    name_ = std::move(value);
    field_ = Field::kNone;
    in_metadata_ = false;
    if (!names_.insert(name_).second) return FailWith(absl::StrCat("header: expected distinct names, found ", Quoted(name_), " twice"));
    if (names_.size() > kMaxTensors) return FailWith(absl::StrCat("header: expected at most ", kMaxTensors, " tensors, found more"));
    return true;
  }

  bool MetadataKey(string_t& value) {
    key_ = std::move(value);
    if (!header_->metadata.emplace(key_, "").second) {
      return FailWith(absl::StrCat("__metadata__: expected distinct keys, found \"", Printable(key_), "\" twice"));
    }
    return true;
  }

  bool FieldKey(const string_t& value) {
    field_ = value == "dtype" ? Field::kDType : value == "shape" ? Field::kShape : value == "data_offsets" ? Field::kOffsets : Field::kNone;
    if (field_ == Field::kNone) {
      return FailWith(absl::StrCat(Quoted(name_), ": expected only dtype, shape and data_offsets, found \"", Printable(value), "\""));
    }
    const int bit = 1 << (static_cast<int>(field_) - 1);
    if ((seen_ & bit) != 0) return FailWith(absl::StrCat(Quoted(name_), ": expected \"", value, "\" once, found it twice"));
    seen_ |= bit;
    return true;
  }

  absl::string_view MissingField() const { return (seen_ & 1) == 0 ? "dtype" : (seen_ & 2) == 0 ? "shape" : "data_offsets"; }

  bool FailWith(std::string message) {
    if (error_.empty()) error_ = std::move(message);
    return false;
  }

  // The value just read is not what its place asks for.
  bool Fail(absl::string_view found) {
    if (names_.empty()) return FailWith(absl::StrCat("header: expected an object, found ", found));
    if (in_metadata_) {
      return FailWith(absl::StrCat("__metadata__: expected strings, found ", found, " for \"", Printable(key_), "\""));
    }
    switch (field_) {
      case Field::kNone: return FailWith(absl::StrCat(Quoted(name_), ": expected an object, found ", found));
      case Field::kDType: return FailWith(absl::StrCat(Quoted(name_), ": dtype: expected a type such as \"BF16\", found ", found));
      case Field::kShape:
        return FailWith(absl::StrCat(Quoted(name_), ": shape: expected an array of dimensions of at least 0, found ", found));
      default: return FailWith(absl::StrCat(Quoted(name_), ": data_offsets: expected two integers [begin, end], found ", found));
    }
  }

  SafetensorsHeader* header_;
  absl::flat_hash_set<std::string> names_;
  SafetensorsTensor tensor_;
  std::string name_, key_, error_;
  Field field_ = Field::kNone;
  int depth_ = 0, seen_ = 0, num_offsets_ = 0;
  bool in_metadata_ = false;
};

struct HeaderText {
  absl::string_view json;   // without the padding
  uint64_t data_begin = 0;  // where the data section starts in the file
};

// The header's JSON text, checked for its bounds, its first byte and its padding.
absl::StatusOr<HeaderText> FindHeader(absl::string_view prefix, uint64_t file_size) {
  if (file_size < kLengthBytes || prefix.size() < kLengthBytes) {
    return BadFileError("header length: expected 8 bytes, found a file of ", file_size, FoundContent(prefix));
  }
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | static_cast<uint8_t>(prefix[i]);
  if (length > kMaxHeaderBytes) {
    return BadFileError("header length: expected at most ", kMaxHeaderBytes, " bytes, found ", length, FoundContent(prefix));
  }
  if (length > file_size - kLengthBytes || length > prefix.size() - kLengthBytes) {
    return BadFileError("header length: expected at most the ", file_size - kLengthBytes, " bytes that follow, found ", length,
                        FoundContent(prefix));
  }
  absl::string_view text = prefix.substr(kLengthBytes, length);
  if (text.empty() || text.front() != '{') {
    return BadFileError("header: expected \"{\" at byte ", kLengthBytes, ", found ",
                        text.empty() ? "nothing" : absl::StrCat("\"", Printable(text.substr(0, 1)), "\""));
  }
  while (text.back() == ' ') text.remove_suffix(1);
  if (text.back() != '}') {
    return BadFileError("header: expected \"}\" followed by spaces only, found \"", Printable(text.substr(text.size() - 1)), "\" at byte ",
                        kLengthBytes + text.size() - 1);
  }
  return HeaderText{text, kLengthBytes + length};
}

// Range of one tensor: as long as its shape and type say.
absl::Status CheckSize(const SafetensorsTensor& tensor) {
  if (tensor.begin > tensor.end) {
    return BadFileError("data_offsets: expected begin <= end, found [", tensor.begin, ", ", tensor.end, "]");
  }
  uint64_t bits = static_cast<uint64_t>(ElementBits(tensor.type));
  // In the order of the shape, as NumElements multiplies: [2^40, 2^40, 0] overflows although it holds nothing.
  for (const int64_t dim : tensor.shape) {
    if (__builtin_mul_overflow(bits, static_cast<uint64_t>(dim), &bits)) {
      return BadFileError("shape ", ShapeName(tensor.shape), ": expected a size of less than 2^64 bits");
    }
  }
  if (bits % 8 != 0) {
    return BadFileError("shape ", ShapeName(tensor.shape), ": expected whole bytes, found ", bits, " bits of ", tensor.type);
  }
  if (bits / 8 != tensor.end - tensor.begin) {
    return BadFileError("data_offsets: expected ", bits / 8, " bytes for ", tensor.type, " ", ShapeName(tensor.shape), ", found ",
                        tensor.end - tensor.begin, " in [", tensor.begin, ", ", tensor.end, "]");
  }
  return absl::OkStatus();
}

// Sorted ranges must cover [0, data_bytes) exactly.
absl::Status CheckCoverage(const std::vector<SafetensorsTensor>& tensors, uint64_t data_bytes) {
  uint64_t position = 0;
  const SafetensorsTensor* previous = nullptr;
  for (const SafetensorsTensor& tensor : tensors) {
    if (tensor.begin != position) {
      return BadFileError(Quoted(tensor.name), ": data_offsets: expected to begin at ", position, " (",
                          previous == nullptr ? "the start of the data" : absl::StrCat("the end of ", Quoted(previous->name)), "), found [",
                          tensor.begin, ", ", tensor.end, "]");
    }
    if (tensor.end > data_bytes) {
      return BadFileError(Quoted(tensor.name), ": data_offsets: expected to end within the ", data_bytes,
                          " bytes of data in the file, found [", tensor.begin, ", ", tensor.end, "] (is the file truncated?)");
    }
    position = tensor.end;
    previous = &tensor;
  }
  if (position != data_bytes) {
    return BadFileError("data: expected ", position, " bytes after the header, found ", data_bytes);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view prefix, uint64_t file_size) {
  ASSIGN_OR_RETURN(const HeaderText text, FindHeader(prefix, file_size));
  SafetensorsHeader header;
  HeaderHandler handler(&header);
  bool parsed = false;
  try {
    parsed = Json::sax_parse(text.json.begin(), text.json.end(), &handler);
  } catch (const std::exception& error) {
    return BadFileError("header: ", Printable(error.what(), 300));
  }
  if (!parsed) return BadFileError(handler.error());
  for (const SafetensorsTensor& tensor : header.tensors) {
    if (absl::Status status = CheckSize(tensor); !status.ok()) return Annotate(status, Quoted(tensor.name));
  }
  std::stable_sort(header.tensors.begin(), header.tensors.end(), [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  RETURN_IF_ERROR(CheckCoverage(header.tensors, file_size - text.data_begin));
  for (SafetensorsTensor& tensor : header.tensors) {
    tensor.begin += text.data_begin;
    tensor.end += text.data_begin;
  }
  return header;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  if (HasPickleName(path)) {
    return BadFileError(Printable(path, 500), ": expected a safetensors file, found a name of pickled checkpoints, which are never opened ",
                        "since unpickling runs code; use the repository's safetensors files");
  }
  SafetensorsFile file;
  ASSIGN_OR_RETURN(file.file_, MappedFile::Open(path));
  absl::StatusOr<SafetensorsHeader> header = ParseSafetensorsHeader(file.file_.text(), file.file_.bytes().size());
  if (!header.ok()) return Annotate(header.status(), Printable(path, 500));
  file.header_ = *std::move(header);
  file.index_.reserve(file.header_.tensors.size());
  for (size_t i = 0; i < file.header_.tensors.size(); ++i) file.index_.emplace(file.header_.tensors[i].name, i);
  return file;
}

const SafetensorsTensor* SafetensorsFile::Find(absl::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &header_.tensors[it->second];
}

absl::Span<const uint8_t> SafetensorsFile::Bytes(const SafetensorsTensor& tensor) const {
  return file_.bytes().subspan(tensor.begin, tensor.end - tensor.begin);
}

absl::StatusOr<TensorView> SafetensorsFile::View(const SafetensorsTensor& tensor) const {
  if (!tensor.dtype.has_value()) {
    return NotSupportedError(path(), ": ", Quoted(tensor.name), ": expected an element type pith computes with, found ", tensor.type);
  }
  return TensorView{*tensor.dtype, tensor.shape, Bytes(tensor).data()};
}

}  // namespace pith
