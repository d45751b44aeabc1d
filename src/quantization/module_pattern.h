// One entry of `targets` or `ignore` in a quantization_config: a module name, a class name, or "re:" and a regular expression that
// must match from the start of the module name.
// Source: compressed-tensors `match_named_modules`; docs/formats/compressed_tensors.md.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/regex.h"

namespace pith {

class ModulePattern {
 public:
  // How an entry explains a module, weakest first: an exact name beats a regular expression beats a class name.
  enum class Match { kNone, kClass, kRegex, kName };

  // Errors: kDataLoss for an empty entry, one that is too long, or a regular expression that does not compile (with the position).
  static absl::StatusOr<ModulePattern> Parse(absl::string_view text);
  // A module or class name as it is, also when it starts with "re:".
  static ModulePattern Literal(absl::string_view name);

  const std::string& text() const { return text_; }

  // Thread-safe. Errors: kDataLoss when the expression needs more backtracking than the limit (a hostile file).
  absl::StatusOr<Match> Matches(absl::string_view module_name, absl::string_view class_name) const;

 private:
  ModulePattern() = default;

  std::string text_;
  std::optional<Regex> regex_;  // none for a literal
};

}  // namespace pith
