#include "compression/recipe.h"

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "compression/modifier.h"
#include "quantization/module_pattern.h"

namespace pith {
namespace {

absl::Status ParseGroupSize(const std::string& text, Recipe& recipe) {
  recipe.strategy = QuantizationStrategy::kGroup;
  if (text == "auto") {
    recipe.strategy = recipe.scheme.weights->strategy;
  } else if (text == "channel") {
    recipe.strategy = QuantizationStrategy::kChannel;
  } else if (text == "tensor") {
    recipe.strategy = QuantizationStrategy::kTensor;
  } else if (!absl::SimpleAtoi(text, &recipe.group_size) || recipe.group_size < 1) {
    return UsageError("--group-size: expected auto, channel, tensor or a positive number, found ", Printable(text, 40));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Recipe> MakeRecipe(const std::string& scheme, const std::string& method, const std::string& group_size,
                                  const std::vector<std::string>& ignore, bool clip_search, uint64_t seed) {
  Recipe recipe;
  ASSIGN_OR_RETURN(recipe.scheme, FindScheme(scheme));
  if (!recipe.scheme.weights.has_value()) {
    return UsageError("--scheme ", recipe.scheme.name, ": expected a scheme that quantizes weights; pith convert writes bf16");
  }
  recipe.method = method == "auto" ? std::string(BestMethod(recipe.scheme)) : method;
  ASSIGN_OR_RETURN(const MethodRow* row, FindMethod(recipe.method));
  if (row->make_scaler != nullptr) RETURN_IF_ERROR(row->make_scaler(recipe).status());
  RETURN_IF_ERROR(row->make_quantizer(recipe).status());
  RETURN_IF_ERROR(ParseGroupSize(group_size, recipe));
  for (const std::string& entry : ignore) {
    const absl::Status parsed = ModulePattern::Parse(entry).status();
    if (!parsed.ok()) return UsageError("--ignore: ", parsed.message());
  }
  recipe.ignore.insert(recipe.ignore.end(), ignore.begin(), ignore.end());
  if (!clip_search || recipe.scheme.weights->type == QuantizationType::kFloat) recipe.clip_search = kNoClipSearch;
  recipe.seed = seed;
  return recipe;
}

OrderedJson ToJson(const Recipe& recipe) {
  return {{"scheme", recipe.scheme.name},
          {"method", recipe.method},
          {"strategy", std::string(StrategyName(recipe.strategy))},
          {"group_size", recipe.group_size == 0 ? OrderedJson("auto") : OrderedJson(recipe.group_size)},
          {"ignore", recipe.ignore},
          {"clip_search",
           {{"grid", recipe.clip_search.grid}, {"max_shrink", recipe.clip_search.max_shrink}, {"norm", recipe.clip_search.norm}}},
          {"damping", recipe.damping},
          {"activation_order", recipe.activation_order},
          {"refit_scales", recipe.refit_scales},
          {"smoothing_strength", recipe.smoothing_strength.has_value() ? OrderedJson(*recipe.smoothing_strength) : OrderedJson("searched")},
          {"seed", recipe.seed}};
}

}  // namespace pith
