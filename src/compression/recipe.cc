#include "compression/recipe.h"

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "compression/modifier.h"
#include "quantization/module_pattern.h"

namespace pith {
namespace {

absl::Status ParseGroupSize(absl::string_view flag, const std::string& text, const QuantizationScheme& scheme,
                            QuantizationStrategy& strategy, int& group_size) {
  strategy = QuantizationStrategy::kGroup;
  group_size = 0;
  if (text == "auto") {
    strategy = scheme.weights->strategy;
  } else if (text == "channel") {
    strategy = QuantizationStrategy::kChannel;
  } else if (text == "tensor") {
    strategy = QuantizationStrategy::kTensor;
  } else if (!absl::SimpleAtoi(text, &group_size) || group_size < 1) {
    return UsageError(flag, ": expected auto, channel, tensor or a positive number, found ", Printable(text, 40));
  }
  return absl::OkStatus();
}

absl::StatusOr<QuantizationScheme> FindQuantizingScheme(absl::string_view flag, const std::string& name) {
  ASSIGN_OR_RETURN(QuantizationScheme scheme, FindScheme(name));
  if (scheme.weights.has_value()) return scheme;
  return UsageError(flag, " ", scheme.name,
                    ": expected a scheme that quantizes weights; pith convert writes bf16, and --kv-cache declares a "
                    "KV cache for it");
}

// The other methods make channels smaller or codes make up for each other, which the outlier columns would have to be part of; rotations
// leave no such columns.
absl::Status CheckOutlierMethod(const Recipe& recipe) {
  if (!recipe.scheme.HasOutliers() || recipe.method == "rtn" || recipe.method == "llm_int8") return absl::OkStatus();
  return NotSupportedError("--method ", recipe.method, ": expected rtn or llm_int8 for a scheme with outlier columns, found ",
                           recipe.scheme.name);
}

OrderedJson GroupSizeJson(int group_size) { return group_size == 0 ? OrderedJson("auto") : OrderedJson(group_size); }

// As recipes write it.
OrderedJson DuoScalingJson(DuoScaling duo_scaling) {
  if (duo_scaling == DuoScaling::kBoth) return "both";
  return duo_scaling == DuoScaling::kOn;
}

OrderedJson ToJson(const RotationOptions& rotation) {
  return {{"residual", rotation.residual}, {"heads", rotation.heads}, {"random_signs", rotation.random_signs}};
}

OrderedJson ToJson(const SchemeOverride& override) {
  return {{"targets", override.targets},
          {"scheme", override.scheme.name},
          {"strategy", std::string(StrategyName(override.strategy))},
          {"group_size", GroupSizeJson(override.group_size)}};
}

}  // namespace

absl::StatusOr<Recipe> MakeRecipe(const std::string& scheme, const std::string& method, const std::string& group_size,
                                  const std::vector<std::string>& ignore, bool clip_search, uint64_t seed) {
  Recipe recipe;
  ASSIGN_OR_RETURN(recipe.scheme, FindQuantizingScheme("--scheme", scheme));
  recipe.method = method == "auto" ? std::string(BestMethod(recipe.scheme)) : method;
  ASSIGN_OR_RETURN(const MethodRow* row, FindMethod(recipe.method));
  RETURN_IF_ERROR(MakeMethodParts(recipe).status());
  RETURN_IF_ERROR(CheckOutlierMethod(recipe));
  RETURN_IF_ERROR(ParseGroupSize("--group-size", group_size, recipe.scheme, recipe.strategy, recipe.group_size));
  for (const std::string& entry : ignore) {
    const absl::Status parsed = ModulePattern::Parse(entry).status();
    if (!parsed.ok()) return UsageError("--ignore: ", parsed.message());
  }
  recipe.ignore.insert(recipe.ignore.end(), ignore.begin(), ignore.end());
  if (!clip_search || recipe.scheme.weights->type == QuantizationType::kFloat) recipe.clip_search = kNoClipSearch;
  recipe.seed = seed;
  if (row->rotates) recipe.rotation = RotationOptions{.seed = seed};
  return recipe;
}

absl::Status AddOverride(absl::string_view flag, const std::string& scheme, const std::string& group_size,
                         const std::vector<std::string>& targets, Recipe& recipe) {
  if (!recipe.scheme.weights.has_value()) {
    return UsageError(flag, ": expected a recipe that quantizes weights, found the scheme ", recipe.scheme.name);
  }
  SchemeOverride override{.targets = targets};
  ASSIGN_OR_RETURN(override.scheme, FindQuantizingScheme(flag, scheme));
  if (recipe.scheme.HasOutliers() || override.scheme.HasOutliers()) {
    return NotSupportedError(flag, ": expected no scheme beside LLM_INT8, whose format (bitsandbytes) has one for all modules, found ",
                             recipe.scheme.HasOutliers() ? override.scheme.name : recipe.scheme.name);
  }
  RETURN_IF_ERROR(ParseGroupSize(flag, group_size, override.scheme, override.strategy, override.group_size));
  recipe.overrides.push_back(std::move(override));
  return absl::OkStatus();
}

absl::Status QuantizeEmbeddings(const std::string& scheme, const std::string& group_size, Recipe& recipe) {
  return AddOverride("--quantize-embeddings", scheme, group_size, {"Embedding"}, recipe);
}

absl::Status QuantizeHead(const std::string& scheme, const std::string& group_size, Recipe& recipe) {
  std::erase(recipe.ignore, "lm_head");
  return AddOverride("--quantize-head", scheme, group_size, {"lm_head"}, recipe);
}

Recipe MakeDenseRecipe(uint64_t seed) { return {.scheme = *FindScheme("BF16"), .ignore = {}, .clip_search = kNoClipSearch, .seed = seed}; }

absl::Status SetKvCache(const std::string& name, Recipe& recipe) {
  const absl::StatusOr<KvCacheScheme> scheme = FindKvCacheScheme(name);
  if (!scheme.ok()) return Annotate(scheme.status(), "--kv-cache");
  recipe.kv_cache = *scheme;
  return absl::OkStatus();
}

std::string SettingName(const Recipe& recipe, absl::string_view setting) {
  return recipe.source.empty() ? absl::StrCat("--", setting) : absl::StrCat(Printable(recipe.source, 500), ": ", setting);
}

OrderedJson ToJson(const Recipe& recipe) {
  OrderedJson overrides = OrderedJson::array();
  for (const SchemeOverride& override : recipe.overrides) overrides.push_back(ToJson(override));
  return {{"scheme", recipe.scheme.name},
          {"method", recipe.method},
          {"strategy", std::string(StrategyName(recipe.strategy))},
          {"group_size", GroupSizeJson(recipe.group_size)},
          {"overrides", overrides},
          {"ignore", recipe.ignore},
          {"clip_search",
           {{"grid", recipe.clip_search.grid}, {"max_shrink", recipe.clip_search.max_shrink}, {"norm", recipe.clip_search.norm}}},
          {"damping", recipe.damping},
          {"activation_order", recipe.activation_order},
          {"refit_scales", recipe.refit_scales},
          {"awq", {{"grid", recipe.awq_grid}, {"duo_scaling", DuoScalingJson(recipe.duo_scaling)}}},
          {"smoothing_strength", recipe.smoothing_strength.has_value() ? OrderedJson(*recipe.smoothing_strength) : OrderedJson("searched")},
          {"rotation", recipe.rotation.has_value() ? ToJson(*recipe.rotation) : OrderedJson(nullptr)},
          {"kv_cache", recipe.kv_cache.has_value() ? OrderedJson(std::string(recipe.kv_cache->name)) : OrderedJson(nullptr)},
          {"seed", recipe.seed}};
}

}  // namespace pith
