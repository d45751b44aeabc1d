// What an llm-compressor recipe means here: a RecipeDocument as a Recipe. docs/recipes.md says which modifiers and fields are supported.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/recipe.h"
#include "compression/recipe_document.h"

namespace pith {

struct MappedRecipe {
  Recipe recipe;
  std::vector<std::string> notes;  // what the document says that changes nothing, a sentence each; begins with line and path
};

// The name of the method that the modifiers are together, whether there is such a method here or not: "rtn", "gptq", "awq", "awq+gptq",
// "smoothquant", "smoothquant+gptq", "rotation", "rotation+gptq". Errors: kUnimplemented for other modifiers or another order; kDataLoss
// when none says what to quantize to.
absl::StatusOr<std::string> MethodOf(const RecipeDocument& document);

// `module_names` are those of the model's modules with a weight (ArtifactReader::WeightNames). An entry of `ignore` that matches none of
// them is left out and noted, since recipes name the towers of models that may have none. A model without lm_head gets lm_head ignored:
// its head is the embedding, and readers expect it so. Unlike MakeRecipe, lm_head is quantized where the model has one and the document
// does not ignore it, and so is a tied head that a rotation makes a matrix of its own; with static activations it must be ignored. Presets
// with groups mean groups of 128, as published. Of several schemes the one that targets Linear is the recipe's own and the others are
// overrides; where none does, modules that no scheme targets are ignored. A QuantizationModifier with a KV cache scheme alone leaves every
// weight as it is. Pure and thread-safe. Errors: kUnimplemented naming line, path and value for what the pipelines do not have: another
// method per scheme, methods, KV cache schemes and options that are not there; kDataLoss for contradictions.
absl::StatusOr<MappedRecipe> RecipeOf(const RecipeDocument& document, absl::Span<const std::string> module_names, uint64_t seed = 0);

}  // namespace pith
