// What to do to a model: a scheme, a method and the modules it leaves alone. Built from flags, or from a document in YAML
// (recipe_mapping.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json.h"
#include "compression/modifiers/awq_search.h"
#include "compression/modifiers/rotation_solver.h"
#include "quantization/kv_cache_scheme.h"
#include "quantization/qparams.h"
#include "quantization/quantization_scheme.h"

namespace pith {

// Another scheme for some modules.
struct SchemeOverride {
  std::vector<std::string> targets;  // module names, class names, "re:..." patterns
  QuantizationScheme scheme;         // as in the table of presets
  QuantizationStrategy strategy = QuantizationStrategy::kGroup;
  int group_size = 0;  // as in Recipe
};

struct Recipe {
  QuantizationScheme scheme;                                     // as in the table of presets; BF16: weights stay as they are
  std::string method = "rtn";                                    // a row of modifiers/method_table.cc
  QuantizationStrategy strategy = QuantizationStrategy::kGroup;  // of the weights
  int group_size = 0;                                            // with kGroup; 0: ResolveGroupSize chooses
  std::vector<SchemeOverride> overrides;                         // each target beats the class "Linear" of the recipe's own scheme
  std::vector<std::string> ignore = {"lm_head"};                 // module names, class names, "re:..." patterns
  ClipSearch clip_search;                                        // kNoClipSearch: scales from the range alone
  double damping = 0.01;                                         // GptqOptions
  bool activation_order = true, refit_scales = true;             // GptqOptions
  int awq_grid = 20;                                             // AwqOptions
  DuoScaling duo_scaling = DuoScaling::kOn;                      // AwqOptions
  std::optional<double> smoothing_strength;                      // SmoothQuantOptions::alpha; else searched
  uint64_t seed = 0;                                             // of whatever the method draws
  std::optional<RotationOptions> rotation;                       // of the model, where the method rotates
  std::optional<KvCacheScheme> kv_cache;                         // what the artifact declares of its KV cache; nothing: nothing
  std::string source;                                            // for messages: the file it was read from; empty: flags
};

// What a message calls a setting: "--ignore", or "recipe.yaml: ignore".
std::string SettingName(const Recipe& recipe, absl::string_view setting);

// `group_size` is "auto" (what the scheme has: groups, of the size that ResolveGroupSize chooses, channels or blocks), "channel", "tensor"
// or a number. `method` is a row of the table of methods, or "auto": the best known for the scheme (BestMethod). Float codes are never
// searched for a clipping range (qparams.h). Errors: kInvalidArgument for another text or an entry of `ignore` that is no pattern;
// kUnimplemented for an unknown scheme or method, with the known ones, and for a method that does not go with the scheme.
absl::StatusOr<Recipe> MakeRecipe(const std::string& scheme, const std::string& method, const std::string& group_size,
                                  const std::vector<std::string>& ignore, bool clip_search, uint64_t seed);

// Gives modules a scheme of their own; `group_size` as above. Errors as above, with `flag` to name what asked for it.
absl::Status AddOverride(absl::string_view flag, const std::string& scheme, const std::string& group_size,
                         const std::vector<std::string>& targets, Recipe& recipe);
// The embedding, with the head where it is tied; and a head of its own. With calibration data the method chooses the integer codes of a
// head, tied or not; an embedding that is none, and all without data, is rounded to nearest.
absl::Status QuantizeEmbeddings(const std::string& scheme, const std::string& group_size, Recipe& recipe);
absl::Status QuantizeHead(const std::string& scheme, const std::string& group_size, Recipe& recipe);

// A recipe that leaves every weight as it is: something for SetKvCache.
Recipe MakeDenseRecipe(uint64_t seed);
// `name` as in the table of KV cache schemes. Errors: those of FindKvCacheScheme.
absl::Status SetKvCache(const std::string& name, Recipe& recipe);

// What the manifest records: everything that decides the bytes of the artifact, so not the source.
OrderedJson ToJson(const Recipe& recipe);

}  // namespace pith
