#include "quantization/quantization_config.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "base/nearest_name.h"
#include "base/status.h"
#include "quantization/formats/format_table.h"
#include "quantization/fused_modules.h"
#include "quantization/kv_cache_scheme.h"
#include "quantization/quant_method.h"

namespace pith {
namespace {

using Match = ModulePattern::Match;

constexpr absl::string_view kMethod = "compressed-tensors";
constexpr absl::string_view kMixed = "mixed-precision", kDense = "dense";

std::string Found(const Json& value) { return Printable(DumpJson(value), 60); }

absl::StatusOr<std::vector<ModulePattern>> ParsePatterns(const Json& object, absl::string_view key) {
  std::vector<ModulePattern> patterns;
  const Json* list = FindMember(object, key);
  if (list == nullptr) return patterns;
  if (!list->is_array()) return BadFileError("\"", key, "\": expected a list of names, found ", Found(*list));
  for (const Json& entry : *list) {
    if (!entry.is_string()) return BadFileError("\"", key, "\": expected a list of names, found ", Found(entry), " in it");
    absl::StatusOr<ModulePattern> pattern = ModulePattern::Parse(entry.get_ref<const std::string&>());
    if (!pattern.ok()) return Annotate(pattern.status(), absl::StrCat("\"", key, "\""));
    patterns.push_back(*std::move(pattern));
  }
  return patterns;
}

absl::StatusOr<std::optional<QuantizationArgs>> ParseOptionalArgs(
    const Json& object, absl::string_view key, absl::StatusOr<QuantizationArgs> (*parse)(const Json&) = ParseQuantizationArgs) {
  const Json* member = FindMember(object, key);
  if (member == nullptr) return std::optional<QuantizationArgs>();
  absl::StatusOr<QuantizationArgs> args = parse(*member);
  if (!args.ok()) return Annotate(args.status(), absl::StrCat("\"", key, "\""));
  return std::optional<QuantizationArgs>(*args);
}

absl::Status CheckGroupKeys(const Json& json) {
  constexpr absl::string_view kKeys[] = {"targets", "weights", "input_activations", "output_activations", "format"};
  if (!json.is_object()) return BadFileError("expected an object, found ", Found(json));
  for (const auto& [key, value] : json.items()) {
    if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys)) {
      return BadFileError("\"", Printable(key, 60), "\": unknown key of a group, nearest is \"", NearestName(key, kKeys), "\"");
    }
  }
  if (FindMember(json, "output_activations") != nullptr) {
    return NotSupportedError("\"output_activations\": quantized outputs are not supported");
  }
  return absl::OkStatus();
}

// {"W4A16": ["Linear"]}: the group's name is a preset's and its value the targets.
absl::StatusOr<QuantizationScheme> ParsePresetGroup(absl::string_view name) {
  ASSIGN_OR_RETURN(QuantizationScheme scheme, FindScheme(name));
  // Published group presets mean this size.
  if (scheme.weights.has_value() && scheme.weights->strategy == QuantizationStrategy::kGroup) scheme.weights->group_size = 128;
  return scheme;
}

