// Any bytes as a recipe: read or refused with one printable message that begins with a line number or says what is too large, and a recipe
// that is read is mapped or refused likewise.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "compression/recipe_mapping.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto check = [](const absl::Status& status) {
    CHECK(absl::IsDataLoss(status) || absl::IsUnimplemented(status) || absl::IsInvalidArgument(status));
    for (const char c : status.message()) CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
  };
  const auto document = pith::ParseRecipeDocument({reinterpret_cast<const char*>(data), size});
  if (!document.ok()) {
    check(document.status());
    return 0;
  }
  CHECK(!document->modifiers.empty());
  const auto recipe = pith::RecipeOf(*document, {});
  if (!recipe.ok()) check(recipe.status());
  return 0;
}
