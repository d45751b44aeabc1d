#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "artifact/artifact_writer.h"
#include "base/progress.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/model_path.h"
#include "cli/version.h"
#include "compression/session.h"

namespace pith {
namespace {

struct Options {
  std::string model, output, scheme = "W4A16", method = "rtn", group_size = "auto";
  std::vector<std::string> ignore;
  bool no_clip_search = false, dry_run = false;
  uint64_t seed = 0;
};

std::string DescribeScales(const QuantizationArgs& args, const Recipe& recipe) {
  if (args.strategy == QuantizationStrategy::kBlock) return absl::StrCat("blocks of ", args.block_rows, "x", args.block_cols);
  if (args.strategy != QuantizationStrategy::kGroup) return absl::StrCat("a scale per ", StrategyName(args.strategy));
  const bool chosen = recipe.group_size == 0;
  return absl::StrCat("groups of ", args.group_size, chosen ? " (auto: the largest power of two <= 128 that divides every row)" : "");
}

std::string DescribeActivations(const QuantizationScheme& scheme) {
  return scheme.input_activations.has_value() ? absl::StrCat(", activations ", DescribeInput(*scheme.input_activations)) : "";
}

// The schemes that can be quantized to, in the table's order.
std::string SchemeNames() {
  std::vector<absl::string_view> names;
  for (const QuantizationScheme& scheme : PresetSchemes()) {
    if (scheme.weights.has_value() && !scheme.NeedsCalibration()) names.push_back(scheme.name);
  }
  return absl::StrJoin(names, ", ");
}

std::string DescribePlan(const CompressionPlan& plan, const Recipe& recipe) {
  int64_t quantized = 0, weights = 0, kept = 0;
  for (const PlannedModule& module : plan.modules) {
    quantized += module.quantized ? 1 : 0;
    kept += module.quantized ? 0 : 1;
    weights += module.out * module.in;
  }
  return absl::StrFormat("%s by %s: %s (%.1f M weights) in %s%s; %s kept in %s; %s -> %s of tensors\n", recipe.scheme.name, recipe.method,
                         Plural(quantized, "linear layer"), static_cast<double>(weights) / 1e6, DescribeScales(plan.args, recipe),
                         DescribeActivations(recipe.scheme), Plural(kept, "other tensor"), DTypeName(plan.model_dtype),
                         HumanBytes(plan.input_bytes), HumanBytes(plan.output_bytes));
}

OrderedJson PlanJson(const CompressionPlan& plan) {
  OrderedJson tensors = OrderedJson::array();
  for (const TensorSpec& spec : PlannedTensors(plan)) {
    tensors.push_back({{"name", spec.name},
                       {"dtype", std::string(DTypeName(spec.dtype))},
                       {"shape", std::vector<int64_t>(spec.shape.begin(), spec.shape.end())},
                       {"bytes", NumElements(spec.shape) * ByteSize(spec.dtype)}});
  }
  return {
      {"input_bytes", plan.input_bytes}, {"output_bytes", plan.output_bytes}, {"group_size", plan.args.group_size}, {"tensors", tensors}};
}

// One line per tensor that would be written.
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
  return absl::StrFormat("%s: %s of tensors (%.2fx smaller) in %.1f s; relative weight error %.4f on average, worst %.4f (%s)\n", output,
                         HumanBytes(report.output_bytes),
                         static_cast<double>(report.input_bytes) / static_cast<double>(report.output_bytes), report.seconds, error, worst,
                         worst_name);
}

absl::Status Run(const Options& options, const CommonOptions& common) {
  ASSIGN_OR_RETURN(const Recipe recipe,
                   MakeRecipe(options.scheme, options.method, options.group_size, options.ignore, !options.no_clip_search, options.seed));
  ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactReader> reader, OpenModel(options.model));
  ASSIGN_OR_RETURN(const CompressionPlan plan, PlanCompression(*reader, recipe));
  if (!common.json_to_stdout()) RETURN_IF_ERROR(PrintResult(DescribePlan(plan, recipe)));
  OrderedJson result = {{"input", options.model}, {"output", options.output}, {"recipe", ToJson(recipe)}};
  if (options.dry_run) {
    RETURN_IF_ERROR(ArtifactWriter::Create(options.output, {.source_path = reader->path()}).status());  // nothing stays of it
    if (!common.json_to_stdout()) RETURN_IF_ERROR(PrintResult(PlanTable(plan)));
    result["plan"] = PlanJson(plan);
    return WriteJsonResult(common, result);
  }
  ThreadPool pool(common.threads);
  std::optional<Progress> progress;
  std::string phase;
  CompressionOptions compression{.pith_version = kVersion};
  compression.progress = [&](absl::string_view name, int64_t done, int64_t total) {
    if (phase != name) {
      phase = std::string(name);
      progress.reset();
      progress.emplace(name, total, "modules");
    }
    progress->Set(done);
    return CheckInterrupted();
  };
  ASSIGN_OR_RETURN(const CompressionReport report, Compress(*reader, recipe, options.output, pool, compression));
  progress.reset();
  if (!common.json_to_stdout()) RETURN_IF_ERROR(PrintResult(Summary(report, options.output)));
  result["report"] = ToJson(report);
  return WriteJsonResult(common, result);
}

}  // namespace

CommandFunction SetupQuantize(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("model", options->model,
                 "dense model: a Hugging Face directory (pith convert makes one from GGUF), or ORG/NAME that pith pull fetched")
      ->required();
  app.add_option("-o,--output", options->output, "new directory to write")->required();
  app.add_option("--scheme", options->scheme, SchemeNames())->capture_default_str();
  app.add_option("--method", options->method, "rtn: round to nearest with a searched clipping range")->capture_default_str();
  app.add_option("--group-size", options->group_size,
                 "auto (what the scheme has: channels, blocks, or groups of the largest power of two <= 128 that divides every row), a "
                 "number, channel or tensor")
      ->capture_default_str();
  app.add_option("--ignore", options->ignore, "modules to leave as they are, beside lm_head: a name, or re: and a regular expression");
  app.add_flag("--no-clip-search", options->no_clip_search, "scales from the largest weight alone");
  app.add_flag("--dry-run", options->dry_run, "show what would be written, and stop");
  AddSeedFlag(app, options->seed, "seed of methods that draw");
  return [options](const CommonOptions& common) { return Run(*options, common); };
}

}  // namespace pith
