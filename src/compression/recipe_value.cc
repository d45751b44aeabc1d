#include "compression/recipe_value.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "base/nearest_name.h"
#include "base/status.h"
#include "quantization/module_pattern.h"

namespace pith {

std::string RecipeValue::Where() const { return absl::StrCat("line ", line, ": ", path); }

RecipeValue RecipeValue::Member(size_t i) const {
  return {node.items[i], node.key_lines[i], absl::StrCat(path, path.empty() ? "" : ".", Printable(node.keys[i], 60))};
}

RecipeValue RecipeValue::Item(size_t i) const { return {node.items[i], node.items[i].line, absl::StrCat(path, "[", i, "]")}; }

absl::Status UnexpectedValue(const RecipeValue& value, absl::string_view what) {
  return BadFileError(value.Where(), ": expected ", what, ", found ", DescribeYaml(value.node));
}

absl::Status UnknownKey(const RecipeValue& value, absl::string_view key, absl::Span<const absl::string_view> known) {
  return BadFileError(value.Where(), ": unknown key, nearest is \"", NearestName(key, known), "\"");
}

absl::Status CheckKeys(const RecipeValue& value, absl::Span<const absl::string_view> known) {
  if (!value.node.is_map()) return UnexpectedValue(value, "a mapping");
  for (size_t i = 0; i < value.node.keys.size(); ++i) {
    if (std::find(known.begin(), known.end(), value.node.keys[i]) == known.end()) {
      return UnknownKey(value.Member(i), value.node.keys[i], known);
    }
  }
  return absl::OkStatus();
}

std::optional<RecipeValue> FindMember(const RecipeValue& map, absl::string_view key) {
  for (size_t i = 0; i < map.node.keys.size(); ++i) {
    if (map.node.keys[i] == key && !map.node.items[i].is_null()) return map.Member(i);
  }
  return std::nullopt;
}

absl::StatusOr<std::string> ReadText(const RecipeValue& value) {
  if (!value.node.is_string() || value.node.text.empty()) return UnexpectedValue(value, "a name");
  return value.node.text;
}

absl::StatusOr<std::vector<std::string>> ReadPatterns(const RecipeValue& value) {
  std::vector<std::string> patterns;
  const auto add = [&](const RecipeValue& item) -> absl::Status {
    ASSIGN_OR_RETURN(const std::string text, ReadText(item));
    const absl::Status parsed = ModulePattern::Parse(text).status();
    if (!parsed.ok()) return BadFileError(item.Where(), ": ", parsed.message());
    patterns.push_back(text);
    return absl::OkStatus();
  };
  if (!value.node.is_sequence()) {
    RETURN_IF_ERROR(add(value));
    return patterns;
  }
  for (size_t i = 0; i < value.node.items.size(); ++i) RETURN_IF_ERROR(add(value.Item(i)));
  return patterns;
}

absl::StatusOr<double> ReadNumber(const RecipeValue& value, double min, double max) {
  const bool number = value.node.kind == YamlNode::Kind::kInt || value.node.kind == YamlNode::Kind::kDouble;
  double result = 0;
  if (!number || !absl::SimpleAtod(value.node.text, &result) || result < min || result > max) {
    return UnexpectedValue(value, absl::StrCat("a number from ", min, " to ", max));
  }
  return result;
}

absl::StatusOr<int> ReadCount(const RecipeValue& value, int max) {
  int result = 0;
  if (value.node.kind != YamlNode::Kind::kInt || !absl::SimpleAtoi(value.node.text, &result) || result < 1 || result > max) {
    return UnexpectedValue(value, absl::StrCat("an integer from 1 to ", max));
  }
  return result;
}

absl::StatusOr<bool> ReadFlag(const RecipeValue& value) {
  if (value.node.kind != YamlNode::Kind::kBool) return UnexpectedValue(value, "true or false");
  return ToJson(value.node).get<bool>();
}

}  // namespace pith
