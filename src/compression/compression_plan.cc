#include "compression/compression_plan.h"

#include <algorithm>
#include <map>

#include "artifact/module_names.h"
#include "base/check.h"
#include "base/status.h"
#include "compression/kv_cache_scales.h"
#include "compression/rotated_reader.h"
#include "model/architectures/architecture.h"
#include "model/decoder_config.h"
#include "model/weight_check.h"
#include "quantization/formats/format_table.h"
#include "quantization/formats/input_scale.h"
#include "quantization/module_pattern.h"
#include "quantization/quant_method.h"

namespace pith {
namespace {

// Bits per element the source stores its weights in: all matrices must agree, since scales are stored in the model's dtype.
absl::StatusOr<DType> ModelDType(const ArtifactReader& reader, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (ModuleClassName(name) != "Linear") continue;
    ASSIGN_OR_RETURN(const TensorInfo info, reader.DescribeWeight(name));
    const std::optional<DType> dtype = ParseDType(info.type);
    if (!dtype.has_value()) return NotSupportedError(name, ": expected a dense weight to quantize, found ", info.type);
    return *dtype;
  }
  return BadFileError(reader.path(), ": expected linear layers, found none");
}

std::vector<TensorSpec> StoredSpecs(const std::string& module, const std::vector<StoredTensorSpec>& specs) {
  std::vector<TensorSpec> named;
  for (const StoredTensorSpec& spec : specs) named.push_back({absl::StrCat(module, ".", spec.suffix), spec.dtype, spec.shape});
  return named;
}

size_t GroupOf(const QuantizationConfig& config, const QuantizationScheme* scheme) {
  size_t group = 0;
  while (&config.groups[group].scheme != scheme) ++group;
  return group;
}

// Fills in what will happen to each module, and the group of each quantized one; group sizes are not resolved yet.
absl::Status ListModules(const ArtifactReader& reader, const QuantizationConfig& config, CompressionPlan& plan,
                         std::vector<size_t>& groups) {
  for (const std::string& name : reader.WeightNames()) {
    ASSIGN_OR_RETURN(const TensorInfo info, reader.DescribeWeight(name));
    PlannedModule module{.name = name, .class_name = std::string(ModuleClassName(name))};
    ASSIGN_OR_RETURN(const QuantizationScheme* scheme, FindScheme(config, name, module.class_name));
    const std::optional<DType> dtype = ParseDType(info.type);
    if (!dtype.has_value()) return NotSupportedError(name, ": expected a dense weight, found ", info.type);
    plan.input_bytes += info.stored_bytes;
    module.quantized = scheme != nullptr;
    if (module.quantized) {
      if (info.shape.size() != 2) return BadFileError(name, ": expected a matrix, found shape ", ShapeName(info.shape));
      module.out = info.shape[0];
      module.in = info.shape[1];
    } else {
      module.tensors = {{absl::StrCat(name, ".weight"), *dtype, info.shape}};
    }
    groups.push_back(module.quantized ? GroupOf(config, scheme) : 0);
    plan.modules.push_back(std::move(module));
  }
  return absl::OkStatus();
}

// A misspelt entry would quantize what it was meant to spare. The head may be absent (tied), so its entry need not match.
absl::Status CheckIgnoreMatches(const Recipe& recipe, const QuantizationConfig& config, const std::vector<PlannedModule>& modules) {
  for (const ModulePattern& pattern : config.ignore) {
    bool found = pattern.text() == "lm_head";
    for (const PlannedModule& module : modules) {
      ASSIGN_OR_RETURN(const ModulePattern::Match match, pattern.Matches(module.name, module.class_name));
      found = found || match != ModulePattern::Match::kNone;
    }
    if (found) continue;
    return UsageError(SettingName(recipe, "ignore"), ": expected a module of the model, found ", Printable(pattern.text()),
                      ", which matches none");
  }
  return absl::OkStatus();
}

// Serving engines would refuse the artifact only after all the work.
absl::Status CheckFused(const Recipe& recipe, const QuantizationConfig& config, const std::vector<PlannedModule>& modules) {
  std::vector<ModuleInfo> infos;
  for (const PlannedModule& module : modules) infos.push_back({module.name, module.class_name, module.quantized});
  return Annotate(CheckFusedModules(config, infos), SettingName(recipe, "ignore"));
}

// The scheme of one group, for the modules that are in it.
absl::StatusOr<QuantizationScheme> ResolveScheme(const QuantizationScheme& scheme, QuantizationStrategy strategy, int group_size,
                                                 const std::vector<RowLength>& rows) {
  if (strategy != QuantizationStrategy::kGroup) return WithStrategy(scheme, strategy, 0);
  ASSIGN_OR_RETURN(const int resolved, ResolveGroupSize(rows, group_size));
  return WithStrategy(scheme, QuantizationStrategy::kGroup, resolved);
}

// One group for the recipe's scheme, if it quantizes weights, and one per override; which modules are targeted does not depend on group
// sizes, which need the modules' row lengths.
absl::StatusOr<QuantizationConfig> UnresolvedConfig(const Recipe& recipe) {
  std::vector<QuantizationGroup> groups;
  if (!recipe.scheme.weights.has_value()) return MakeQuantizationConfig(std::move(groups), recipe.ignore);  // it has no overrides
  ASSIGN_OR_RETURN(QuantizationScheme base, WithStrategy(recipe.scheme, QuantizationStrategy::kChannel, 0));
  groups.push_back({"", {ModulePattern::Literal("Linear")}, std::move(base)});
  for (const SchemeOverride& override : recipe.overrides) {
    QuantizationGroup group;
    ASSIGN_OR_RETURN(group.scheme, WithStrategy(override.scheme, QuantizationStrategy::kChannel, 0));
    for (const std::string& target : override.targets) {
      ASSIGN_OR_RETURN(ModulePattern pattern, ModulePattern::Parse(target));
      group.targets.push_back(std::move(pattern));
    }
    groups.push_back(std::move(group));
  }
  return MakeQuantizationConfig(std::move(groups), recipe.ignore);
}

// Resolves the schemes of all groups and hands them to their modules; a group without modules is left out of the config.
absl::Status ResolveGroups(const Recipe& recipe, QuantizationConfig config, const std::vector<size_t>& group_of, CompressionPlan& plan) {
  std::vector<std::vector<RowLength>> rows(config.groups.size());
  for (size_t i = 0; i < plan.modules.size(); ++i) {
    if (plan.modules[i].quantized) rows[group_of[i]].push_back({plan.modules[i].name, plan.modules[i].in});
  }
  std::vector<QuantizationGroup> used;
  for (size_t g = 0; g < config.groups.size(); ++g) {
    QuantizationGroup& group = config.groups[g];
    if (rows[g].empty() && g == 0 && recipe.overrides.empty()) {
      return UsageError(SettingName(recipe, "ignore"), ": expected at least one linear layer to quantize, found none left");
    }
    if (rows[g].empty() && g > 0) {
      return UsageError("scheme ", group.scheme.name, " of ", Printable(group.targets.front().text()),
                        ": expected a module of the model that is not ignored, found none");
    }
    if (rows[g].empty()) continue;
    const SchemeOverride* override = g > 0 ? &recipe.overrides[g - 1] : nullptr;
    ASSIGN_OR_RETURN(group.scheme, override == nullptr
                                       ? ResolveScheme(recipe.scheme, recipe.strategy, recipe.group_size, rows[g])
                                       : ResolveScheme(override->scheme, override->strategy, override->group_size, rows[g]));
    if (g == 0) plan.args = *group.scheme.weights;
    used.push_back(group);
  }
  for (size_t i = 0; i < plan.modules.size(); ++i) {
    if (plan.modules[i].quantized) plan.modules[i].scheme = config.groups[group_of[i]].scheme;
  }
  std::vector<std::string> ignore;
  for (const ModulePattern& pattern : config.ignore) ignore.push_back(pattern.text());
  ASSIGN_OR_RETURN(plan.config, MakeQuantizationConfig(std::move(used), ignore));
  return absl::OkStatus();
}

// An embedding is read row by row: it multiplies nothing, so it has no activations to quantize. The head's input is not observed.
absl::Status CheckOutsideLayers(const std::vector<PlannedModule>& modules) {
  for (const PlannedModule& module : modules) {
    if (!module.quantized) continue;
    if (module.class_name == "Embedding" && module.scheme.input_activations.has_value()) {
      return UsageError(module.name, ": expected a scheme of weights alone, found ", module.scheme.name);
    }
    if (module.name.find("layers.") == std::string::npos && (module.scheme.NeedsCalibration() || module.scheme.HasOutliers())) {
      return NotSupportedError(module.name, ": expected a scheme without static activations or outlier columns, found ",
                               module.scheme.name);
    }
  }
  return absl::OkStatus();
}

// Configs of other quantizers than compressed-tensors name what they leave alone in words of their own.
absl::Status UseMethodConfig(const WeightFormat& format, CompressionPlan& plan) {
  const QuantizationScheme scheme = plan.config.groups.front().scheme;
  ASSIGN_OR_RETURN(plan.config, MakeMethodConfig(format.name, *scheme.weights, {}));
  plan.config.groups.front().scheme = scheme;
  bool has_head = false;
  for (const PlannedModule& module : plan.modules) {
    has_head = has_head || module.name == "lm_head";
    if (module.quantized || module.class_name != "Linear") continue;
    ASSIGN_OR_RETURN(ModulePattern pattern, format.method->skip(module.name));
    plan.config.ignore.push_back(std::move(pattern));
  }
  if (has_head) return absl::OkStatus();
  ASSIGN_OR_RETURN(ModulePattern head, format.method->skip("lm_head"));  // tied: a Linear too
  plan.config.ignore.push_back(std::move(head));
  return absl::OkStatus();
}

absl::Status ListPlainTensors(const ArtifactReader& reader, CompressionPlan& plan) {
  for (const std::string& name : reader.PlainTensorNames()) {
    ASSIGN_OR_RETURN(const std::optional<Weight> tensor, reader.ReadTensor(name));
    if (!tensor.has_value() || !tensor->dense.has_value()) return BadFileError(name, ": expected a plain tensor, found none");
    plan.plain_tensors.push_back({name, tensor->dense->dtype, tensor->dense->shape});
    plan.input_bytes += tensor->stored_bytes;
  }
  return absl::OkStatus();
}

absl::Status PlanKvCache(const ArtifactReader& reader, const DecoderConfig& decoder, const KvCacheScheme& scheme, CompressionPlan& plan) {
  plan.config.kv_cache_scheme = scheme.args;
  if (!scheme.NeedsCalibration()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Architecture* architecture, FindArchitecture(decoder.model_type));
  ASSIGN_OR_RETURN(const WeightMap map, MakeWeightMap(reader, architecture->norms));
  plan.kv_scales = PlanKvScales(map, decoder, scheme.args, plan.model_dtype);
  // A dense model may have scales that nothing declares; they are written anew.
  std::erase_if(plan.plain_tensors, [&](const TensorSpec& plain) {
    return std::any_of(plan.kv_scales.begin(), plan.kv_scales.end(), [&](const TensorSpec& scale) { return scale.name == plain.name; });
  });
  return absl::OkStatus();
}

// Everything but what rotating adds.
absl::Status PlanModules(const ArtifactReader& reader, const DecoderConfig& decoder, const Recipe& recipe, CompressionPlan& plan) {
  ASSIGN_OR_RETURN(plan.model_dtype, ModelDType(reader, reader.WeightNames()));
  ASSIGN_OR_RETURN(QuantizationConfig targets, UnresolvedConfig(recipe));
  std::vector<size_t> groups;
  RETURN_IF_ERROR(ListModules(reader, targets, plan, groups));
  RETURN_IF_ERROR(CheckIgnoreMatches(recipe, targets, plan.modules));
  RETURN_IF_ERROR(ResolveGroups(recipe, std::move(targets), groups, plan));
  RETURN_IF_ERROR(CheckOutsideLayers(plan.modules));
  if (!plan.config.groups.empty()) {
    ASSIGN_OR_RETURN(const WeightFormat* format, FindWeightFormat(plan.config.groups.front().scheme.format));
    if (format->method != nullptr) RETURN_IF_ERROR(UseMethodConfig(*format, plan));
  }
  RETURN_IF_ERROR(CheckFused(recipe, plan.config, plan.modules));
  for (PlannedModule& module : plan.modules) {
    if (module.quantized) {
      const auto specs = PlanWeight(module.scheme.format, module.args(), {module.out, module.in}, plan.model_dtype);
      if (!specs.ok()) return Annotate(specs.status(), module.name);
      module.tensors = StoredSpecs(module.name, *specs);
      if (module.scheme.NeedsCalibration()) {
        module.tensors.push_back({absl::StrCat(module.name, ".", kInputScaleSuffix), plan.model_dtype, {1}});
      }
    }
    plan.output_bytes += TotalBytes(module.tensors);
  }
  RETURN_IF_ERROR(ListPlainTensors(reader, plan));
  if (recipe.kv_cache.has_value()) RETURN_IF_ERROR(PlanKvCache(reader, decoder, *recipe.kv_cache, plan));
  plan.output_bytes += TotalBytes(plan.plain_tensors) + TotalBytes(plan.kv_scales);
  return absl::OkStatus();
}

// The recipe with "lm_head" ignored where the head is the embedding even so: a recipe that rotates counts on a head of its own, and readers
// look for a tied one in the list.
Recipe WithTiedHeadIgnored(const RotatedReader& rotated, Recipe recipe) {
  const bool tied = ParseDecoderConfig(rotated.config())->tie_word_embeddings;
  const bool listed = std::find(recipe.ignore.begin(), recipe.ignore.end(), "lm_head") != recipe.ignore.end();
  if (tied && !listed) recipe.ignore.push_back("lm_head");
  return recipe;
}

}  // namespace

