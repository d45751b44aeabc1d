#include <algorithm>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/resource_use.h"
#include "base/status.h"
#include "cli/calibration_flag.h"
#include "cli/commands.h"
#include "cli/model_bundle.h"
#include "cli/model_path.h"
#include "cli/quantize_text.h"
#include "cli/recipe_flag.h"
#include "cli/version.h"
#include "compression/bit_budget.h"
#include "compression/modifier.h"
#include "compression/pipelines/sequential.h"
#include "compression/run_estimate.h"
#include "compression/self_sampling.h"
#include "compression/session.h"

namespace pith {
namespace {

struct Options {
  std::string model, output, scheme = "W4A16", method = "rtn", group_size = "auto", embeddings, head, kv_cache, recipe;
  std::vector<std::string> calibration;
  CalibrationOptions samples;
  std::vector<std::string> ignore;
  double bits_per_weight = 0;  // 0: one scheme for all
  bool no_clip_search = false, dry_run = false, resume = false, strict = false;
  uint64_t seed = 0;
};

std::string KvCacheNames() {
  const auto describe = [](std::string* out, const KvCacheScheme& scheme) { absl::StrAppend(out, scheme.name, ": ", scheme.summary); };
  return absl::StrJoin(KvCacheSchemes(), "; ", describe);
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

CalibrationOptions SampleOptions(const Options& options) {
  CalibrationOptions samples = options.samples;
  samples.seed = options.seed;
  return samples;
}

// The data asked for, and what it took.
absl::StatusOr<CalibrationData> TimedCalibrationData(const Options& options, const ArtifactReader& reader, ThreadPool& pool,
                                                     PhaseProgress& progress, std::vector<PhaseUse>& phases) {
  ResourceMeter meter;
  auto data = MakeCalibrationData(options.model, options.calibration, SampleOptions(options), reader, pool, progress);
  phases.push_back({"calibration", meter.Lap()});
  return data;
}

// Weights as they are and a KV cache: of the flags that say how weights are quantized none can be meant.
absl::StatusOr<Recipe> KvCacheRecipe(const Options& options) {
  const std::pair<const char*, bool> flags[] = {{"--method", options.method != "rtn" && options.method != "auto"},
                                                {"--group-size", options.group_size != "auto"},
                                                {"--ignore", !options.ignore.empty()},
                                                {"--no-clip-search", options.no_clip_search},
                                                {"--quantize-embeddings", !options.embeddings.empty()},
                                                {"--quantize-head", !options.head.empty()},
                                                {"--bits-per-weight", options.bits_per_weight > 0}};
  for (const auto& [flag, given] : flags) {
    if (given) return UsageError("--scheme BF16: expected no flag that says how weights are quantized, found ", flag);
  }
  Recipe recipe = MakeDenseRecipe(options.seed);
  RETURN_IF_ERROR(SetKvCache(options.kv_cache, recipe));
  return recipe;
}

absl::StatusOr<Recipe> RecipeOf(const Options& options) {
  if (absl::EqualsIgnoreCase(options.scheme, "BF16") && !options.kv_cache.empty()) return KvCacheRecipe(options);
  ASSIGN_OR_RETURN(Recipe recipe,
                   MakeRecipe(options.scheme, options.method, options.group_size, options.ignore, !options.no_clip_search, options.seed));
  if (!options.embeddings.empty()) RETURN_IF_ERROR(QuantizeEmbeddings(options.embeddings, "auto", recipe));
  if (!options.head.empty()) RETURN_IF_ERROR(QuantizeHead(options.head, "auto", recipe));
  if (!options.kv_cache.empty()) RETURN_IF_ERROR(SetKvCache(options.kv_cache, recipe));
  return recipe;
}

bool UsesData(const Options& options, const Recipe& recipe) { return !options.calibration.empty() || NeedsCalibration(recipe); }

// Refuses what is known to fail before calibration data are made, which may take minutes.
absl::Status CheckBeforehand(const Options& options, const ArtifactReader& reader, const Recipe& recipe, const CompressionPlan& plan,
                             const CompressionOptions& compression) {
  const CalibrationOptions samples = SampleOptions(options);
  const bool from_files = !options.calibration.empty();
  OrderedJson known = ToJson(recipe);
  if (options.bits_per_weight > 0) known.erase("overrides");  // they follow from what is measured
  known["calibration"] = UsesData(options, recipe) ? KnownJson(samples, from_files) : OrderedJson(nullptr);
  CalibrationSize size;
  if (UsesData(options, recipe) && !from_files) {  // files may have fewer tokens than asked for
    size.tokens = samples.num_samples * samples.sequence_length;
    size.measured_tokens = std::min(samples.num_samples, kMeasuredSequences) * samples.sequence_length;
  }
  return CheckRun(reader, plan, known, size, options.output, compression);
}

// Stands in for the data of a run: those of files, or random ones where the model would write them. Says what making them takes.
absl::StatusOr<CalibrationData> TryCalibration(const Options& options, const ArtifactReader& reader, ThreadPool& pool,
                                               PhaseProgress& progress, std::vector<PhaseUse>& phases) {
  if (!options.calibration.empty()) return TimedCalibrationData(options, reader, pool, progress, phases);
  ASSIGN_OR_RETURN(const ModelBundle bundle, LoadModelFiles(options.model));
  ASSIGN_OR_RETURN(const ResourceUse use,
                   EstimateSampling(reader, ModelTextOf(bundle), SampleOptions(options), pool, progress.callback("steps")));
  progress.End();
  phases.push_back({"calibration", use});
  ASSIGN_OR_RETURN(const DecoderConfig config, ParseDecoderConfig(reader.config()));
  return RandomCalibrationData(SampleOptions(options), config.vocab_size);
}

absl::Status DryRun(const Options& options, const CommonOptions& common, const ArtifactReader& reader, const Recipe& recipe,
                    const CompressionPlan& plan, OrderedJson result) {
  if (options.bits_per_weight > 0) return UsageError("--dry-run: expected no --bits-per-weight, which has to measure first, found it");
  if (!common.json_to_stdout()) RETURN_IF_ERROR(PrintResult(PlanTable(plan)));
  ThreadPool pool(common.threads);
  PhaseProgress progress;
  std::vector<PhaseUse> phases;
  std::optional<CalibrationData> data;
  if (UsesData(options, recipe)) {
    ASSIGN_OR_RETURN(data, TryCalibration(options, reader, pool, progress, phases));
  }
  const CalibrationData* calibration = data.has_value() ? &*data : nullptr;
  const auto step = [steps = progress.callback("steps")](int64_t done, int64_t total) { return steps("trying a layer", done, total); };
  ASSIGN_OR_RETURN(const std::vector<PhaseUse> work, EstimateCompression(reader, recipe, plan, calibration, options.output, pool, step));
  progress.End();
  phases.insert(phases.end(), work.begin(), work.end());
  ASSIGN_OR_RETURN(const DecoderConfig config, ParseDecoderConfig(reader.config()));
  const DiskNeed disk = ComputeDiskNeed(plan, config.hidden_size, SizeOf(calibration));
  if (!common.json_to_stdout()) RETURN_IF_ERROR(PrintResult(EstimateText(phases, disk, plan.output_bytes, pool.num_threads())));
  result["plan"] = PlanJson(plan);
  OrderedJson estimate = ToJson(TotalUse(phases));
  estimate["threads"] = pool.num_threads();
  estimate["disk_bytes"] = ToJson(disk);
  estimate["phases"] = ToJson(phases);
  result["estimate"] = estimate;
  return WriteJsonResult(common, result);
}

// Replaces the recipe by one with the bits that --bits-per-weight allows.
absl::Status SpendBits(const Options& options, const CommonOptions& common, const ArtifactReader& reader,
                       const CalibrationData& calibration, ThreadPool& pool, PhaseProgress& progress, Recipe& recipe,
                       CompressionOptions& compression, std::vector<PhaseUse>& phases) {
  ResourceMeter meter;
  ASSIGN_OR_RETURN(AllocatedRecipe allocated, AllocateRecipe(reader, recipe, options.bits_per_weight, calibration, {}, pool,
                                                             [sets = progress.callback("sets")](int64_t done, int64_t total) {
                                                               return sets("measuring", done, total);
                                                             }));
  progress.End();
  phases.push_back({"measuring", meter.Lap()});
  recipe = std::move(allocated.recipe);
  compression.sensitivities = std::move(allocated.sensitivities);
  spdlog::info("sensitivities:\n{}", SensitivityTable(compression.sensitivities));
  ASSIGN_OR_RETURN(const CompressionPlan plan, PlanCompression(reader, recipe));
  return common.json_to_stdout() ? absl::OkStatus() : PrintResult(DescribePlan(plan, recipe));
}

absl::Status Run(const Options& options, const CommonOptions& common) {
  ASSIGN_OR_RETURN(Recipe recipe, RecipeOf(options));
  ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactReader> reader, OpenModel(options.model));
  if (!options.recipe.empty()) {
    ASSIGN_OR_RETURN(recipe, ReadRecipeFlag(options.recipe, *reader, options.seed, common.quiet));
  }
  ASSIGN_OR_RETURN(const CompressionPlan plan, PlanCompression(*reader, recipe));
  if (!common.json_to_stdout() && options.bits_per_weight == 0) {
    RETURN_IF_ERROR(PrintResult(DescribePlan(plan, recipe) + DescribeOutliers(recipe, !options.calibration.empty())));
  }
  CompressionOptions compression{.pith_version = kVersion, .resume = options.resume};
  RETURN_IF_ERROR(CheckBeforehand(options, *reader, recipe, plan, compression));
  OrderedJson result = {{"input", options.model}, {"output", options.output}, {"recipe", ToJson(recipe)}};
  if (options.dry_run) return DryRun(options, common, *reader, recipe, plan, std::move(result));
  ThreadPool pool(common.threads);
  PhaseProgress progress;
  compression.progress = progress.callback("modules");
  std::vector<PhaseUse> phases;
  std::optional<CalibrationData> calibration;
  if (UsesData(options, recipe) || options.bits_per_weight > 0) {
    ASSIGN_OR_RETURN(calibration, TimedCalibrationData(options, *reader, pool, progress, phases));
    if (!common.json_to_stdout()) RETURN_IF_ERROR(PrintResult(DescribeCalibration(*calibration)));
    if (UsesData(options, recipe)) compression.calibration = &*calibration;
  }
  if (options.bits_per_weight > 0) {
    RETURN_IF_ERROR(SpendBits(options, common, *reader, *calibration, pool, progress, recipe, compression, phases));
    result["recipe"] = ToJson(recipe);
  }
  ASSIGN_OR_RETURN(CompressionReport report, Compress(*reader, recipe, options.output, pool, compression));
  progress.End();
  report.phases.insert(report.phases.begin(), phases.begin(), phases.end());
  if (!common.json_to_stdout()) {
    const std::string outliers = OutlierSummary(report, recipe, compression.calibration != nullptr);
    RETURN_IF_ERROR(PrintResult(Summary(report, options.output) + outliers + BlockSummary(report)));
  }
  result["report"] = ToJson(report, /*run=*/true);
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
  app.add_option("--scheme", options->scheme, absl::StrCat(SchemeNames(), "; BF16 with --kv-cache"))->capture_default_str();
  app.add_option("--method", options->method, MethodNames())->capture_default_str();
  AddCalibrationFlags(
      app, options->calibration, options->samples,
      "for methods that need data, and for LLM_INT8 to fix its outlier columns (default where needed: text sampled from the "
      "model itself)");
  app.add_option("--quantize-embeddings", options->embeddings,
                 "scheme of the embedding, and of the head where it is tied: W8A16, W4A16, ... (default: left as it is)");
  app.add_option("--quantize-head", options->head,
                 "scheme of a head that is not tied, or no longer after a rotation (default: left as it is)");
  app.add_option("--kv-cache", options->kv_cache,
                 absl::StrCat("what the artifact declares of its KV cache: ", KvCacheNames(),
                              " (default: nothing; with --scheme BF16 the weights stay as they are)"));
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
  app.add_flag("--dry-run", options->dry_run,
               "show what would be written and what the run would take (time, memory and disk, tried on one layer), and stop");
  app.add_flag("--resume", options->resume, "continue what an interrupted run of the same output left in OUTPUT.unfinished");
  app.add_flag("--strict", options->strict, "exit 3 when something did not go as asked (warnings); the output is kept");
  AddSeedFlag(app, options->seed, "seed of methods that draw");
  return [options](const CommonOptions& common) { return Run(*options, common); };
}

}  // namespace pith
