#include "cli/quantize_text.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status.h"
#include "cli/command.h"

namespace pith {
namespace {

std::string DescribeScales(const QuantizationArgs& args, const Recipe& recipe) {
  if (args.strategy == QuantizationStrategy::kBlock) return absl::StrCat("blocks of ", args.block_rows, "x", args.block_cols);
  if (args.strategy != QuantizationStrategy::kGroup) return absl::StrCat("a scale per ", StrategyName(args.strategy));
  const bool chosen = recipe.group_size == 0;
  return absl::StrCat("groups of ", args.group_size, chosen ? " (auto: the largest power of two <= 128 that divides every row)" : "");
}

std::string DescribeActivations(const QuantizationScheme& scheme) {
  return scheme.input_activations.has_value() ? absl::StrCat(", activations ", DescribeInput(*scheme.input_activations)) : "";
}

// "W4A16 in groups of 64", "W8A16 per channel"
std::string DescribeStorage(absl::string_view scheme, int group_size) {
  return group_size > 0 ? absl::StrCat(scheme, " in groups of ", group_size) : absl::StrCat(scheme, " per channel");
}

// "; of these 12 in W8A16 per channel, 1 in W8A16 in groups of 64": the modules that have a scheme of their own.
std::string DescribeOverrides(const CompressionPlan& plan, const Recipe& recipe) {
  std::map<std::string, int64_t> counts;
  for (const PlannedModule& module : plan.modules) {
    if (!module.quantized || (module.scheme.name == recipe.scheme.name && module.args() == plan.args)) continue;
    const int group_size = module.args().group_size;
    ++counts[absl::StrCat(module.scheme.name, group_size > 0 ? absl::StrCat(" in groups of ", group_size)
                                                             : absl::StrCat(" per ", StrategyName(module.args().strategy)))];
  }
  std::vector<std::string> parts;
  for (const auto& [scheme, count] : counts) parts.push_back(absl::StrCat(count, " in ", scheme));
  return parts.empty() ? "" : absl::StrCat("; of these ", absl::StrJoin(parts, ", "));
}

std::string DescribeKvCache(const Recipe& recipe) {
  return recipe.kv_cache.has_value() ? absl::StrCat("; KV cache declared ", DescribeInput(recipe.kv_cache->args)) : "";
}

// ", with a head that ...": what a rotation adds to the bytes.
std::string DescribeUntiedHead(const CompressionPlan& plan) {
  if (plan.untied_head_bytes == 0) return "";
  const auto head = std::find_if(plan.modules.begin(), plan.modules.end(),
                                 [](const PlannedModule& module) { return absl::EndsWith(module.name, "lm_head"); });
  CHECK(head != plan.modules.end());
  return absl::StrCat(", with a head that was tied to the embedding and takes ", HumanBytes(TotalBytes(head->tensors)), " in ",
                      head->quantized ? head->scheme.name : DTypeName(plan.model_dtype), " as a matrix of its own");
}

}  // namespace

std::string DescribePlan(const CompressionPlan& plan, const Recipe& recipe) {
  int64_t quantized = 0, weights = 0, kept = 0;
  for (const PlannedModule& module : plan.modules) {
    quantized += module.quantized ? 1 : 0;
    kept += module.quantized ? 0 : 1;
    weights += module.out * module.in;
  }
  if (!recipe.scheme.weights.has_value()) {
    return absl::StrFormat("%s kept in %s%s; %s -> %s of tensors\n", Plural(kept, "tensor"), DTypeName(plan.model_dtype),
                           DescribeKvCache(recipe), HumanBytes(plan.input_bytes), HumanBytes(plan.output_bytes));
  }
  return absl::StrFormat("%s by %s: %s (%.1f M weights) in %s%s%s; %s kept in %s%s; %s -> %s of tensors%s\n", recipe.scheme.name,
                         recipe.method, Plural(quantized, recipe.overrides.empty() ? "linear layer" : "module"),
                         static_cast<double>(weights) / 1e6, DescribeScales(plan.args, recipe), DescribeActivations(recipe.scheme),
                         DescribeOverrides(plan, recipe), Plural(kept, "other tensor"), DTypeName(plan.model_dtype),
                         DescribeKvCache(recipe), HumanBytes(plan.input_bytes), HumanBytes(plan.output_bytes), DescribeUntiedHead(plan));
}

// Of LLM_INT8: where its outlier columns come from.
std::string DescribeOutliers(const Recipe& recipe, bool calibrated) {
  if (!recipe.scheme.HasOutliers()) return "";
  return calibrated ? "outlier columns: found by calibration and kept in bf16, on top of the bytes above\n"
                    : "outliers: found at run time; with --calibration they are columns fixed in the artifact\n";
}

OrderedJson PlanJson(const CompressionPlan& plan) {
  OrderedJson tensors = OrderedJson::array();
  for (const TensorSpec& spec : PlannedTensors(plan)) {
    tensors.push_back({{"name", spec.name},
                       {"dtype", std::string(DTypeName(spec.dtype))},
                       {"shape", std::vector<int64_t>(spec.shape.begin(), spec.shape.end())},
                       {"bytes", NumElements(spec.shape) * ByteSize(spec.dtype)}});
  }
  return {{"input_bytes", plan.input_bytes},
          {"output_bytes", plan.output_bytes},
          {"untied_head_bytes", plan.untied_head_bytes},
          {"group_size", plan.args.group_size},
          {"tensors", tensors}};
}

std::string PlanTable(const CompressionPlan& plan) {
  std::string table;
  for (const TensorSpec& spec : PlannedTensors(plan)) {
    absl::StrAppendFormat(&table, "  %-60s %-8s %12d bytes  [%s]\n", Printable(spec.name, 200), DTypeName(spec.dtype),
                          NumElements(spec.shape) * ByteSize(spec.dtype), absl::StrJoin(spec.shape, ", "));
  }
  return table;
}

std::string Summary(const CompressionReport& report, const std::string& output) {
  double worst = 0, error = 0;
  std::string worst_name = "none";
  for (const LayerReport& layer : report.layers) {
    error += layer.relative_error / static_cast<double>(report.layers.size());
    if (layer.relative_error > worst) {
      worst = layer.relative_error;
      worst_name = layer.name;
    }
  }
  const ResourceUse use = TotalUse(report.phases);
  return absl::StrFormat(
      "%s: %s of tensors (%.2fx smaller) in %.1f s (%.1f s of CPU, at most %s of memory); relative weight error %.4f on average, worst "
      "%.4f "
      "(%s)\n",
      Printable(output, 500), HumanBytes(report.output_bytes),
      static_cast<double>(report.input_bytes) / static_cast<double>(report.output_bytes), use.seconds, use.cpu_seconds,
      HumanBytes(use.peak_memory_bytes), error, worst, worst_name);
}

// How many columns are kept in bf16, where any can be.
std::string OutlierSummary(const CompressionReport& report, const Recipe& recipe, bool calibrated) {
  if (!recipe.scheme.HasOutliers() || !calibrated) return "";
  int64_t columns = 0, all = 0;
  const LayerReport* most = nullptr;
  for (const LayerReport& layer : report.layers) {
    columns += static_cast<int64_t>(layer.outlier_columns.size());
    all += layer.in;
    if (most == nullptr || layer.outlier_columns.size() > most->outlier_columns.size()) most = &layer;
  }
  if (most == nullptr) return "";
  return absl::StrFormat("outlier columns: %.2f %% of all, most in %s (%d of %d)\n",
                         100 * static_cast<double>(columns) / static_cast<double>(all), most->name, most->outlier_columns.size(), most->in);
}

std::string BlockSummary(const CompressionReport& report) {
  if (report.blocks.empty()) return "";
  double local = 0;
  for (const BlockReport& block : report.blocks) local += block.local.relative / static_cast<double>(report.blocks.size());
  const OutputError& last = report.blocks.back().accumulated;
  return absl::StrFormat("hidden states: relative error %.4f per layer on average; behind the last %.4f, SQNR %.1f dB, cosine %.4f\n",
                         local, last.relative, last.sqnr_db, last.cosine);
}

std::string EstimateText(absl::Span<const PhaseUse> phases, const DiskNeed& disk, int64_t output_bytes, int threads) {
  std::string text;
  for (const PhaseUse& phase : phases) {
    absl::StrAppendFormat(&text, "  %-12s %8.1f s %8.1f s of CPU   at most %s of memory\n", phase.name, phase.use.seconds,
                          phase.use.cpu_seconds, HumanBytes(phase.use.peak_memory_bytes));
  }
  const ResourceUse total = TotalUse(phases);
  absl::StrAppendFormat(&text, "estimate: %.1f s with %s (%.1f s of CPU), at most %s of memory, %s of disk (%s of it stay)\n",
                        total.seconds, Plural(threads, "thread"), total.cpu_seconds, HumanBytes(total.peak_memory_bytes),
                        HumanBytes(disk.total()), HumanBytes(output_bytes));
  return text;
}

std::string SensitivityTable(absl::Span<const SensitivityReport> reports) {
  std::string text = absl::StrFormat("  %10s  %10s  %-24s %12s  %s\n", "KL alone", "KL chosen", "scheme", "bytes", "modules");
  for (const SensitivityReport& report : reports) {
    absl::StrAppendFormat(&text, "  %10.6f  %10.6f  %-24s %12d  %s\n", report.kl, report.expected_kl,
                          DescribeStorage(report.scheme, report.group_size), report.bytes, absl::StrJoin(report.modules, " "));
  }
  return text;
}

}  // namespace pith