absl::StatusOr<QuantizationGroup> ParseGroup(const std::string& name, const Json& json, absl::string_view config_format) {
  QuantizationGroup group;
  group.name = name;
  if (json.is_array()) {
    ASSIGN_OR_RETURN(group.scheme, ParsePresetGroup(name));
    ASSIGN_OR_RETURN(group.targets, ParsePatterns(Json{{"targets", json}}, "targets"));
  } else {
    RETURN_IF_ERROR(CheckGroupKeys(json));
    ASSIGN_OR_RETURN(group.targets, ParsePatterns(json, "targets"));
    ASSIGN_OR_RETURN(group.scheme.weights, ParseOptionalArgs(json, "weights"));
    ASSIGN_OR_RETURN(group.scheme.input_activations, ParseOptionalArgs(json, "input_activations"));
    ASSIGN_OR_RETURN(group.scheme.format, GetString(json, "format", config_format));
    group.scheme.name = std::string(PresetName(group.scheme.weights, group.scheme.input_activations));
  }
  if (group.targets.empty()) return BadFileError("\"targets\": expected at least one name, found none");
  if (!group.scheme.weights.has_value()) return NotSupportedError("\"weights\": a group without quantized weights is not supported");
  if (group.scheme.input_activations.has_value()) {
    RETURN_IF_ERROR(Annotate(ValidateInput(*group.scheme.input_activations), "\"input_activations\""));
  }
  if (group.scheme.format == kMixed) return BadFileError("\"format\": expected one in every group of a ", kMixed, " config, found none");
  ASSIGN_OR_RETURN(const WeightFormat* row, FindWeightFormat(group.scheme.format));
  if (row->method != nullptr) {
    return NotSupportedError("\"format\": expected one of ", kMethod, ", found \"", row->name, "\", which is that of quant_method \"",
                             row->method->name, "\"");
  }
  return group;
}

// Parts of the published config that would change what the weights mean.
absl::Status CheckUnsupportedParts(const Json& json) {
  for (const absl::string_view key : {"sparsity_config", "moe_sparsity_config", "transform_config"}) {
    const Json* part = FindMember(json, key);
    if (part == nullptr || part->empty()) continue;
    const Json* groups = FindMember(*part, "config_groups");
    if (part->is_object() && groups != nullptr && groups->empty()) continue;  // {"config_groups": {}}: no transforms
    const Json* format = FindMember(*part, "format");
    if (format != nullptr && *format == "dense") continue;
    return NotSupportedError("\"", key, "\": expected none, found ", Found(*part));
  }
  constexpr absl::string_view kStatuses[] = {"initialized", "calibration", "frozen", "compressed", "decompressed"};
  ASSIGN_OR_RETURN(const std::string status, GetString(json, "quantization_status", "compressed"));
  if (std::find(std::begin(kStatuses), std::end(kStatuses), status) == std::end(kStatuses)) {
    return BadFileError("\"quantization_status\": expected one of ", absl::StrJoin(kStatuses, " "), ", found \"", Printable(status, 60),
                        "\"");
  }
  return absl::OkStatus();
}

// The method of that name of another quantizer; nullptr for compressed-tensors. Errors: kUnimplemented.
absl::StatusOr<const QuantMethod*> FindQuantMethod(absl::string_view name) {
  if (name == kMethod) return nullptr;
  std::vector<absl::string_view> known = {kMethod};
  for (const WeightFormat* row : WeightFormats()) {
    if (row->method == nullptr) continue;
    if (row->method->name == name) return row->method;
    if (known.back() != row->method->name) known.push_back(row->method->name);
  }
  return NotSupportedError("\"quant_method\": expected one of ", absl::StrJoin(known, " "), ", found \"", Printable(name, 60), "\"");
}

// How strongly a group's targets match a module.
absl::StatusOr<Match> MatchAny(absl::Span<const ModulePattern> patterns, absl::string_view module_name, absl::string_view class_name) {
  Match best = Match::kNone;
  for (const ModulePattern& pattern : patterns) {
    ASSIGN_OR_RETURN(const Match match, pattern.Matches(module_name, class_name));
    best = std::max(best, match);
  }
  return best;
}

bool SameScheme(const QuantizationScheme* a, const QuantizationScheme* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->format == b->format && a->weights == b->weights && a->input_activations == b->input_activations;
}

Json PatternTexts(absl::Span<const ModulePattern> patterns) {
  Json texts = Json::array();
  for (const ModulePattern& pattern : patterns) texts.push_back(pattern.text());
  return texts;
}

