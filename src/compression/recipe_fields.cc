#include "compression/recipe_fields.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "quantization/kv_cache_scheme.h"

namespace pith {
namespace {

// How the value of one key is read; the key is the last part of value.path.
using FieldReader = absl::Status (*)(const RecipeValue& value, ModifierEntry& entry);

using ArgsParser = absl::StatusOr<QuantizationArgs> (*)(const Json& json);

struct Field {
  absl::string_view key;
  FieldReader read = nullptr;  // nullptr: known, but changes nothing here
};

absl::StatusOr<ActivationOrder> ReadActivationOrder(const RecipeValue& value) {
  const Json json = ToJson(value.node);
  if (json.is_null() || json == false) return ActivationOrder::kNone;
  const std::string lower = absl::AsciiStrToLower(value.node.text);
  if (value.node.is_string() && (lower == "static" || lower == "weight")) return ActivationOrder::kStatic;
  if (json == true || (value.node.is_string() && (lower == "group" || lower == "dynamic"))) {
    return NotSupportedError(value.Where(), ": ", DescribeYaml(value.node),
                             " (groups permuted by weight_g_idx) is not supported; \"static\" needs no permutation");
  }
  return UnexpectedValue(value, "null, \"static\", \"weight\", \"group\" or \"dynamic\"");
}

absl::Status ReadObserver(const RecipeValue& args, ObserverChoice& observer) {
  if (const auto name = FindMember(args, "observer")) {
    ASSIGN_OR_RETURN(const std::string text, ReadText(*name));
    observer.name = absl::AsciiStrToLower(text);
  }
  const auto kwargs = FindMember(args, "observer_kwargs");
  if (!kwargs.has_value()) return absl::OkStatus();
  static constexpr absl::string_view kKeys[] = {"maxshrink", "grid", "norm", "patience", "averaging_constant"};
  RETURN_IF_ERROR(CheckKeys(*kwargs, kKeys));
  if (const auto shrink = FindMember(*kwargs, "maxshrink")) {
    ASSIGN_OR_RETURN(observer.search.max_shrink, ReadNumber(*shrink, 0, 1));
  }
  if (const auto norm = FindMember(*kwargs, "norm")) {
    ASSIGN_OR_RETURN(observer.search.norm, ReadNumber(*norm, 0.1, 16));
  }
  if (const auto grid = FindMember(*kwargs, "grid")) {
    ASSIGN_OR_RETURN(const double points, ReadNumber(*grid, 1, 10'000));  // 128.0 is written for it
    if (points != static_cast<int>(points)) return UnexpectedValue(*grid, "a whole number");
    observer.search.grid = static_cast<int>(points);
  }
  return absl::OkStatus();
}

// The key whose value alone gives the same error as the whole, so that the message can name its line.
absl::Status LocateArgsError(const RecipeValue& value, const absl::Status& error, ArgsParser parse) {
  for (size_t i = 0; i < value.node.keys.size(); ++i) {
    const Json single = {{value.node.keys[i], ToJson(value.node.items[i])}};
    if (parse(single).status() != error) continue;
    const std::string prefix = absl::StrCat("\"", value.node.keys[i], "\": ");
    absl::string_view message = error.message();
    if (message.substr(0, prefix.size()) == prefix) message.remove_prefix(prefix.size());
    return absl::Status(error.code(), absl::StrCat(value.Member(i).Where(), ": ", message));
  }
  return Annotate(error, value.Where());
}

absl::StatusOr<RecipeArgs> ReadArgs(const RecipeValue& value, ArgsParser parse = ParseQuantizationArgs) {
  RETURN_IF_ERROR(CheckKeys(value, QuantizationArgsKeys()));
  const absl::StatusOr<QuantizationArgs> args = parse(ToJson(value.node));
  if (!args.ok()) return LocateArgsError(value, args.status(), parse);
  RecipeArgs result{.line = value.line, .args = *args};
  RETURN_IF_ERROR(ReadObserver(value, result.observer));
  if (const auto order = FindMember(value, "actorder")) {
    ASSIGN_OR_RETURN(result.actorder, ReadActivationOrder(*order));
  }
  return result;
}

absl::StatusOr<ConfigGroup> ReadGroup(const RecipeValue& value, const std::string& name) {
  static constexpr absl::string_view kKeys[] = {"targets", "weights", "input_activations", "output_activations", "format"};
  RETURN_IF_ERROR(CheckKeys(value, kKeys));
  ConfigGroup group{.line = value.line, .name = name};
  if (const auto outputs = FindMember(value, "output_activations")) {
    return NotSupportedError(outputs->Where(), ": quantized outputs are not supported");
  }
  if (const auto targets = FindMember(value, "targets")) {
    ASSIGN_OR_RETURN(group.targets, ReadPatterns(*targets));
  }
  if (const auto format = FindMember(value, "format")) {
    ASSIGN_OR_RETURN(group.format, ReadText(*format));
  }
  if (const auto weights = FindMember(value, "weights")) {
    ASSIGN_OR_RETURN(group.weights, ReadArgs(*weights));
  }
  if (const auto inputs = FindMember(value, "input_activations")) {
    ASSIGN_OR_RETURN(group.input_activations, ReadArgs(*inputs));
  }
  return group;
}

absl::Status ReadTargets(const RecipeValue& value, ModifierEntry& entry) {
  ASSIGN_OR_RETURN(entry.targets, ReadPatterns(value));
  if (entry.targets->empty()) return UnexpectedValue(value, "at least one name");
  return absl::OkStatus();
}

absl::Status ReadIgnore(const RecipeValue& value, ModifierEntry& entry) {
  ASSIGN_OR_RETURN(entry.ignore, ReadPatterns(value));
  return absl::OkStatus();
}

// A preset's name; {preset: targets}; or the quantization arguments themselves.
absl::Status ReadScheme(const RecipeValue& value, ModifierEntry& entry) {
  if (!value.node.is_map()) {
    ASSIGN_OR_RETURN(const std::string name, ReadText(value));
    entry.schemes.push_back({.line = value.line, .scheme = name});
    return absl::OkStatus();
  }
  if (value.node.keys.empty()) return UnexpectedValue(value, "the name of a scheme");
  if (FindMember(value, "weights").has_value() || FindMember(value, "input_activations").has_value()) {
    ASSIGN_OR_RETURN(ConfigGroup group, ReadGroup(value, "scheme"));
    entry.config_groups.push_back(std::move(group));
    return absl::OkStatus();
  }
  for (size_t i = 0; i < value.node.keys.size(); ++i) {
    const RecipeValue targets = value.Member(i);
    PresetTargets preset{.line = targets.line, .scheme = value.node.keys[i]};
    ASSIGN_OR_RETURN(preset.targets, ReadPatterns(targets));
    if (preset.targets.empty()) return UnexpectedValue(targets, "at least one name");
    entry.schemes.push_back(std::move(preset));
  }
  return absl::OkStatus();
}

absl::Status ReadConfigGroups(const RecipeValue& value, ModifierEntry& entry) {
  if (!value.node.is_map() || value.node.keys.empty()) return UnexpectedValue(value, "a mapping of groups");
  for (size_t i = 0; i < value.node.keys.size(); ++i) {
    ASSIGN_OR_RETURN(ConfigGroup group, ReadGroup(value.Member(i), value.node.keys[i]));
    if (group.targets.empty()) return BadFileError(value.Member(i).Where(), ": expected targets, found none");
    entry.config_groups.push_back(std::move(group));
  }
  return absl::OkStatus();
}

absl::Status ReadKvCacheScheme(const RecipeValue& value, ModifierEntry& entry) {
  ASSIGN_OR_RETURN(entry.kv_cache_scheme, ReadArgs(value, ParseKvCacheArgs));
  return absl::OkStatus();
}

absl::Status ReadWeightObserver(const RecipeValue& value, ModifierEntry& entry) {
  ASSIGN_OR_RETURN(const std::string name, ReadText(value));
  entry.weight_observer = absl::AsciiStrToLower(name);
  return absl::OkStatus();
}

absl::Status ReadInputObserver(const RecipeValue& value, ModifierEntry& entry) {
  ASSIGN_OR_RETURN(const std::string name, ReadText(value));
  entry.input_observer = absl::AsciiStrToLower(name);
  return absl::OkStatus();
}

// {weights: mse, input: minmax}
absl::Status ReadObservers(const RecipeValue& value, ModifierEntry& entry) {
  static constexpr absl::string_view kKeys[] = {"weights", "input", "output"};
  RETURN_IF_ERROR(CheckKeys(value, kKeys));
  if (const auto weights = FindMember(value, "weights")) RETURN_IF_ERROR(ReadWeightObserver(*weights, entry));
  if (const auto input = FindMember(value, "input")) RETURN_IF_ERROR(ReadInputObserver(*input, entry));
  if (const auto output = FindMember(value, "output")) return NotSupportedError(output->Where(), ": quantized outputs are not supported");
  return absl::OkStatus();
}

absl::Status RefuseOutputObserver(const RecipeValue& value, ModifierEntry&) {
  return NotSupportedError(value.Where(), ": quantized outputs are not supported");
}

absl::Status ReadBypass(const RecipeValue& value, ModifierEntry&) {
  ASSIGN_OR_RETURN(const bool bypass, ReadFlag(value));
  if (bypass) return NotSupportedError(value.Where(), ": true is not supported: a group size must divide every row");
  return absl::OkStatus();
}

absl::Status ReadBlockSize(const RecipeValue& value, ModifierEntry& entry) {
  ASSIGN_OR_RETURN(entry.block_size, ReadCount(value, 1 << 20));
  return absl::OkStatus();
}

absl::Status ReadDampening(const RecipeValue& value, ModifierEntry& entry) {
  ASSIGN_OR_RETURN(entry.dampening_frac, ReadNumber(value, 0, 1));
  return absl::OkStatus();
}

absl::Status ReadOrder(const RecipeValue& value, ModifierEntry& entry) {
  ASSIGN_OR_RETURN(entry.actorder, ReadActivationOrder(value));
  return absl::OkStatus();
}

absl::Status ReadDuoScaling(const RecipeValue& value, ModifierEntry& entry) {
  if (value.node.is_string() && absl::AsciiStrToLower(value.node.text) == "both") {
    entry.duo_scaling = DuoScaling::kBoth;
    return absl::OkStatus();
  }
  if (value.node.kind != YamlNode::Kind::kBool) return UnexpectedValue(value, "true, false or \"both\"");
  entry.duo_scaling = ToJson(value.node).get<bool>() ? DuoScaling::kOn : DuoScaling::kOff;
  return absl::OkStatus();
}

absl::Status ReadGrid(const RecipeValue& value, ModifierEntry& entry) {
  ASSIGN_OR_RETURN(entry.n_grid, ReadCount(value, 1000));
  return absl::OkStatus();
}

absl::Status ReadStrength(const RecipeValue& value, ModifierEntry& entry) {
  ASSIGN_OR_RETURN(entry.smoothing_strength, ReadNumber(value, 0, 1));
  return absl::OkStatus();
}

// {smooth_layer: .., balance_layers: [..]} or [[balance layers], smooth layer].
absl::StatusOr<LayerMapping> ReadMapping(const RecipeValue& value) {
  LayerMapping mapping{.line = value.line};
  if (value.node.is_sequence()) {
    if (value.node.items.size() != 2) return UnexpectedValue(value, "[[balance layers], smooth layer]");
    ASSIGN_OR_RETURN(mapping.balance_layers, ReadPatterns(value.Item(0)));
    ASSIGN_OR_RETURN(mapping.smooth_layer, ReadText(value.Item(1)));
  } else {
    static constexpr absl::string_view kKeys[] = {"smooth_layer", "balance_layers", "activation_hook_target"};
    RETURN_IF_ERROR(CheckKeys(value, kKeys));
    const auto smooth = FindMember(value, "smooth_layer"), balance = FindMember(value, "balance_layers");
    if (!smooth.has_value() || !balance.has_value()) return UnexpectedValue(value, "smooth_layer and balance_layers");
    if (const auto hook = FindMember(value, "activation_hook_target")) return NotSupportedError(hook->Where(), ": not supported");
    ASSIGN_OR_RETURN(mapping.smooth_layer, ReadText(*smooth));
    ASSIGN_OR_RETURN(mapping.balance_layers, ReadPatterns(*balance));
  }
  if (mapping.balance_layers.empty()) return UnexpectedValue(value, "at least one balance layer");
  return mapping;
}

absl::Status ReadMappings(const RecipeValue& value, ModifierEntry& entry) {
  if (!value.node.is_sequence()) return UnexpectedValue(value, "a list of mappings");
  entry.mappings.emplace();
  for (size_t i = 0; i < value.node.items.size(); ++i) {
    ASSIGN_OR_RETURN(LayerMapping mapping, ReadMapping(value.Item(i)));
    entry.mappings->push_back(std::move(mapping));
  }
  return absl::OkStatus();
}

absl::Status ReadAlgorithm(const RecipeValue& value, ModifierEntry&) {
  ASSIGN_OR_RETURN(const std::string name, ReadText(value));
  if (name != "smoothquant") return NotSupportedError(value.Where(), ": expected \"smoothquant\", found ", DescribeYaml(value.node));
  return absl::OkStatus();
}

absl::Status ReadRotations(const RecipeValue& value, ModifierEntry& entry) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ReadPatterns(value));
  entry.rotate_residual = entry.rotate_heads = false;
  for (const std::string& text : names) {
    const std::string name = absl::AsciiStrToUpper(text);
    if (name == "R3" || name == "R4") {
      return NotSupportedError(value.Where(), ": ", name, " is not supported: it rotates activations when the model runs");
    }
    if (name != "R1" && name != "R2") return UnexpectedValue(value, "R1, R2, R3 or R4");
    (name == "R1" ? entry.rotate_residual : entry.rotate_heads) = true;
  }
  return names.empty() ? UnexpectedValue(value, "at least one of R1 and R2") : absl::OkStatus();
}

absl::Status ReadTransformType(const RecipeValue& value, ModifierEntry& entry) {
  ASSIGN_OR_RETURN(const std::string type, ReadText(value));
  if (type == "random-matrix") return NotSupportedError(value.Where(), ": \"random-matrix\" is not supported; supported are Hadamard's");
  if (type != "hadamard" && type != "random-hadamard") {
    return UnexpectedValue(value, "\"hadamard\", \"random-hadamard\" or \"random-matrix\"");
  }
  entry.random_signs = type == "random-hadamard";
  return absl::OkStatus();
}

// Flags that llm-compressor knows and refuses too.
absl::Status RefuseTrue(const RecipeValue& value, ModifierEntry&) {
  ASSIGN_OR_RETURN(const bool flag, ReadFlag(value));
  return flag ? NotSupportedError(value.Where(), ": true is not supported") : absl::OkStatus();
}

absl::Status RefuseTransform(const RecipeValue& value, ModifierEntry&) {
  return NotSupportedError(value.Where(), ": not supported; without it the layers of the architecture are rotated whole");
}

absl::Status RefuseFunction(const RecipeValue& value, ModifierEntry&) {
  return NotSupportedError(value.Where(), ": a Python function is not supported");
}

// Every key of a modifier. What has no reader says how to run, not what to make: the order of layers is always that of the model, and
// calibration data come from flags.
constexpr Field kCommonFields[] = {{"group"}, {"index"}, {"start"}, {"end"}, {"update"}};
constexpr Field kQuantizationFields[] = {{"targets", ReadTargets},
                                         {"ignore", ReadIgnore},
                                         {"scheme", ReadScheme},
                                         {"config_groups", ReadConfigGroups},
                                         {"kv_cache_scheme", ReadKvCacheScheme},
                                         {"weight_observer", ReadWeightObserver},
                                         {"input_observer", ReadInputObserver},
                                         {"output_observer", RefuseOutputObserver},
                                         {"observer", ReadObservers},
                                         {"bypass_divisibility_checks", ReadBypass}};
constexpr Field kGptqFields[] = {{"block_size", ReadBlockSize}, {"dampening_frac", ReadDampening},
                                 {"actorder", ReadOrder},       {"sequential_targets"},
                                 {"sequential_update"},         {"offload_hessians"}};
constexpr Field kAwqFields[] = {{"mappings", ReadMappings}, {"duo_scaling", ReadDuoScaling},
                                {"n_grid", ReadGrid},       {"sequential_targets"},
                                {"max_chunk_memory"},       {"offload_device"}};
constexpr Field kSmoothQuantFields[] = {
    {"smoothing_strength", ReadStrength}, {"mappings", ReadMappings}, {"ignore", ReadIgnore},
    {"algorithm", ReadAlgorithm},         {"num_calibration_steps"},  {"calibration_function", RefuseFunction}};
constexpr Field kSpinQuantFields[] = {{"rotations", ReadRotations},
                                      {"transform_type", ReadTransformType},
                                      {"randomize", RefuseTrue},
                                      {"learnable", RefuseTrue},
                                      {"precision"},
                                      {"transform_block_size", RefuseTransform},
                                      {"mappings", RefuseTransform},
                                      {"norm_mappings", RefuseTransform},
                                      {"transform_config", RefuseTransform}};

constexpr ModifierClass kModifierClasses[] = {{"QuantizationModifier", ModifierKind::kQuantization},
                                              {"GPTQModifier", ModifierKind::kGptq},
                                              {"AWQModifier", ModifierKind::kAwq},
                                              {"SmoothQuantModifier", ModifierKind::kSmoothQuant},
                                              {"SpinQuantModifier", ModifierKind::kSpinQuant}};

constexpr absl::string_view kUnsupportedModifiers[] = {
    "QuIPModifier",         "AutoRoundModifier",        "LogarithmicEqualizationModifier", "SparseGPTModifier",
    "WandaPruningModifier", "MagnitudePruningModifier", "ConstantPruningModifier",         "REAPPruningModifier"};

std::vector<Field> FieldsOf(ModifierKind kind) {
  std::vector<Field> fields(std::begin(kCommonFields), std::end(kCommonFields));
  const auto add = [&](absl::Span<const Field> more) { fields.insert(fields.end(), more.begin(), more.end()); };
  if (kind == ModifierKind::kSmoothQuant) {
    add(kSmoothQuantFields);
    return fields;
  }
  if (kind == ModifierKind::kSpinQuant) {
    add(kSpinQuantFields);
    return fields;
  }
  add(kQuantizationFields);
  if (kind == ModifierKind::kGptq) add(kGptqFields);
  if (kind == ModifierKind::kAwq) add(kAwqFields);
  return fields;
}

}  // namespace

absl::Span<const ModifierClass> ModifierClasses() { return kModifierClasses; }

absl::StatusOr<const ModifierClass*> FindModifierClass(absl::string_view name) {
  for (const ModifierClass& row : kModifierClasses) {
    if (row.name == name) return &row;
  }
  for (const absl::string_view unsupported : kUnsupportedModifiers) {
    if (unsupported == name) {
      const bool at_run_time = name == "QuIPModifier";
      return NotSupportedError(name, " is not supported", at_run_time ? " (it rotates activations when the model runs)" : "",
                               "; supported are ", absl::StrJoin(kModifierClasses, ", ", [](std::string* out, const ModifierClass& row) {
                                 out->append(row.name.data(), row.name.size());
                               }));
    }
  }
  return nullptr;
}

absl::Status ReadModifierFields(const RecipeValue& value, ModifierEntry& entry, std::vector<std::string>& without_effect) {
  if (value.node.is_null()) return absl::OkStatus();
  if (!value.node.is_map()) return UnexpectedValue(value, "a mapping of fields");
  const std::vector<Field> fields = FieldsOf(entry.kind);
  for (size_t i = 0; i < value.node.keys.size(); ++i) {
    const std::string& key = value.node.keys[i];
    const RecipeValue member = value.Member(i);
    const auto field = std::find_if(fields.begin(), fields.end(), [&](const Field& candidate) { return candidate.key == key; });
    if (field == fields.end()) {
      std::vector<absl::string_view> known;
      for (const Field& candidate : fields) known.push_back(candidate.key);
      return UnknownKey(member, key, known);
    }
    if (member.node.is_null() && key != "actorder") continue;
    entry.lines[key] = member.line;
    if (field->read != nullptr) {
      RETURN_IF_ERROR(field->read(member, entry));
    } else if (key != "group") {
      without_effect.push_back(member.Where());
    }
  }
  if (entry.lines.contains("scheme") && entry.lines.contains("config_groups")) {
    return BadFileError(entry.Where("scheme"), ": expected either scheme or config_groups, found both");
  }
  return absl::OkStatus();
}

}  // namespace pith
