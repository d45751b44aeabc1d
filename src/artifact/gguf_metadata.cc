#include "artifact/gguf_metadata.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/status.h"

namespace pith {
namespace {

constexpr uint64_t kMaxKeyBytes = 65'535;
constexpr uint64_t kMaxStringBytes = uint64_t{16} << 20;
constexpr uint64_t kStringLengthBytes = 8;

struct TypeRow {
  absl::string_view name;
  int bytes;  // of a scalar; 0: string or array
};

constexpr TypeRow kTypes[] = {{"u8", 1},   {"i8", 1},     {"u16", 2},   {"i16", 2}, {"u32", 4}, {"i32", 4}, {"f32", 4},
                              {"bool", 1}, {"string", 0}, {"array", 0}, {"u64", 8}, {"i64", 8}, {"f64", 8}};

uint64_t ScalarBytes(GgufValueType type) { return static_cast<uint64_t>(kTypes[static_cast<size_t>(type)].bytes); }

absl::StatusOr<GgufValueType> ReadType(ByteReader& reader, absl::string_view what) {
  ASSIGN_OR_RETURN(const uint32_t type, reader.Read<uint32_t>(what));
  if (type >= std::size(kTypes)) return BadFileError(what, ": expected 0 to ", std::size(kTypes) - 1, ", found ", type);
  return static_cast<GgufValueType>(type);
}

absl::StatusOr<absl::string_view> ReadString(ByteReader& reader, uint64_t max_bytes, absl::string_view what) {
  ASSIGN_OR_RETURN(const uint64_t size, reader.Read<uint64_t>(what));
  if (size > max_bytes) return BadFileError(what, ": expected at most ", max_bytes, " bytes, found ", size);
  return reader.ReadBytes(size, what);
}

absl::Status CheckBools(absl::string_view raw) {
  for (const char c : raw) {
    if (c != 0 && c != 1) return BadFileError("boolean: expected 0 or 1, found ", static_cast<int>(static_cast<unsigned char>(c)));
  }
  return absl::OkStatus();
}

absl::Status ReadArray(ByteReader& reader, GgufValue* value) {
  ASSIGN_OR_RETURN(value->element_type, ReadType(reader, "array element type"));
  ASSIGN_OR_RETURN(value->count, reader.Read<uint64_t>("array length"));
  if (value->element_type == GgufValueType::kArray)
    return BadFileError("expected an array of scalars or strings, found an array of arrays");
  const bool strings = value->element_type == GgufValueType::kString;
  const uint64_t smallest = strings ? kStringLengthBytes : ScalarBytes(value->element_type);
  if (value->count > reader.remaining() / smallest) {
    return BadFileError("array length: expected at most ", reader.remaining() / smallest, " elements in the ", reader.remaining(),
                        " bytes left, found ", value->count);
  }
  if (!strings) {
    ASSIGN_OR_RETURN(value->raw, reader.ReadBytes(value->count * smallest, "array"));
    return value->element_type == GgufValueType::kBool ? CheckBools(value->raw) : absl::OkStatus();
  }
  // The strings are walked once to find where they end; they are copied only when asked for.
  ByteReader walk = reader;
  for (uint64_t i = 0; i < value->count; ++i) RETURN_IF_ERROR(ReadString(walk, kMaxStringBytes, "array string").status());
  ASSIGN_OR_RETURN(value->raw, reader.ReadBytes(walk.position() - reader.position(), "array"));
  return absl::OkStatus();
}

absl::StatusOr<GgufValue> ReadValue(ByteReader& reader) {
  GgufValue value;
  ASSIGN_OR_RETURN(value.type, ReadType(reader, "value type"));
  if (value.type == GgufValueType::kArray) {
    RETURN_IF_ERROR(ReadArray(reader, &value));
  } else if (value.type == GgufValueType::kString) {
    ASSIGN_OR_RETURN(value.raw, ReadString(reader, kMaxStringBytes, "string"));
  } else {
    ASSIGN_OR_RETURN(value.raw, reader.ReadBytes(ScalarBytes(value.type), "value"));
    if (value.type == GgufValueType::kBool) RETURN_IF_ERROR(CheckBools(value.raw));
  }
  return value;
}

absl::Status CheckKey(absl::string_view key) {
  if (key.empty()) return BadFileError("key: expected a name, found an empty string");
  for (const char c : key) {
    if (c < 0x20 || c > 0x7E) return BadFileError("key: expected printable ASCII, found \"", Printable(key), "\"");
  }
  return absl::OkStatus();
}

// The element of type T at index i.
template <typename T> T Element(absl::string_view raw, uint64_t i) {
  T value;
  std::memcpy(&value, raw.data() + i * sizeof(T), sizeof(T));
  return value;
}

// Element i as an integer; nullopt when the type is none or the value does not fit.
std::optional<int64_t> IntegerAt(GgufValueType type, absl::string_view raw, uint64_t i) {
  switch (type) {
    case GgufValueType::kU8: return Element<uint8_t>(raw, i);
    case GgufValueType::kI8: return Element<int8_t>(raw, i);
    case GgufValueType::kU16: return Element<uint16_t>(raw, i);
    case GgufValueType::kI16: return Element<int16_t>(raw, i);
    case GgufValueType::kU32: return Element<uint32_t>(raw, i);
    case GgufValueType::kI32: return Element<int32_t>(raw, i);
    case GgufValueType::kI64: return Element<int64_t>(raw, i);
    case GgufValueType::kU64: {
      const uint64_t value = Element<uint64_t>(raw, i);
      return value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ? std::optional<int64_t>(value) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

// Element i as a number; nullopt when the type is no floating-point one.
std::optional<double> DoubleAt(GgufValueType type, absl::string_view raw, uint64_t i) {
  if (type == GgufValueType::kF32) return Element<float>(raw, i);
  if (type == GgufValueType::kF64) return Element<double>(raw, i);
  return std::nullopt;
}

// How a value is called in a message: "u32 7", "string \"abc\"", "array of 3 f32".
std::string Describe(const GgufValue& value) {
  const absl::string_view name = GgufValueTypeName(value.type);
  if (value.type == GgufValueType::kArray) return absl::StrCat("array of ", value.count, " ", GgufValueTypeName(value.element_type));
  if (value.type == GgufValueType::kString) return absl::StrCat("string \"", Printable(value.raw, 40), "\"");
  if (value.type == GgufValueType::kBool) return value.raw[0] == 0 ? "bool false" : "bool true";
  if (const auto integer = IntegerAt(value.type, value.raw, 0)) return absl::StrCat(name, " ", *integer);
  if (const auto number = DoubleAt(value.type, value.raw, 0)) return absl::StrCat(name, " ", *number);
  return absl::StrCat(name, " of 2^63 or more");
}

absl::Status Wrong(absl::string_view key, absl::string_view expected, const GgufValue* found) {
  return BadFileError(key, ": expected ", expected, ", found ", found == nullptr ? "nothing" : Describe(*found));
}

// The array of a key: nullptr when absent.
absl::StatusOr<const GgufValue*> FindArray(const GgufMetadata& metadata, absl::string_view key) {
  const GgufValue* value = metadata.Find(key);
  if (value != nullptr && value->type != GgufValueType::kArray) return Wrong(key, "an array", value);
  return value;
}

}  // namespace

absl::string_view GgufValueTypeName(GgufValueType type) { return kTypes[static_cast<size_t>(type)].name; }

absl::StatusOr<GgufMetadata> GgufMetadata::Parse(ByteReader& reader, uint64_t count) {
  GgufMetadata metadata;
  for (uint64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const absl::string_view key, ReadString(reader, kMaxKeyBytes, absl::StrCat("metadata key ", i + 1, " of ", count)));
    RETURN_IF_ERROR(CheckKey(key));
    absl::StatusOr<GgufValue> value = ReadValue(reader);
    if (!value.ok()) return Annotate(value.status(), Printable(key));
    if (!metadata.values_.emplace(key, *value).second) return BadFileError(Printable(key), ": expected the key once, found it twice");
  }
  return metadata;
}

const GgufValue* GgufMetadata::Find(absl::string_view key) const {
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

absl::StatusOr<int64_t> GgufMetadata::GetInt(absl::string_view key, int64_t min, int64_t max) const {
  const GgufValue* value = Find(key);
  const std::optional<int64_t> integer = value == nullptr ? std::nullopt : IntegerAt(value->type, value->raw, 0);
  if (!integer.has_value() || *integer < min || *integer > max)
    return Wrong(key, absl::StrCat("an integer in [", min, ", ", max, "]"), value);
  return *integer;
}

absl::StatusOr<int64_t> GgufMetadata::GetInt(absl::string_view key, int64_t min, int64_t max, int64_t default_value) const {
  return Has(key) ? GetInt(key, min, max) : absl::StatusOr<int64_t>(default_value);
}

absl::StatusOr<double> GgufMetadata::GetDouble(absl::string_view key, double min, double max) const {
  const GgufValue* value = Find(key);
  const std::optional<double> number = value == nullptr ? std::nullopt : DoubleAt(value->type, value->raw, 0);
  if (!number.has_value() || !(*number >= min && *number <= max))
    return Wrong(key, absl::StrCat("a number in [", min, ", ", max, "]"), value);
  return *number;
}

absl::StatusOr<double> GgufMetadata::GetDouble(absl::string_view key, double min, double max, double default_value) const {
  return Has(key) ? GetDouble(key, min, max) : absl::StatusOr<double>(default_value);
}

absl::StatusOr<std::optional<bool>> GgufMetadata::GetBool(absl::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::optional<bool>();
  if (value->type != GgufValueType::kBool) return Wrong(key, "a bool", value);
  return std::optional<bool>(value->raw[0] != 0);
}

absl::StatusOr<std::string> GgufMetadata::GetString(absl::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr || value->type != GgufValueType::kString) return Wrong(key, "a string", value);
  return std::string(value->raw);
}

absl::StatusOr<std::string> GgufMetadata::GetString(absl::string_view key, absl::string_view default_value) const {
  return Has(key) ? GetString(key) : absl::StatusOr<std::string>(std::string(default_value));
}

absl::StatusOr<std::vector<std::string>> GgufMetadata::GetStrings(absl::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, FindArray(*this, key));
  std::vector<std::string> strings;
  if (value == nullptr) return strings;
  if (value->element_type != GgufValueType::kString) return Wrong(key, "an array of strings", value);
  ByteReader reader(value->raw);
  strings.reserve(value->count);
  for (uint64_t i = 0; i < value->count; ++i) {
    ASSIGN_OR_RETURN(const absl::string_view text, ReadString(reader, kMaxStringBytes, key));
    strings.emplace_back(text);
  }
  return strings;
}

absl::StatusOr<std::vector<int64_t>> GgufMetadata::GetInts(absl::string_view key, int64_t min, int64_t max) const {
  ASSIGN_OR_RETURN(const GgufValue* value, FindArray(*this, key));
  std::vector<int64_t> integers(value == nullptr ? 0 : value->count);
  for (size_t i = 0; i < integers.size(); ++i) {
    const std::optional<int64_t> integer = IntegerAt(value->element_type, value->raw, i);
    if (!integer.has_value() || *integer < min || *integer > max) {
      return BadFileError(key, ": expected integers in [", min, ", ", max, "], found ", Describe(*value),
                          integer.has_value() ? absl::StrCat(" with ", *integer, " at index ", i) : "");
    }
    integers[i] = *integer;
  }
  return integers;
}

absl::StatusOr<std::vector<float>> GgufMetadata::GetFloats(absl::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, FindArray(*this, key));
  std::vector<float> floats(value == nullptr ? 0 : value->count);
  for (size_t i = 0; i < floats.size(); ++i) {
    const std::optional<double> number = DoubleAt(value->element_type, value->raw, i);
    if (!number.has_value() || !std::isfinite(*number)) {
      return BadFileError(key, ": expected finite numbers, found ", Describe(*value),
                          number.has_value() ? absl::StrCat(" with ", *number, " at index ", i) : "");
    }
    floats[i] = static_cast<float>(*number);
  }
  return floats;
}

}  // namespace pith
