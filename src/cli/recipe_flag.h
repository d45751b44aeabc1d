// --recipe FILE: an llm-compressor recipe in place of the flags that say what to do.
#pragma once

#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "compression/recipe.h"

namespace pith {

// Adds the flag, which excludes those of `app` that it takes the place of; call it after they were added.
void AddRecipeFlag(CLI::App& app, std::string& path);

// The recipe that the file means for this model; what it says in vain is noted on stderr, unless `quiet`. Errors: those of
// ReadRecipeDocument and RecipeOf, beginning with the path.
absl::StatusOr<Recipe> ReadRecipeFlag(const std::string& path, const ArtifactReader& reader, uint64_t seed, bool quiet);

}  // namespace pith
