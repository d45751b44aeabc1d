// YAML facade: one document as a tree with line numbers. yaml-cpp behind a function that returns absl::Status, refuses duplicate keys and
// bounds size, depth and what aliases expand to. JSON is YAML, so it reads JSON too.
//
// Plain scalars mean what PyYAML's safe_load makes of them (null, yes/no/on/off, numbers), since recipes are written for it; but a number
// in another base or with a leading zero stays text, and 1e-3 is a number. Tags and merge keys (<<) are refused.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json.h"

namespace pith {

struct YamlNode {
  enum class Kind { kNull, kBool, kInt, kDouble, kString, kSequence, kMap };

  Kind kind = Kind::kNull;
  int line = 1;                   // of its first character, from 1
  std::string text;               // of a scalar, as written
  std::vector<std::string> keys;  // of a map, in the order of the file; unique
  std::vector<int> key_lines;     // as long as `keys`
  std::vector<YamlNode> items;    // of a sequence, or the values of `keys`

  bool is_null() const { return kind == Kind::kNull; }
  bool is_map() const { return kind == Kind::kMap; }
  bool is_sequence() const { return kind == Kind::kSequence; }
  bool is_string() const { return kind == Kind::kString; }
};

struct YamlLimits {
  size_t max_bytes = size_t{256} << 10;
  int max_depth = 32;      // of sequences and maps inside each other
  int max_nodes = 20'000;  // an alias counts as what it stands for, a value with an anchor twice
};

// The only document of `text`; an empty text is a null. Errors: kDataLoss with the line for bad syntax, a duplicate key (named), a second
// document, a key that is no scalar, a tag, a merge key or a passed limit.
absl::StatusOr<YamlNode> ParseYaml(absl::string_view text, const YamlLimits& limits = {});

// The same values; a number that no 64-bit integer holds becomes a double.
Json ToJson(const YamlNode& node);

// For messages: "null", "0.5", "\"text\"", "a list", "a mapping".
std::string DescribeYaml(const YamlNode& node);

}  // namespace pith
