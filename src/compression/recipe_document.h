// An llm-compressor recipe as its YAML (or JSON) says it: a list of modifiers with their fields, each checked for its type and its place.
// What the fields mean to this program is decided by RecipeOf (recipe_mapping.h). Forms and fields: docs/recipes.md.
// Source: llm-compressor `Recipe.from_dict`, `QuantizationMixin`, `GPTQModifier`, `AWQModifier`, `SmoothQuantModifier`,
// `SpinQuantModifier`.
//
//   ASSIGN_OR_RETURN(const RecipeDocument document, ReadRecipeDocument("recipe.yaml"));
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compression/modifiers/awq_search.h"
#include "quantization/qparams.h"
#include "quantization/quantization_args.h"

namespace pith {

enum class ModifierKind { kQuantization, kGptq, kAwq, kSmoothQuant, kSpinQuant };

absl::string_view ModifierKindName(ModifierKind kind);  // "GPTQModifier"

// The order in which GPTQ codes columns. The order that permutes stored groups is refused when it is read.
enum class ActivationOrder { kNone, kStatic };

// How a range of values is found, for weights: "minmax" and its variants, "mse", ... Empty: not said.
struct ObserverChoice {
  std::string name;
  ClipSearch search;  // grid, maxshrink and norm of observer_kwargs, else the defaults of llm-compressor's mse observer
};

// One QuantizationArgs of a recipe.
struct RecipeArgs {
  int line = 0;
  QuantizationArgs args;
  ObserverChoice observer;
  std::optional<ActivationOrder> actorder;
};

// A preset and the modules it is for; empty targets: those of the modifier.
struct PresetTargets {
  int line = 0;
  std::string scheme;
  std::vector<std::string> targets;
};

// An entry of config_groups, or a scheme that is written out; empty targets: those of the modifier.
struct ConfigGroup {
  int line = 0;
  std::string name;
  std::vector<std::string> targets;
  std::string format;  // empty: not said
  std::optional<RecipeArgs> weights, input_activations;
};

// Layers that share an input, and the layer whose output it is.
struct LayerMapping {
  int line = 0;
  std::string smooth_layer;
  std::vector<std::string> balance_layers;
};

// One modifier. A field that is absent or null is empty; `lines` has the line of every key that is there.
struct ModifierEntry {
  ModifierKind kind = ModifierKind::kQuantization;
  std::string path;  // "quant_stage.quant_modifiers.GPTQModifier"
  int line = 0;
  absl::flat_hash_map<std::string, int> lines;

  std::optional<std::vector<std::string>> targets, ignore;
  std::vector<PresetTargets> schemes;
  std::vector<ConfigGroup> config_groups;
  std::optional<RecipeArgs> kv_cache_scheme;
  std::string weight_observer, input_observer;
  std::optional<int> block_size;                      // GPTQ
  std::optional<double> dampening_frac;               // GPTQ: [0, 1], a share of the mean of the Hessian's diagonal
  std::optional<ActivationOrder> actorder;            // GPTQ
  std::optional<DuoScaling> duo_scaling;              // AWQ
  std::optional<int> n_grid;                          // AWQ: points of the search, >= 1
  std::optional<double> smoothing_strength;           // SmoothQuant: alpha, [0, 1]
  std::optional<std::vector<LayerMapping>> mappings;  // AWQ, SmoothQuant
  bool rotate_residual = true, rotate_heads = true;   // SpinQuant: R1, R2
  bool random_signs = false;                          // SpinQuant: "random-hadamard"

  // Whether it says what to quantize to.
  bool has_scheme() const { return !schemes.empty() || !config_groups.empty(); }
  // "line 12: quant_stage.quant_modifiers.GPTQModifier.mappings", for messages; without a key the modifier itself.
  std::string Where(absl::string_view key = {}) const;
};

struct RecipeDocument {
  std::vector<ModifierEntry> modifiers;  // in the order they are applied; not empty
  // "line 9: ...GPTQModifier.offload_hessians": known keys that change nothing here.
  std::vector<std::string> without_effect;
};

// Pure and thread-safe. Errors, with line and path: kDataLoss for bad YAML, an unknown key (with the nearest known one), a value of another
// type or out of range, no modifier; kUnimplemented for modifiers, quantization arguments and values that exist there and not here.
absl::StatusOr<RecipeDocument> ParseRecipeDocument(absl::string_view text);

// The same of a file, whose name begins every message. Errors: those, kNotFound and kAborted.
absl::StatusOr<RecipeDocument> ReadRecipeDocument(const std::string& path);

}  // namespace pith
