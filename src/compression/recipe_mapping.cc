#include "compression/recipe_mapping.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "artifact/module_names.h"
#include "base/status.h"
#include "compression/modifier.h"
#include "quantization/module_pattern.h"

namespace pith {
namespace {

using enum ModifierKind;

constexpr int kPublishedGroupSize = 128;

// THE TABLE of modifiers that are a method together.
struct Composition {
  absl::string_view method;
  std::vector<ModifierKind> kinds;
};

const std::vector<Composition>& Compositions() {
  static const std::vector<Composition> rows = {{"rtn", {kQuantization}},
                                                {"gptq", {kGptq}},
                                                {"gptq", {kQuantization, kGptq}},  // the first says what to, the second how
                                                {"awq", {kAwq}},
                                                {"awq", {kAwq, kQuantization}},
                                                {"awq+gptq", {kAwq, kGptq}},
                                                {"smoothquant", {kSmoothQuant, kQuantization}},
                                                {"smoothquant+gptq", {kSmoothQuant, kGptq}},
                                                {"rotation", {kSpinQuant, kQuantization}},
                                                {"rotation+gptq", {kSpinQuant, kGptq}}};
  return rows;
}

std::string Describe(const std::vector<ModifierKind>& kinds) {
  return absl::StrJoin(kinds, " + ", [](std::string* out, ModifierKind kind) { absl::StrAppend(out, ModifierKindName(kind)); });
}

// The one modifier that says what to quantize weights to; where there is a KV cache alone, its own.
absl::StatusOr<const ModifierEntry*> FindQuantizer(const RecipeDocument& document) {
  const ModifierEntry* quantizer = nullptr;
  for (const ModifierEntry& entry : document.modifiers) {
    if (!entry.has_scheme()) continue;
    if (quantizer != nullptr) {
      return NotSupportedError(entry.Where(), ": a second scheme beside that of ", quantizer->path,
                               " is not supported: one for all modules");
    }
    quantizer = &entry;
  }
  if (quantizer != nullptr) return quantizer;
  const ModifierEntry& first = document.modifiers[0];
  if (document.modifiers.size() == 1 && first.kind == kQuantization && first.kv_cache_scheme.has_value()) return &first;
  return BadFileError(document.modifiers.back().Where(), ": expected a scheme or config_groups in one of the modifiers, found none");
}

absl::Status CheckTargets(const std::vector<std::string>& targets, const std::string& where) {
  if (targets == std::vector<std::string>{"Linear"}) return absl::OkStatus();
  return NotSupportedError(
      where, ": targets ",
      absl::StrJoin(targets, " ", [](std::string* out, const std::string& target) { absl::StrAppend(out, Printable(target, 60)); }),
      " are not supported beside the scheme's own");
}

// What a scheme of the document is here: a preset and how its weights share scales, in the words of MakeRecipe.
struct SchemeChoice {
  std::string scheme, group_size = "auto";
  std::vector<std::string> targets;
  std::string where;
  ObserverChoice observer;
  std::optional<ActivationOrder> actorder;
};

bool TargetsLinear(const SchemeChoice& choice) {
  return std::find(choice.targets.begin(), choice.targets.end(), "Linear") != choice.targets.end();
}

absl::StatusOr<SchemeChoice> ChoosePreset(const PresetTargets& preset, const ModifierEntry& entry) {
  SchemeChoice choice{.where = absl::StrCat("line ", preset.line, ": ", entry.path, ".scheme")};
  const bool int8 = absl::AsciiStrToUpper(preset.scheme) == "INT8";
  const absl::StatusOr<QuantizationScheme> scheme = FindScheme(int8 ? "W8A8" : preset.scheme);
  if (!scheme.ok()) return Annotate(scheme.status(), choice.where);
  choice.scheme = scheme->name;
  const bool grouped = scheme->weights.has_value() && scheme->weights->strategy == QuantizationStrategy::kGroup;
  if (grouped) choice.group_size = absl::StrCat(kPublishedGroupSize);
  return choice;
}

absl::StatusOr<SchemeChoice> ChooseGroup(const ConfigGroup& group, const ModifierEntry& entry) {
  SchemeChoice choice{.where = absl::StrCat("line ", group.line, ": ", entry.path, ".", Printable(group.name, 60))};
  if (!group.weights.has_value()) return NotSupportedError(choice.where, ": a group without quantized weights is not supported");
  std::optional<QuantizationArgs> inputs;
  if (group.input_activations.has_value()) {
    inputs = group.input_activations->args;
    RETURN_IF_ERROR(Annotate(ValidateInput(*inputs), absl::StrCat(choice.where, ".input_activations")));
  }
  const QuantizationArgs& weights = group.weights->args;
  choice.scheme = std::string(PresetName(weights, inputs));
  if (choice.scheme.empty()) {
    return NotSupportedError(choice.where, ": no scheme has these ", weights.num_bits, "-bit weights with ",
                             inputs.has_value() ? absl::StrCat("activations ", DescribeInput(*inputs)) : "16-bit activations");
  }
  ASSIGN_OR_RETURN(const QuantizationScheme scheme, FindScheme(choice.scheme));
  if (!group.format.empty() && group.format != scheme.format) {
    return NotSupportedError(choice.where, ".format: expected ", scheme.format, ", found ", Printable(group.format, 60));
  }
  if (weights.strategy == QuantizationStrategy::kGroup) choice.group_size = absl::StrCat(weights.group_size);
  if (weights.strategy == QuantizationStrategy::kChannel) choice.group_size = "channel";
  if (weights.strategy == QuantizationStrategy::kTensor) choice.group_size = "tensor";
  if (weights.strategy == QuantizationStrategy::kBlock && weights != scheme.weights) {
    return NotSupportedError(choice.where, ": blocks of ", weights.block_rows, "x", weights.block_cols, " are not supported here");
  }
  choice.observer = group.weights->observer;
  choice.actorder = group.weights->actorder;
  return choice;
}

// The schemes of a modifier, the main one first: the first that targets Linear, else the first of all.
absl::StatusOr<std::vector<SchemeChoice>> ChooseSchemes(const ModifierEntry& entry) {
  std::vector<SchemeChoice> choices;
  const auto add = [&](absl::StatusOr<SchemeChoice> choice, const std::vector<std::string>& own) -> absl::Status {
    if (!choice.ok()) return choice.status();
    choice->targets = own.empty() ? entry.targets.value_or(std::vector<std::string>{"Linear"}) : own;
    if (!entry.weight_observer.empty()) choice->observer.name = entry.weight_observer;
    choices.push_back(*std::move(choice));
    return absl::OkStatus();
  };
  for (const PresetTargets& preset : entry.schemes) RETURN_IF_ERROR(add(ChoosePreset(preset, entry), preset.targets));
  for (const ConfigGroup& group : entry.config_groups) RETURN_IF_ERROR(add(ChooseGroup(group, entry), group.targets));
  const auto main = std::find_if(choices.begin(), choices.end(), TargetsLinear);
  if (main != choices.end()) std::rotate(choices.begin(), main, main + 1);
  const ObserverChoice& first = choices[0].observer;
  for (const SchemeChoice& choice : choices) {
    const ObserverChoice& other = choice.observer;
    if (other.name != first.name || other.search.grid != first.search.grid || other.search.max_shrink != first.search.max_shrink ||
        other.search.norm != first.search.norm) {
      return NotSupportedError(choice.where, ": another observer than that of ", choices[0].where, " is not supported");
    }
  }
  return choices;
}

bool IsMinMax(absl::string_view observer) {
  return observer.empty() || observer == "minmax" || observer == "static_minmax" || observer == "memoryless_minmax";
}

// The clipping search that an observer of weights stands for. Without one, that of the method.
absl::StatusOr<ClipSearch> ChooseClipSearch(const SchemeChoice& choice) {
  const std::string& name = choice.observer.name;
  if (name.empty()) return ClipSearch();
  if (IsMinMax(name)) return kNoClipSearch;
  if (name == "mse" || name == "memoryless_mse") return choice.observer.search;
  return NotSupportedError(choice.where, ": observer ", Printable(name, 60), " of weights is not supported; supported are minmax and mse");
}

// Static scales of activations are those of the largest magnitude seen; dynamic ones are found at run time, whatever is said.
absl::Status CheckInputObservers(const ModifierEntry& entry, const Recipe& recipe) {
  bool is_static = recipe.scheme.NeedsCalibration();
  for (const SchemeOverride& override : recipe.overrides) is_static = is_static || override.scheme.NeedsCalibration();
  std::vector<std::string> names = {entry.input_observer};
  for (const ConfigGroup& group : entry.config_groups) {
    if (group.input_activations.has_value() && !group.input_activations->args.dynamic) {
      names.push_back(group.input_activations->observer.name);
    }
  }
  for (const std::string& name : names) {
    if (!is_static || IsMinMax(name)) continue;
    return NotSupportedError(entry.Where(), ": observer ", Printable(name, 60), " of static activations is not supported, only minmax");
  }
  return absl::OkStatus();
}

// "smooth -> balance balance", without the "re:.*" and "$" that recipes write or leave out.
std::string MappingName(const LayerMapping& mapping) {
  const auto bare = [](absl::string_view pattern) {
    if (!absl::ConsumePrefix(&pattern, "re:.*")) absl::ConsumePrefix(&pattern, "re:");
    absl::ConsumeSuffix(&pattern, "$");
    return std::string(pattern);
  };
  std::set<std::string> balance;
  for (const std::string& layer : mapping.balance_layers) balance.insert(bare(layer));
  return absl::StrCat(bare(mapping.smooth_layer), " -> ", absl::StrJoin(balance, " "));
}

// Only the mappings that the method has anyway: the pipeline scales all four inputs of a layer.
absl::Status CheckMappings(const ModifierEntry& entry, std::vector<std::string>& notes) {
  if (!entry.mappings.has_value()) return absl::OkStatus();
  const std::set<std::string> norms = {"input_layernorm -> k_proj q_proj v_proj", "post_attention_layernorm -> gate_proj up_proj"};
  std::set<std::string> all = norms, found;
  all.insert({"v_proj -> o_proj", "up_proj -> down_proj"});
  for (const LayerMapping& mapping : *entry.mappings) found.insert(MappingName(mapping));
  if (found == all) return absl::OkStatus();
  if (found == norms && entry.kind == kSmoothQuant) {
    notes.push_back(absl::StrCat(entry.Where("mappings"), ": the inputs of o_proj and down_proj are scaled too"));
    return absl::OkStatus();
  }
  return NotSupportedError(entry.Where("mappings"), ": expected none or the default ones (", absl::StrJoin(all, ", "), "), found ",
                           Printable(absl::StrJoin(found, ", "), 200));
}

// Options that a Recipe cannot carry are refused unless they say what the method does anyway.
absl::Status CheckOptions(const ModifierEntry& entry, const ModifierEntry& quantizer, std::vector<std::string>& notes) {
  if (&entry != &quantizer && entry.targets.has_value()) RETURN_IF_ERROR(CheckTargets(*entry.targets, entry.Where("targets")));
  // SmoothQuant's list names layers that are not smoothed.
  if (&entry != &quantizer && entry.ignore.has_value() && entry.ignore != quantizer.ignore) {
    return NotSupportedError(entry.Where("ignore"), ": expected what ", quantizer.path, " ignores, found another list");
  }
  return CheckMappings(entry, notes);
}

// The KV cache that a modifier declares, with scales of the largest magnitude seen.
absl::Status TakeKvCache(const ModifierEntry& entry, Recipe& recipe) {
  if (!entry.kv_cache_scheme.has_value()) return absl::OkStatus();
  const std::string where = entry.Where("kv_cache_scheme");
  if (recipe.kv_cache.has_value()) return NotSupportedError(where, ": a second KV cache scheme is not supported");
  const absl::StatusOr<KvCacheScheme> scheme = FindKvCacheScheme(entry.kv_cache_scheme->args);
  if (!scheme.ok()) return Annotate(scheme.status(), where);
  const std::string& observer = entry.kv_cache_scheme->observer.name;
  if (scheme->NeedsCalibration() && !IsMinMax(observer)) {
    return NotSupportedError(where, ": observer ", Printable(observer, 60), " is not supported, only minmax");
  }
  recipe.kv_cache = *scheme;
  return absl::OkStatus();
}

// A document that quantizes nothing but the KV cache.
absl::StatusOr<MappedRecipe> KvCacheRecipe(const RecipeDocument& document, const ModifierEntry& entry, uint64_t seed) {
  MappedRecipe mapped{.recipe = MakeDenseRecipe(seed)};
  RETURN_IF_ERROR(TakeKvCache(entry, mapped.recipe));
  for (const char* key : {"targets", "ignore"}) {
    if (entry.lines.contains(key)) mapped.notes.push_back(absl::StrCat(entry.Where(key), ": has no effect without a scheme"));
  }
  for (const std::string& place : document.without_effect) mapped.notes.push_back(absl::StrCat(place, ": has no effect here"));
  return mapped;
}

// The options of methods that a Recipe carries.
absl::Status TakeOptions(const ModifierEntry& entry, const SchemeChoice& choice, Recipe& recipe) {
  if (entry.dampening_frac.has_value()) recipe.damping = *entry.dampening_frac;
  if (entry.smoothing_strength.has_value()) recipe.smoothing_strength = *entry.smoothing_strength;
  if (entry.duo_scaling.has_value()) recipe.duo_scaling = *entry.duo_scaling;
  if (entry.n_grid.has_value()) recipe.awq_grid = *entry.n_grid;
  if (entry.kind == kSpinQuant) {
    recipe.rotation->residual = entry.rotate_residual;
    recipe.rotation->heads = entry.rotate_heads;
    recipe.rotation->random_signs = entry.random_signs;
  }
  if (!entry.actorder.has_value()) return absl::OkStatus();
  recipe.activation_order = *entry.actorder == ActivationOrder::kStatic;
  if (!recipe.activation_order && choice.actorder == ActivationOrder::kStatic) {
    return BadFileError(entry.Where("actorder"), ": expected the order of the weights' arguments (static), found none");
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> MatchesAny(const std::vector<std::string>& patterns, const std::string& module) {
  for (const std::string& text : patterns) {
    ASSIGN_OR_RETURN(const ModulePattern pattern, ModulePattern::Parse(text));
    ASSIGN_OR_RETURN(const ModulePattern::Match match, pattern.Matches(module, ModuleClassName(module)));
    if (match != ModulePattern::Match::kNone) return true;
  }
  return false;
}

// The modules that will be there: rotating the residual stream makes a tied head a matrix of its own.
std::vector<std::string> NamesAfter(const Recipe& recipe, absl::Span<const std::string> module_names) {
  std::vector<std::string> names(module_names.begin(), module_names.end());
  const bool rotated = recipe.rotation.has_value() && recipe.rotation->residual;
  if (rotated && std::find(names.begin(), names.end(), "lm_head") == names.end()) names.emplace_back("lm_head");
  return names;
}

// Entries that match a module of the model; the others are noted.
absl::StatusOr<std::vector<std::string>> ChooseIgnore(const ModifierEntry& entry, absl::Span<const std::string> module_names,
                                                      std::vector<std::string>& notes) {
  std::vector<std::string> ignore;
  const bool has_head = std::find(module_names.begin(), module_names.end(), "lm_head") != module_names.end();
  if (!has_head) ignore.push_back("lm_head");
  for (const std::string& text : entry.ignore.value_or(std::vector<std::string>())) {
    bool found = false;
    for (const std::string& name : module_names) {
      ASSIGN_OR_RETURN(const bool matches, MatchesAny({text}, name));
      found = found || matches;
    }
    const bool listed = std::find(ignore.begin(), ignore.end(), text) != ignore.end();
    if (found && !listed) ignore.push_back(text);
    if (!found && text != "lm_head") {
      notes.push_back(absl::StrCat(entry.Where("ignore"), ": ", Printable(text, 60), " matches no module of this model"));
    }
  }
  return ignore;
}

// The main scheme is for every Linear module that no other is for. Where it has narrower targets, what no scheme is for is ignored.
absl::Status AddSchemes(const std::vector<SchemeChoice>& choices, absl::Span<const std::string> module_names, Recipe& recipe) {
  std::vector<std::string> more = choices[0].targets;
  std::erase(more, "Linear");
  if (TargetsLinear(choices[0]) && !more.empty()) {
    RETURN_IF_ERROR(AddOverride(choices[0].where, choices[0].scheme, choices[0].group_size, more, recipe));
  }
  for (size_t i = 1; i < choices.size(); ++i) {
    RETURN_IF_ERROR(AddOverride(choices[i].where, choices[i].scheme, choices[i].group_size, choices[i].targets, recipe));
  }
  if (TargetsLinear(choices[0])) return absl::OkStatus();
  for (const std::string& module : module_names) {
    if (ModuleClassName(module) != "Linear") continue;
    int matching = 0;
    for (const SchemeChoice& choice : choices) {
      ASSIGN_OR_RETURN(const bool matches, MatchesAny(choice.targets, module));
      matching += matches ? 1 : 0;
    }
    ASSIGN_OR_RETURN(const bool ignored, MatchesAny(recipe.ignore, module));
    if (matching > 1 && !ignored) return NotSupportedError(choices[0].where, ": ", module, " is a target of several schemes");
    if (matching == 0 && !ignored) recipe.ignore.push_back(module);
  }
  return absl::OkStatus();
}

// The pipeline observes the inputs of decoder layers, and the head is not in one: no static scale is found for its input.
absl::Status CheckHead(const Recipe& recipe, const ModifierEntry& quantizer, absl::Span<const std::string> module_names) {
  const bool has_head = std::find(module_names.begin(), module_names.end(), "lm_head") != module_names.end();
  bool is_static = recipe.scheme.NeedsCalibration();
  for (const SchemeOverride& override : recipe.overrides) is_static = is_static || override.scheme.NeedsCalibration();
  ASSIGN_OR_RETURN(const bool ignored, MatchesAny(recipe.ignore, "lm_head"));
  if (!has_head || !is_static || ignored) return absl::OkStatus();
  return NotSupportedError(quantizer.Where("ignore"),
                           ": expected lm_head in the list, found it missing: static activations are measured in decoder layers only");
}

}  // namespace

absl::StatusOr<std::string> MethodOf(const RecipeDocument& document) {
  std::vector<ModifierKind> kinds;
  for (const ModifierEntry& entry : document.modifiers) kinds.push_back(entry.kind);
  RETURN_IF_ERROR(FindQuantizer(document).status());
  for (const Composition& row : Compositions()) {
    if (row.kinds == kinds) return std::string(row.method);
  }
  return NotSupportedError(
      document.modifiers[0].Where(), ": ", Describe(kinds), " together in this order are not supported; supported are ",
      absl::StrJoin(Compositions(), ", ", [](std::string* out, const Composition& row) { absl::StrAppend(out, Describe(row.kinds)); }));
}

absl::StatusOr<MappedRecipe> RecipeOf(const RecipeDocument& document, absl::Span<const std::string> module_names, uint64_t seed) {
  ASSIGN_OR_RETURN(const std::string method, MethodOf(document));
  ASSIGN_OR_RETURN(const ModifierEntry* quantizer, FindQuantizer(document));
  if (!quantizer->has_scheme()) return KvCacheRecipe(document, *quantizer, seed);
  ASSIGN_OR_RETURN(const std::vector<SchemeChoice> choices, ChooseSchemes(*quantizer));
  const SchemeChoice& choice = choices[0];
  ASSIGN_OR_RETURN(const ClipSearch clip_search, ChooseClipSearch(choice));
  const absl::Status known = FindMethod(method).status();
  if (!known.ok()) return Annotate(known, document.modifiers[0].Where());
  MappedRecipe mapped;
  for (const ModifierEntry& entry : document.modifiers) RETURN_IF_ERROR(CheckOptions(entry, *quantizer, mapped.notes));
  for (const std::string& place : document.without_effect) mapped.notes.push_back(absl::StrCat(place, ": has no effect here"));
  absl::StatusOr<Recipe> recipe = MakeRecipe(choice.scheme, method, choice.group_size, {}, clip_search.num_candidates() > 1, seed);
  if (!recipe.ok()) {
    const std::string message = absl::StrCat(choice.where, ": ", recipe.status().message());
    return absl::IsInvalidArgument(recipe.status()) ? BadFileError(message) : absl::Status(recipe.status().code(), message);
  }
  if (recipe->clip_search.num_candidates() > 1) recipe->clip_search = clip_search;
  for (const ModifierEntry& entry : document.modifiers) {
    RETURN_IF_ERROR(TakeOptions(entry, choice, *recipe));
    RETURN_IF_ERROR(TakeKvCache(entry, *recipe));
  }
  const std::vector<std::string> names = NamesAfter(*recipe, module_names);
  ASSIGN_OR_RETURN(recipe->ignore, ChooseIgnore(*quantizer, names, mapped.notes));
  RETURN_IF_ERROR(AddSchemes(choices, names, *recipe));
  RETURN_IF_ERROR(CheckInputObservers(*quantizer, *recipe));
  RETURN_IF_ERROR(CheckHead(*recipe, *quantizer, names));
  mapped.recipe = *std::move(recipe);
  return mapped;
}

}  // namespace pith
