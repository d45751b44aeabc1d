// JSON facade: nlohmann::json behind functions that return absl::Status, refuse duplicate keys and bound depth and size.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace pith {

using Json = nlohmann::json;                 // keys sorted
using OrderedJson = nlohmann::ordered_json;  // keys in insertion order

struct JsonLimits {
  int max_depth = 64;
  size_t max_bytes = size_t{512} << 20;
};

// Parses one JSON text. Errors: kDataLoss for bad syntax (with line and column), a duplicate key (named) or a passed limit.
absl::StatusOr<Json> ParseJson(absl::string_view text, const JsonLimits& limits = {});

// Typed members of an object. Errors: kDataLoss naming the key, the expected type or range and what was found.
// The forms with a default return it when the key is absent or null.
absl::StatusOr<int64_t> GetInt(const Json& object, absl::string_view key, int64_t min, int64_t max);
absl::StatusOr<int64_t> GetInt(const Json& object, absl::string_view key, int64_t min, int64_t max, int64_t default_value);
absl::StatusOr<double> GetDouble(const Json& object, absl::string_view key, double min, double max);
absl::StatusOr<double> GetDouble(const Json& object, absl::string_view key, double min, double max, double default_value);
absl::StatusOr<bool> GetBool(const Json& object, absl::string_view key, bool default_value);
absl::StatusOr<std::string> GetString(const Json& object, absl::string_view key);
absl::StatusOr<std::string> GetString(const Json& object, absl::string_view key, absl::string_view default_value);

// nullptr when absent or null, or when `object` is no object.
const Json* FindMember(const Json& object, absl::string_view key);

// Text of a value; invalid UTF-8 in strings is replaced, never thrown. indent < 0: one line.
std::string DumpJson(const Json& value, int indent = -1);
std::string DumpJson(const OrderedJson& value, int indent = -1);

}  // namespace pith
