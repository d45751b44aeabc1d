// The `quantization_config` object of config.json: which modules are quantized, how, and which are left alone.
// Pure JSON <-> struct; reading and writing files is the artifact module's work. Configs of other quantizers (quant_method gptq, awq,
// bitsandbytes, fp8) are read into the same struct: quant_method.h.
// Source: compressed-tensors `QuantizationConfig`; docs/formats/compressed_tensors.md.
//
//   ASSIGN_OR_RETURN(QuantizationConfig config, ParseQuantizationConfig(*FindMember(model_config, "quantization_config")));
//   ASSIGN_OR_RETURN(const QuantizationScheme* scheme, FindScheme(config, "model.layers.0.mlp.up_proj", "Linear"));
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/json.h"
#include "quantization/module_pattern.h"
#include "quantization/quantization_scheme.h"

namespace pith {

// One entry of config_groups.
struct QuantizationGroup {
  std::string name;                    // "group_0"
  std::vector<ModulePattern> targets;  // usually one: the class name "Linear"
  QuantizationScheme scheme;           // scheme.format: the group's, else the config's; scheme.name: a preset's when it is one, else empty
};

struct QuantizationConfig {
  std::string format;                     // of all groups, or "mixed-precision" when they differ
  std::vector<QuantizationGroup> groups;  // in the order of their names
  std::vector<ModulePattern> ignore;      // beats every group
  std::optional<QuantizationArgs> kv_cache_scheme;
};

// One module of a model that has a weight.
struct ModuleInfo {
  std::string name;        // "model.layers.0.mlp.up_proj"
  std::string class_name;  // "Linear", "Embedding", "RMSNorm"
  bool quantized = false;  // whether its stored weight is
};

// Reads what compressed-tensors publishes. Unknown keys beside the known ones are ignored here, but never inside QuantizationArgs.
// Errors: kDataLoss naming the key, the expectation and the finding; kUnimplemented for an unknown quant_method, sparsity, transforms,
// output activations or a kind of QuantizationArgs that cannot be run.
absl::StatusOr<QuantizationConfig> ParseQuantizationConfig(const Json& json);

// The smallest key set that every published reader accepts.
Json ToJson(const QuantizationConfig& config);

// A config of one group that targets every Linear but `ignore`.
absl::StatusOr<QuantizationConfig> MakeQuantizationConfig(const QuantizationScheme& scheme, absl::Span<const std::string> ignore);
// A config of these groups; they are named group_0, group_1, ... Errors of both: kDataLoss for an entry of `ignore` that is no pattern.
absl::StatusOr<QuantizationConfig> MakeQuantizationConfig(std::vector<QuantizationGroup> groups, absl::Span<const std::string> ignore);

// The scheme of a module: nullptr when an ignore entry or no target matches. The pointer lives as long as `config`.
// Errors: kDataLoss when two groups with different schemes match equally well.
absl::StatusOr<const QuantizationScheme*> FindScheme(const QuantizationConfig& config, absl::string_view module_name,
                                                     absl::string_view class_name);

// Every module must be explained: a quantized one by one group and no ignore entry, any other by an ignore entry or by no target.
// Errors: kDataLoss naming the first module that is not (and how many more).
absl::Status CheckModules(const QuantizationConfig& config, absl::Span<const ModuleInfo> modules);

// Serving engines fuse q/k/v and gate/up into one module each and refuse parts with different schemes.
// Errors: kInvalidArgument naming the parts that differ.
absl::Status CheckFusedModules(const QuantizationConfig& config, absl::Span<const ModuleInfo> modules);

}  // namespace pith