// Empty when the module is explained, else what is wrong with it.
absl::StatusOr<std::string> FindContradiction(const QuantizationConfig& config, const ModuleInfo& module) {
  ASSIGN_OR_RETURN(const Match ignored, MatchAny(config.ignore, module.name, module.class_name));
  ASSIGN_OR_RETURN(const QuantizationScheme* scheme, FindScheme(config, module.name, module.class_name));
  if (ignored == Match::kName) {
    for (const QuantizationGroup& group : config.groups) {
      ASSIGN_OR_RETURN(const Match targeted, MatchAny(group.targets, module.name, module.class_name));
      if (targeted == Match::kName) return absl::StrCat("named both in \"ignore\" and in the targets of \"", group.name, "\"");
    }
  }
  if (module.quantized && scheme == nullptr) {
    return std::string(ignored != Match::kNone ? "stored quantized, but \"ignore\" matches it"
                                               : "stored quantized, but no target matches it");
  }
  if (!module.quantized && scheme != nullptr) return std::string("stored unquantized, but a target matches it and \"ignore\" does not");
  return std::string();
}

// A group's own format beats the config's, so they may differ whatever the config says.
std::string CommonFormat(const QuantizationConfig& config) {
  if (config.groups.empty()) return config.format.empty() ? std::string(kDense) : config.format;
  for (const QuantizationGroup& group : config.groups) {
    if (group.scheme.format != config.groups[0].scheme.format) return std::string(kMixed);
  }
  return config.groups[0].scheme.format;
}

std::string DescribeScheme(const QuantizationScheme* scheme) {
  if (scheme == nullptr) return "unquantized";
  return scheme->name.empty() ? scheme->format : scheme->name;
}

}  // namespace

absl::StatusOr<QuantizationConfig> ParseQuantizationConfig(const Json& json) {
  if (!json.is_object()) return BadFileError("expected an object, found ", Found(json));
  ASSIGN_OR_RETURN(const std::string method_name, GetString(json, "quant_method", kMethod));
  ASSIGN_OR_RETURN(const QuantMethod* method, FindQuantMethod(method_name));
  if (method != nullptr) return method->parse(json);
  RETURN_IF_ERROR(CheckUnsupportedParts(json));
  QuantizationConfig config;
  ASSIGN_OR_RETURN(config.format, GetString(json, "format"));
  ASSIGN_OR_RETURN(config.ignore, ParsePatterns(json, "ignore"));
  ASSIGN_OR_RETURN(config.kv_cache_scheme, ParseOptionalArgs(json, "kv_cache_scheme", ParseKvCacheArgs));
  const Json* groups = FindMember(json, "config_groups");
  if (groups == nullptr || !groups->is_object()) {
    return BadFileError("\"config_groups\": expected an object, found ", groups == nullptr ? "nothing" : Found(*groups));
  }
  for (const auto& [name, value] : groups->items()) {
    absl::StatusOr<QuantizationGroup> group = ParseGroup(name, value, config.format);
    if (!group.ok()) return Annotate(group.status(), absl::StrCat("config_groups.", Printable(name, 60)));
    config.groups.push_back(*std::move(group));
  }
  if (config.format != kMixed && !config.groups.empty()) RETURN_IF_ERROR(FindWeightFormat(config.format).status());
  config.format = CommonFormat(config);
  return config;
}

Json ToJson(const QuantizationConfig& config) {
  if (!config.groups.empty()) {
    const absl::StatusOr<const WeightFormat*> row = FindWeightFormat(config.groups[0].scheme.format);
    if (row.ok() && (*row)->method != nullptr) return (*row)->method->write(config);
  }
  Json groups = Json::object();
  for (const QuantizationGroup& group : config.groups) {
    Json& json = groups[group.name] = {{"targets", PatternTexts(group.targets)}};
    if (group.scheme.weights.has_value()) json["weights"] = ToJson(*group.scheme.weights);
    if (group.scheme.input_activations.has_value()) json["input_activations"] = ToJson(*group.scheme.input_activations);
    if (config.format == kMixed) json["format"] = group.scheme.format;
  }
  Json json = {{"quant_method", kMethod},
               {"format", config.format},
               {"quantization_status", "compressed"},
               {"ignore", PatternTexts(config.ignore)},
               {"config_groups", std::move(groups)}};
  if (config.kv_cache_scheme.has_value()) json["kv_cache_scheme"] = ToJson(*config.kv_cache_scheme);
  return json;
}

