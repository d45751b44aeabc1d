// The key-value section of a GGUF file: checked once, then read through typed getters that never trust a type, a count or a range.
// Source: ggml docs/gguf.md; docs/formats/gguf.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "artifact/byte_reader.h"

namespace pith {

enum class GgufValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12
};

// "u32", "array", ...
absl::string_view GgufValueTypeName(GgufValueType type);

// One value, borrowed from the file.
struct GgufValue {
  GgufValueType type = GgufValueType::kU8;
  GgufValueType element_type = GgufValueType::kU8;  // of an array
  uint64_t count = 0;                               // elements of an array
  absl::string_view raw;                            // the value's bytes; of an array its elements', of a string its characters
};

// Borrows the bytes it was parsed from. Thread-safe to read.
class GgufMetadata {
 public:
  // Reads `count` entries. Checked here: keys (not empty, at most 65,535 bytes of printable ASCII, distinct), value types, booleans
  // (0 or 1), string lengths (within the file, at most 16 MiB), array counts (against the bytes left, before anything is reserved),
  // no arrays of arrays. Errors: kDataLoss with key, expectation, finding.
  static absl::StatusOr<GgufMetadata> Parse(ByteReader& reader, uint64_t count);

  const absl::btree_map<absl::string_view, GgufValue>& values() const { return values_; }
  const GgufValue* Find(absl::string_view key) const;  // nullptr when absent
  bool Has(absl::string_view key) const { return Find(key) != nullptr; }

  // The forms with a default return it when the key is absent. Any integer type serves for GetInt, f32 and f64 for GetDouble (finite).
  // Errors: kDataLoss naming the key, the expected type or range and what was found.
  absl::StatusOr<int64_t> GetInt(absl::string_view key, int64_t min, int64_t max) const;
  absl::StatusOr<int64_t> GetInt(absl::string_view key, int64_t min, int64_t max, int64_t default_value) const;
  absl::StatusOr<double> GetDouble(absl::string_view key, double min, double max) const;
  absl::StatusOr<double> GetDouble(absl::string_view key, double min, double max, double default_value) const;
  absl::StatusOr<std::optional<bool>> GetBool(absl::string_view key) const;
  absl::StatusOr<std::string> GetString(absl::string_view key) const;
  absl::StatusOr<std::string> GetString(absl::string_view key, absl::string_view default_value) const;

  // Arrays; empty when absent.
  absl::StatusOr<std::vector<std::string>> GetStrings(absl::string_view key) const;
  absl::StatusOr<std::vector<int64_t>> GetInts(absl::string_view key, int64_t min, int64_t max) const;
  absl::StatusOr<std::vector<float>> GetFloats(absl::string_view key) const;

 private:
  absl::btree_map<absl::string_view, GgufValue> values_;
};

}  // namespace pith
