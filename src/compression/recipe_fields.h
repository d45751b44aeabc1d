// The fields of each modifier of a recipe: which keys there are, and how the value of one is read. The other half of recipe_document.h.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/recipe_document.h"
#include "compression/recipe_value.h"

namespace pith {

struct ModifierClass {
  absl::string_view name;  // "GPTQModifier"
  ModifierKind kind;
};

// THE TABLE of modifiers that are read.
absl::Span<const ModifierClass> ModifierClasses();

// nullptr for a name that is not in the table. Errors: kUnimplemented for a modifier that llm-compressor has and this program has not.
absl::StatusOr<const ModifierClass*> FindModifierClass(absl::string_view name);

// Reads the mapping `value` of fields into `entry`, whose kind is set, and appends to `without_effect` the known keys that change nothing.
// A null is a modifier without fields. Errors: as of ParseRecipeDocument.
absl::Status ReadModifierFields(const RecipeValue& value, ModifierEntry& entry, std::vector<std::string>& without_effect);

}  // namespace pith