int64_t TotalBytes(const std::vector<TensorSpec>& tensors) {
  int64_t bytes = 0;
  for (const TensorSpec& tensor : tensors) bytes += NumElements(tensor.shape) * ByteSize(tensor.dtype);
  return bytes;
}

absl::StatusOr<CompressionPlan> PlanCompression(const ArtifactReader& reader, const Recipe& recipe) {
  if (reader.format() != "huggingface") {
    return NotSupportedError(reader.path(), ": expected a dense Hugging Face directory, found ", reader.format(),
                             "; pith convert IN -o OUT makes one");
  }
  const absl::StatusOr<DecoderConfig> decoder = ParseDecoderConfig(reader.config());
  if (!decoder.ok()) return Annotate(decoder.status(), reader.path());
  RETURN_IF_ERROR(Annotate(CheckWeights(reader, *decoder), reader.path()));
  ThreadPool alone(1);  // only headers are read, and the final norm
  ASSIGN_OR_RETURN(const std::unique_ptr<RotatedReader> rotated, OpenRotated(reader, recipe.rotation, alone));
  CompressionPlan plan;
  if (rotated == nullptr) {
    RETURN_IF_ERROR(PlanModules(reader, *decoder, recipe, plan));
    return plan;
  }
  plan.untied_head_bytes = rotated->untied_head_bytes();
  RETURN_IF_ERROR(PlanModules(*rotated, *decoder, WithTiedHeadIgnored(*rotated, recipe), plan));
  plan.input_bytes -= plan.untied_head_bytes;
  return plan;
}

