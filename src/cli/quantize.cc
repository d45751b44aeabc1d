#include <map>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "artifact/artifact_writer.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/model_bundle.h"
#include "cli/model_path.h"
#include "cli/recipe_flag.h"
#include "cli/version.h"
#include "compression/bit_budget.h"
#include "compression/modifier.h"
#include "compression/self_sampling.h"
#include "compression/session.h"

namespace pith {
namespace {

struct Options {
  std::string model, output, scheme = "W4A16", method = "rtn", group_size = "auto", embeddings, head, recipe;
  std::vector<std::string> calibration;
  CalibrationOptions samples;
  std::vector<std::string> ignore;
  double bits_per_weight = 0;  // 0: one scheme for all
  bool no_clip_search = false, dry_run = false, resume = false, strict = false;
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
    if (scheme.weights.has_value()) names.push_back(scheme.name);
  }
  return absl::StrJoin(names, ", ");
}

std::string MethodNames() {
  const auto describe = [](std::string* out, const MethodRow& row) { absl::StrAppend(out, row.name, ": ", row.summary); };
  return absl::StrCat(absl::StrJoin(Methods(), "; ", describe), "; auto: the best known for the scheme");
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

std::string DescribePlan(const CompressionPlan& plan, const Recipe& recipe) {
  int64_t quantized = 0, weights = 0, kept = 0;
  for (const PlannedModule& module : plan.modules) {
    quantized += module.quantized ? 1 : 0;
    kept += module.quantized ? 0 : 1;
    weights += module.out * module.in;
  }
  return absl::StrFormat("%s by %s: %s (%.1f M weights) in %s%s%s; %s kept in %s; %s -> %s of tensors\n", recipe.scheme.name, recipe.method,
                         Plural(quantized, recipe.overrides.empty() ? "linear layer" : "module"), static_cast<double>(weights) / 1e6,
                         DescribeScales(plan.args, recipe), DescribeActivations(recipe.scheme), DescribeOverrides(plan, recipe),
                         Plural(kept, "other tensor"), DTypeName(plan.model_dtype), HumanBytes(plan.input_bytes),
                         HumanBytes(plan.output_bytes));
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

// The errors of hidden states behind the last layer, where they were measured.
std::string BlockSummary(const CompressionReport& report) {
  if (report.blocks.empty()) return "";
  double local = 0;
  for (const BlockReport& block : report.blocks) local += block.local.relative / static_cast<double>(report.blocks.size());
  const OutputError& last = report.blocks.back().accumulated;
  return absl::StrFormat("hidden states: relative error %.4f per layer on average; behind the last %.4f, SQNR %.1f dB, cosine %.4f\n",
                         local, last.relative, last.sqnr_db, last.cosine);
}

// A bar per phase of the work; Ctrl-C ends it.
class PhaseProgress {
 public:
  std::function<absl::Status(absl::string_view, int64_t, int64_t)> callback(const char* unit) {
    return [this, unit](absl::string_view name, int64_t done, int64_t total) {
      if (phase_ != name) {
        End();
        phase_ = std::string(name);
        progress_.emplace(name, total, unit);
      }
      progress_->Set(done);
      return CheckInterrupted();
    };
  }
  void End() {
    progress_.reset();
    phase_.clear();
  }

 private:
  std::optional<Progress> progress_;
  std::string phase_;
};

absl::StatusOr<CalibrationData> MakeCalibrationData(const Options& options, const ArtifactReader& reader, ThreadPool& pool,
                                                    PhaseProgress& progress) {
  ASSIGN_OR_RETURN(const ModelBundle bundle, LoadModelFiles(options.model));
  const ModelText text{.tokenizer = *bundle.tokenizer,
                       .chat_template = bundle.chat_template.has_value() ? &*bundle.chat_template : nullptr,
                       .bos_token = bundle.bos_token,
                       .eos_token = bundle.eos_token,
                       .stop_token_ids = bundle.stop_token_ids};
  CalibrationOptions samples = options.samples;
  samples.seed = options.seed;
  if (!options.calibration.empty()) return LoadCalibrationData(options.calibration, text, samples);
  auto data = SampleCalibrationData(reader, text, samples, pool, progress.callback("steps"));
  progress.End();
  return data;
}

std::string DescribeCalibration(const CalibrationData& data) {
  const auto domain = [](std::string* out, const auto& entry) { absl::StrAppend(out, entry.first, " ", entry.second); };
  return absl::StrFormat("calibration: %s, %s; tokens by domain: %s\n", Plural(static_cast<int64_t>(data.sequences.size()), "sample"),
                         data.files.empty() ? "drawn from the model itself" : absl::StrCat("from ", absl::StrJoin(data.files, ", ")),
                         absl::StrJoin(data.domain_tokens, ", ", domain));
}

absl::StatusOr<Recipe> RecipeOf(const Options& options) {
  ASSIGN_OR_RETURN(Recipe recipe,
                   MakeRecipe(options.scheme, options.method, options.group_size, options.ignore, !options.no_clip_search, options.seed));
  if (!options.embeddings.empty()) RETURN_IF_ERROR(QuantizeEmbeddings(options.embeddings, "auto", recipe));
  if (!options.head.empty()) RETURN_IF_ERROR(QuantizeHead(options.head, "auto", recipe));
  return recipe;
}

absl::Status DryRun(const Options& options, const CommonOptions& common, const ArtifactReader& reader, const CompressionPlan& plan,
                    OrderedJson result) {
  if (options.bits_per_weight > 0) return UsageError("--dry-run: expected no --bits-per-weight, which has to measure first, found it");
  RETURN_IF_ERROR(ArtifactWriter::Create(options.output, {.source_path = reader.path()}).status());  // nothing stays of it
  if (!common.json_to_stdout()) RETURN_IF_ERROR(PrintResult(PlanTable(plan)));
  result["plan"] = PlanJson(plan);
  return WriteJsonResult(common, result);
}

absl::Status Run(const Options& options, const CommonOptions& common) {
  ASSIGN_OR_RETURN(Recipe recipe, RecipeOf(options));
  ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactReader> reader, OpenModel(options.model));
  if (!options.recipe.empty()) {
    ASSIGN_OR_RETURN(recipe, ReadRecipeFlag(options.recipe, *reader, options.seed, common.quiet));
  }
  ASSIGN_OR_RETURN(CompressionPlan plan, PlanCompression(*reader, recipe));
  if (!common.json_to_stdout() && options.bits_per_weight == 0) {
    RETURN_IF_ERROR(PrintResult(DescribePlan(plan, recipe) + DescribeOutliers(recipe, !options.calibration.empty())));
  }
  OrderedJson result = {{"input", options.model}, {"output", options.output}, {"recipe", ToJson(recipe)}};
  if (options.dry_run) return DryRun(options, common, *reader, plan, std::move(result));
  ThreadPool pool(common.threads);
  CompressionOptions compression{.pith_version = kVersion, .resume = options.resume};
  PhaseProgress progress;
  compression.progress = progress.callback("modules");
  std::optional<CalibrationData> calibration;
  if (!options.calibration.empty() || NeedsCalibration(recipe) || options.bits_per_weight > 0) {
    ASSIGN_OR_RETURN(calibration, MakeCalibrationData(options, *reader, pool, progress));
    if (!common.json_to_stdout()) RETURN_IF_ERROR(PrintResult(DescribeCalibration(*calibration)));
    if (NeedsCalibration(recipe) || !options.calibration.empty()) compression.calibration = &*calibration;
  }
  if (options.bits_per_weight > 0) {
    ASSIGN_OR_RETURN(
        recipe, AllocateRecipe(*reader, recipe, options.bits_per_weight, *calibration, {}, pool,
                               [sets = progress.callback("sets")](int64_t done, int64_t total) { return sets("measuring", done, total); }));
    progress.End();
    ASSIGN_OR_RETURN(plan, PlanCompression(*reader, recipe));
    if (!common.json_to_stdout()) RETURN_IF_ERROR(PrintResult(DescribePlan(plan, recipe)));
    result["recipe"] = ToJson(recipe);
  }
  ASSIGN_OR_RETURN(const CompressionReport report, Compress(*reader, recipe, options.output, pool, compression));
  progress.End();
  if (!common.json_to_stdout()) {
    const std::string outliers = OutlierSummary(report, recipe, compression.calibration != nullptr);
    RETURN_IF_ERROR(PrintResult(Summary(report, options.output) + outliers + BlockSummary(report)));
  }
  result["report"] = ToJson(report);
  RETURN_IF_ERROR(WriteJsonResult(common, result));
  const std::vector<std::string> warnings = report.Warnings();
  for (const std::string& warning : warnings) spdlog::warn("{}", warning);
  if (warnings.empty() || !options.strict) return absl::OkStatus();
  return RefusedError("--strict: expected a run without warnings, found ", warnings.size());
}

}  // namespace

CommandFunction SetupQuantize(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("model", options->model, "dense model: a Hugging Face directory (pith convert makes one from GGUF)")->required();
  app.add_option("-o,--output", options->output, "new directory to write")->required();
  app.add_option("--scheme", options->scheme, SchemeNames())->capture_default_str();
  app.add_option("--method", options->method, MethodNames())->capture_default_str();
  app.add_option("--calibration", options->calibration,
                 "texts for methods that need data, and for LLM_INT8 to fix its outlier columns: .txt, .raw, .utf8 or .jsonl files, or "
                 "folders of them (default where needed: text sampled from the model itself)");
  app.add_option("--num-samples", options->samples.num_samples, "samples of calibration data")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--sequence-length", options->samples.sequence_length, "tokens of a sample")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  app.add_option("--quantize-embeddings", options->embeddings,
                 "scheme of the embedding, and of the head where it is tied: W8A16, W4A16, ... (default: left as it is)");
  app.add_option("--quantize-head", options->head, "scheme of a head that is not tied (default: left as it is)");
  app.add_option("--group-size", options->group_size,
                 "auto (what the scheme has: channels, blocks, or groups of the largest power of two <= 128 that divides every row), a "
                 "number, channel or tensor")
      ->capture_default_str();
  app.add_option("--bits-per-weight", options->bits_per_weight,
                 "average bits of a weight, scales included: modules that matter most get groups of 32 or 8 bits (weight-only schemes of "
                 "4 bits; default: one scheme for all)")
      ->check(CLI::Range(1.0, 16.0));
  app.add_option("--ignore", options->ignore, "modules to leave as they are, beside lm_head: a name, or re: and a regular expression");
  app.add_flag("--no-clip-search", options->no_clip_search, "scales from the largest weight alone");
  AddRecipeFlag(app, options->recipe);
  app.add_flag("--dry-run", options->dry_run, "show what would be written, and stop");
  app.add_flag("--resume", options->resume, "continue what an interrupted run of the same output left in OUTPUT.unfinished");
  app.add_flag("--strict", options->strict, "exit 3 when something did not go as asked (warnings); the output is kept");
  AddSeedFlag(app, options->seed, "seed of methods that draw");
  return [options](const CommonOptions& common) { return Run(*options, common); };
}

}  // namespace pith
