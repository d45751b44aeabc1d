#include "artifact/config_coverage.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "artifact/conversion.h"
#include "artifact/module_names.h"
#include "base/status.h"
#include "quantization/quantization_config.h"

namespace pith {
namespace {

using Match = ModulePattern::Match;

// The names of the groups whose targets match a module best.
absl::StatusOr<std::vector<std::string>> BestGroups(const QuantizationConfig& config, absl::string_view name,
                                                    absl::string_view class_name) {
  std::vector<std::string> groups;
  Match best = Match::kNone;
  for (const QuantizationGroup& group : config.groups) {
    Match strongest = Match::kNone;
    for (const ModulePattern& target : group.targets) {
      ASSIGN_OR_RETURN(const Match match, target.Matches(name, class_name));
      strongest = std::max(strongest, match);
    }
    if (strongest == Match::kNone || strongest < best) continue;
    if (strongest > best) groups.clear();
    best = strongest;
    groups.push_back(group.name);
  }
  return groups;
}

// Explains the `tensors` tensors of one module.
absl::Status Explain(const QuantizationConfig& config, const std::string& module, bool quantized, int64_t tensors,
                     ConfigCoverage& coverage) {
  const absl::string_view class_name = ModuleClassName(module);
  std::string ignored;
  for (const ModulePattern& entry : config.ignore) {
    ASSIGN_OR_RETURN(const Match match, entry.Matches(module, class_name));
    if (match != Match::kNone && ignored.empty()) ignored = entry.text();
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> groups, BestGroups(config, module, class_name));
  if (!ignored.empty()) {
    coverage.by_ignore[ignored] += tensors;
    if (quantized) coverage.problems.push_back(absl::StrCat(module, ": quantized, but ignored by \"", ignored, "\""));
  } else if (groups.empty()) {
    coverage.untargeted += tensors;
    if (quantized) coverage.problems.push_back(absl::StrCat(module, ": quantized, but targeted by no group"));
  } else {
    coverage.by_group[groups[0]] += tensors;
    if (groups.size() > 1) coverage.problems.push_back(absl::StrCat(module, ": targeted by ", absl::StrJoin(groups, " and ")));
    if (!quantized) coverage.problems.push_back(absl::StrCat(module, ": dense, but targeted by ", groups[0]));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ConfigCoverage::Describe() const {
  std::vector<std::string> parts;
  int64_t total = untargeted + by_kv_cache_scheme;
  for (const auto& [name, count] : by_group) {
    total += count;
    parts.push_back(absl::StrCat(count, " by ", name));
  }
  for (const auto& [entry, count] : by_ignore) {
    total += count;
    parts.push_back(absl::StrCat(count, " by ignore \"", entry, "\""));
  }
  if (by_kv_cache_scheme > 0) parts.push_back(absl::StrCat(by_kv_cache_scheme, " by kv_cache_scheme"));
  if (untargeted > 0) parts.push_back(absl::StrCat(untargeted, " not targeted"));
  if (problems.empty()) return absl::StrCat("all ", total, " tensors explained once: ", absl::StrJoin(parts, ", "));
  return absl::StrCat(problems.size(), " not explained once: ", problems[0], problems.size() > 1 ? ", ..." : "");
}

absl::StatusOr<std::optional<ConfigCoverage>> ReadConfigCoverage(const ArtifactReader& reader) {
  const Json* stored = FindMember(reader.config(), "quantization_config");
  if (stored == nullptr) return std::optional<ConfigCoverage>();
  ASSIGN_OR_RETURN(const QuantizationConfig config, ParseQuantizationConfig(*stored));
  std::map<std::string, int64_t> tensors;  // of a module: the parts of its weight, its bias
  ConfigCoverage coverage;
  for (const TensorInfo& tensor : reader.Tensors()) {
    const std::string module(SplitTensorName(tensor.name).first);
    if (IsKvScale(tensor.name)) {
      ++(config.kv_cache_scheme.has_value() ? coverage.by_kv_cache_scheme : coverage.untargeted);
      if (!config.kv_cache_scheme.has_value()) coverage.problems.push_back(absl::StrCat(tensor.name, ": a scale without kv_cache_scheme"));
    } else if (reader.HasWeight(module)) {
      ++tensors[module];
    } else {
      ++coverage.untargeted;
    }
  }
  for (const std::string& name : reader.WeightNames()) {
    ASSIGN_OR_RETURN(const TensorInfo info, reader.DescribeWeight(name));
    RETURN_IF_ERROR(Explain(config, name, info.quantized.has_value(), tensors[name], coverage));
  }
  return std::optional<ConfigCoverage>(std::move(coverage));
}

}  // namespace pith