absl::StatusOr<QuantizationConfig> MakeQuantizationConfig(const QuantizationScheme& scheme, absl::Span<const std::string> ignore) {
  return MakeQuantizationConfig(std::vector<QuantizationGroup>{{"", {ModulePattern::Literal("Linear")}, scheme}}, ignore);
}

absl::StatusOr<QuantizationConfig> MakeQuantizationConfig(std::vector<QuantizationGroup> groups, absl::Span<const std::string> ignore) {
  QuantizationConfig config{.groups = std::move(groups)};
  for (size_t i = 0; i < config.groups.size(); ++i) config.groups[i].name = absl::StrCat("group_", i);
  config.format = CommonFormat(config);
  for (const std::string& entry : ignore) {
    ASSIGN_OR_RETURN(ModulePattern pattern, ModulePattern::Parse(entry));
    config.ignore.push_back(std::move(pattern));
  }
  return config;
}

absl::StatusOr<const QuantizationScheme*> FindScheme(const QuantizationConfig& config, absl::string_view module_name,
                                                     absl::string_view class_name) {
  ASSIGN_OR_RETURN(const Match ignored, MatchAny(config.ignore, module_name, class_name));
  if (ignored != Match::kNone) return nullptr;
  const QuantizationGroup* best = nullptr;
  Match best_match = Match::kNone;
  for (const QuantizationGroup& group : config.groups) {
    ASSIGN_OR_RETURN(const Match match, MatchAny(group.targets, module_name, class_name));
    if (match == Match::kNone) continue;
    if (match == best_match && !SameScheme(&best->scheme, &group.scheme)) {
      return BadFileError("module ", Printable(module_name), ": expected one group, found it in \"", best->name, "\" and \"", group.name,
                          "\" with different schemes");
    }
    if (match > best_match) {
      best = &group;
      best_match = match;
    }
  }
  return best == nullptr ? nullptr : &best->scheme;
}

absl::Status CheckModules(const QuantizationConfig& config, absl::Span<const ModuleInfo> modules) {
  std::string first;
  int contradictions = 0;
  for (const ModuleInfo& module : modules) {
    ASSIGN_OR_RETURN(const std::string contradiction, FindContradiction(config, module));
    if (contradiction.empty()) continue;
    if (contradictions++ == 0) first = absl::StrCat(module.name, " (", module.class_name, "): ", contradiction);
  }
  if (contradictions == 0) return absl::OkStatus();
  return BadFileError("quantization_config: ", first,
                      contradictions == 1 ? std::string() : absl::StrCat(" (and ", contradictions - 1, " more such modules)"));
}

absl::Status CheckFusedModules(const QuantizationConfig& config, absl::Span<const ModuleInfo> modules) {
  absl::flat_hash_map<absl::string_view, const ModuleInfo*> by_name;
  for (const ModuleInfo& module : modules) by_name[module.name] = &module;
  for (const FusedModules& row : FusedModuleTable()) {
    const absl::Span<const absl::string_view> parts = row.parts;
    for (const ModuleInfo& module : modules) {
      if (!absl::EndsWith(module.name, absl::StrCat(".", parts[0]))) continue;
      ASSIGN_OR_RETURN(const QuantizationScheme* scheme, FindScheme(config, module.name, module.class_name));
      const std::string parent = module.name.substr(0, module.name.size() - parts[0].size());
      for (const absl::string_view part : parts.subspan(1)) {
        const auto other = by_name.find(absl::StrCat(parent, part));
        if (other == by_name.end()) continue;
        ASSIGN_OR_RETURN(const QuantizationScheme* other_scheme, FindScheme(config, other->first, other->second->class_name));
        if (SameScheme(scheme, other_scheme)) continue;
        return UsageError(module.name, ": expected the scheme of ", other->first, " (serving engines fuse ", absl::StrJoin(parts, ", "),
                          "), found ", DescribeScheme(scheme), " and ", DescribeScheme(other_scheme));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace pith
