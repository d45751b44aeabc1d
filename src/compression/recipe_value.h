// Values of a recipe with the place where they stand, and readers of their types. Pure functions, thread-safe; every error is kDataLoss and
// reads "line 12: PATH: expected ..., found ...".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/yaml_node.h"

namespace pith {

// Borrows the node.
struct RecipeValue {
  const YamlNode& node;
  int line = 0;      // of its key
  std::string path;  // "GPTQModifier.config_groups.group_0"

  std::string Where() const;  // "line 12: GPTQModifier.config_groups.group_0"
  RecipeValue Member(size_t i) const;
  RecipeValue Item(size_t i) const;
};

absl::Status UnexpectedValue(const RecipeValue& value, absl::string_view what);
// For a key (its value being `value`) that is none of `known`: names the nearest of them.
absl::Status UnknownKey(const RecipeValue& value, absl::string_view key, absl::Span<const absl::string_view> known);
// A mapping whose keys are all known.
absl::Status CheckKeys(const RecipeValue& value, absl::Span<const absl::string_view> known);
// The member of a mapping; nullopt when it is absent or null.
std::optional<RecipeValue> FindMember(const RecipeValue& map, absl::string_view key);

absl::StatusOr<std::string> ReadText(const RecipeValue& value);  // not empty
absl::StatusOr<bool> ReadFlag(const RecipeValue& value);
absl::StatusOr<int> ReadCount(const RecipeValue& value, int max);                     // 1 to max
absl::StatusOr<double> ReadNumber(const RecipeValue& value, double min, double max);  // inclusive
// A name or a list of names, each a module, a class or a regular expression (ModulePattern).
absl::StatusOr<std::vector<std::string>> ReadPatterns(const RecipeValue& value);

}  // namespace pith
