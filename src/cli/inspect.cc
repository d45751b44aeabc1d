#include "CLI/CLI.hpp"
#include "artifact/config_coverage.h"
#include "artifact/loader_support.h"
#include "base/cpu_features.h"
#include "base/status.h"
#include "cli/activations_flag.h"
#include "cli/commands.h"
#include "cli/data_path_report.h"
#include "cli/kv_cache_report.h"
#include "cli/model_bundle.h"
#include "cli/prepack_cache_flag.h"
#include "cli/process_memory.h"

namespace pith {
namespace {

struct InspectFlags {
  WeightOnlyActivation activations;
  std::string prepack_cache;
  std::string model;
  bool all = false;
};

// Which programs load the artifact, whether its config explains every tensor, and what else its reader has to say.
struct CompatibilityReport {
  std::vector<LoaderVerdict> loaders;
  std::optional<ConfigCoverage> coverage;
  std::vector<std::string> notes;
};

absl::StatusOr<CompatibilityReport> MakeCompatibilityReport(const ArtifactReader& reader) {
  CompatibilityReport report;
  ASSIGN_OR_RETURN(const LoadFacts facts, ReadLoadFacts(reader));
  report.loaders = JudgeLoaders(facts);
  ASSIGN_OR_RETURN(report.coverage, ReadConfigCoverage(reader));
  report.notes = reader.notes();
  return report;
}

std::string CompatibilityLines(const CompatibilityReport& report) {
  std::string lines = absl::StrCat(DescribeVerdicts(report.loaders), "\n");
  if (report.coverage.has_value()) absl::StrAppend(&lines, "quantization_config: ", report.coverage->Describe(), "\n");
  for (const std::string& note : report.notes) absl::StrAppend(&lines, note, "\n");
  return lines;
}

void AddCompatibility(const CompatibilityReport& report, OrderedJson& result) {
  result["loaders"] = OrderedJson::object();
  for (const LoaderVerdict& verdict : report.loaders) {
    result["loaders"][std::string(verdict.loader)] = {{"loads", verdict.obstacles.empty()}, {"obstacles", verdict.obstacles}};
  }
  if (report.coverage.has_value()) {
    result["config_coverage"] = {{"by_group", report.coverage->by_group},
                                 {"by_ignore", report.coverage->by_ignore},
                                 {"by_kv_cache_scheme", report.coverage->by_kv_cache_scheme},
                                 {"untargeted", report.coverage->untargeted},
                                 {"problems", report.coverage->problems}};
  }
  result["notes"] = report.notes;
}

absl::Status RunInspect(const InspectFlags& options, const CommonOptions& common) {
  ThreadPool pool(common.threads);
  ASSIGN_OR_RETURN(ModelBundle bundle, LoadModelFiles(options.model));
  ASSIGN_OR_RETURN(const Isa isa, SelectIsa());
  const ComputeContext context = MakeComputeContext(&pool, isa, options.activations);
  const auto forecast = ForecastWeightBytes(*bundle.reader, context);
  if (!forecast.ok()) return Annotate(forecast.status(), bundle.reader->path());
  const int64_t before = AnonymousMemoryBytes();
  RETURN_IF_ERROR(LoadWeights(bundle, pool, options.activations, options.prepack_cache));
  const int64_t process_bytes = AnonymousMemoryBytes() - before;
  ASSIGN_OR_RETURN(MemoryReport memory, MakeMemoryReport(*bundle.reader, *bundle.model, context));
  memory.forecast = *forecast;
  memory.process_bytes = process_bytes;
  ASSIGN_OR_RETURN(const DeclaredKvCache kv_cache, ReadDeclaredKvCache(*bundle.reader, bundle.model->config()));
  ASSIGN_OR_RETURN(const CompatibilityReport compatibility, MakeCompatibilityReport(*bundle.reader));
  if (!common.json_to_stdout()) {
    RETURN_IF_ERROR(PrintResult(DataPathTable(bundle.model->data_path(), options.all)));
    RETURN_IF_ERROR(PrintResult(MemoryTable(memory) + KvCacheLine(kv_cache)));
    RETURN_IF_ERROR(PrintResult(CompatibilityLines(compatibility)));
  }
  OrderedJson tensors = OrderedJson::array();
  for (const TensorDataPath& path : bundle.model->data_path()) tensors.push_back(ToJson(path));
  OrderedJson result = {{"model", options.model},
                        {"format", bundle.reader->format()},
                        {"architecture", bundle.model->config().model_type},
                        {"data_path", bundle.model->DataPathName()},
                        {"tensors", tensors},
                        {"memory", ToJson(memory)},
                        {"kv_cache", ToJson(kv_cache)}};
  AddCompatibility(compatibility, result);
  if (const PrepackCacheReport& cache = bundle.prepack_cache; !cache.path.empty()) {
    result["prepack_cache"] = {{"path", cache.path}, {"used", cache.used}, {"bytes_written", cache.bytes_written}};
  }
  return WriteJsonResult(common, result);
}

}  // namespace

CommandFunction SetupInspect(CLI::App& app) {
  auto options = std::make_shared<InspectFlags>();
  app.add_option("model", options->model, "model: a directory, a .gguf file, or ORG/NAME that pith pull fetched")->required();
  app.add_flag("--all", options->all, "one line per tensor instead of one per kind");
  AddActivationsFlag(app, options->activations);
  AddPrepackCacheFlag(app, options->prepack_cache);
  return [options](const CommonOptions& common) { return RunInspect(*options, common); };
}

}  // namespace pith