bool FixOutliers(CompressionPlan& plan) {
  bool any = false;
  const auto fix = [&any](QuantizationScheme& scheme) {
    if (!scheme.HasOutliers()) return;
    scheme.input_activations->fixed_outliers = any = true;
  };
  for (QuantizationGroup& group : plan.config.groups) fix(group.scheme);
  for (PlannedModule& module : plan.modules) fix(module.scheme);
  return any;
}

void AddOutlierTensors(std::vector<TensorSpec> tensors, CompressionPlan& plan) {
  std::map<absl::string_view, PlannedModule*> modules;
  for (PlannedModule& module : plan.modules) modules.emplace(module.name, &module);
  plan.output_bytes += TotalBytes(tensors);
  for (TensorSpec& tensor : tensors) {
    const auto it = modules.find(SplitTensorName(tensor.name).first);
    CHECK(it != modules.end());
    it->second->tensors.push_back(std::move(tensor));
  }
}

std::vector<TensorSpec> PlannedTensors(const CompressionPlan& plan) {
  std::vector<TensorSpec> tensors;
  for (const PlannedModule& module : plan.modules) tensors.insert(tensors.end(), module.tensors.begin(), module.tensors.end());
  tensors.insert(tensors.end(), plan.plain_tensors.begin(), plan.plain_tensors.end());
  tensors.insert(tensors.end(), plan.kv_scales.begin(), plan.kv_scales.end());
  return tensors;
}

}  // namespace pith
