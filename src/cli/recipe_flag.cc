#include "cli/recipe_flag.h"

#include "base/log.h"
#include "base/status.h"
#include "compression/recipe_mapping.h"

namespace pith {

void AddRecipeFlag(CLI::App& app, std::string& path) {
  CLI::Option* recipe = app.add_option("--recipe", path,
                                       "llm-compressor recipe (YAML or JSON) that takes the place of --scheme, --method, --group-size, "
                                       "--ignore, --no-clip-search, --quantize-*, --kv-cache and --bits-per-weight; see docs/recipes.md");
  recipe->type_name("FILE");
  for (CLI::Option* option : app.get_options()) {
    for (const char* name : {"--scheme", "--method", "--group-size", "--ignore", "--no-clip-search", "--quantize-embeddings",
                             "--quantize-head", "--kv-cache", "--bits-per-weight"}) {
      if (option->check_name(name)) option->excludes(recipe);
    }
  }
}

absl::StatusOr<Recipe> ReadRecipeFlag(const std::string& path, const ArtifactReader& reader, uint64_t seed, bool quiet) {
  ASSIGN_OR_RETURN(const RecipeDocument document, ReadRecipeDocument(path));
  absl::StatusOr<MappedRecipe> mapped = RecipeOf(document, reader.WeightNames(), seed);
  if (!mapped.ok()) return Annotate(mapped.status(), path);
  for (const std::string& note : mapped->notes) {
    if (!quiet) spdlog::warn("{}: {}", path, note);
  }
  mapped->recipe.source = path;
  return std::move(mapped->recipe);
}

}  // namespace pith
