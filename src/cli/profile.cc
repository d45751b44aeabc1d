#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/cpu_features.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "cli/activations_flag.h"
#include "cli/bf16_twin.h"
#include "cli/chrome_trace.h"
#include "cli/commands.h"
#include "cli/kv_cache_flag.h"
#include "cli/machine_limits.h"
#include "cli/model_bundle.h"
#include "cli/operator_profile.h"
#include "cli/prepack_cache_flag.h"
#include "cli/process_memory.h"
#include "cli/workload.h"

namespace pith {
namespace {

struct ProfileFlags {
  WeightOnlyActivation activations;
  std::string prepack_cache;
  std::string model, bf16 = "measured";
  std::optional<std::string> trace;
  int64_t prompt = 128, gen = 32, batch = 1;
  int repeat = 3;
  bool layers = false;
  std::optional<KvDtype> kv_cache_dtype;
};

// One model's rounds of both phases. A phase without tokens has no passes.
struct Subject {
  DecoderModel* model = nullptr;
  PhaseRounds prefill{.phase = "prefill"}, decode{.phase = "decode"};
};

absl::StatusOr<std::vector<OperatorRecord>> Record(DecoderModel& model, Workload& workload, int64_t rows, int64_t steps,
                                                   PhaseRounds& rounds) {
  Profiler profiler;
  model.SetProfiler(&profiler);
  absl::Status status;
  for (int64_t step = 0; step < steps && status.ok(); ++step) status = workload.Advance(rows);
  model.SetProfiler(nullptr);
  RETURN_IF_ERROR(status);
  rounds.passes = profiler.num_passes();
  return profiler.records();
}

// One round: the prompt, then the decode steps. The first of a subject warms up and is not kept.
absl::Status RunRound(const ProfileFlags& options, bool keep, Subject& subject) {
  ASSIGN_OR_RETURN(Workload workload,
                   Workload::Create(*subject.model, options.batch, options.prompt + options.gen, options.kv_cache_dtype));
  for (const bool decode : {false, true}) {
    PhaseRounds& rounds = decode ? subject.decode : subject.prefill;
    const int64_t tokens = decode ? options.gen : options.prompt;
    if (tokens == 0) continue;
    rounds.rows_per_pass = options.batch * (decode ? 1 : std::min(tokens, Workload::kMaxPassRows));
    ASSIGN_OR_RETURN(std::vector<OperatorRecord> records,
                     Record(*subject.model, workload, decode ? 1 : tokens, decode ? tokens : 1, rounds));
    if (keep) rounds.rounds.push_back(std::move(records));
  }
  return absl::OkStatus();
}

// The twin, or nullptr with the reason in `source` when there is nothing to measure.
absl::StatusOr<std::unique_ptr<DecoderModel>> LoadTwin(const ProfileFlags& options, const ModelBundle& bundle, Isa isa, ThreadPool& pool,
                                                       TwinSource& source) {
  const absl::Span<const TensorDataPath> paths = bundle.model->data_path();
  source = TwinSource::kIsBf16;
  if (std::all_of(paths.begin(), paths.end(), [](const TensorDataPath& path) { return path.scheme == "BF16"; })) return nullptr;
  source = options.bf16 == "off" ? TwinSource::kNone : TwinSource::kEstimated;
  if (options.bf16 != "measured") return nullptr;
  ASSIGN_OR_RETURN(const std::unique_ptr<Bf16Twin> twin, Bf16Twin::Create(*bundle.reader));
  const int64_t available = AvailableMemoryBytes();
  if (available > 0 && available < 2 * twin->weight_bytes()) {
    spdlog::warn("the BF16 twin needs {} while it loads, {} are free: its times are estimated", HumanBytes(2 * twin->weight_bytes()),
                 HumanBytes(available));
    return nullptr;
  }
  source = TwinSource::kMeasured;
  return DecoderModel::Load(*twin, {.pool = &pool, .isa = isa});
}

struct ProfileReport {
  std::vector<PhaseSummary> phases;
  MachineLimits limits, one_thread;
};

absl::StatusOr<ProfileReport> Measure(const ProfileFlags& options, const ModelBundle& bundle, Isa isa, ThreadPool& pool, Subject& subject) {
  TwinSource source = TwinSource::kNone;
  ASSIGN_OR_RETURN(const std::unique_ptr<DecoderModel> twin_model, LoadTwin(options, bundle, isa, pool, source));
  Subject twin{.model = twin_model.get()};
  subject.model = bundle.model.get();
  const int64_t working_set = StreamedWeightBytes(*bundle.model);
  MachineProbe probe(pool, isa, working_set);
  for (int round = -1; round < options.repeat; ++round) {  // both models and the machine in turn: what disturbs one disturbs all
    RETURN_IF_ERROR(RunRound(options, round >= 0, subject));
    if (twin.model != nullptr) RETURN_IF_ERROR(RunRound(options, round >= 0, twin));
    probe.Sample();
  }
  ProfileReport report{.limits = probe.limits()};
  ThreadPool alone(1);
  report.one_thread = pool.num_threads() == 1 ? report.limits : MeasureMachineLimits(alone, isa, working_set);
  const std::pair<const PhaseRounds*, const PhaseRounds*> phases[] = {{&subject.prefill, &twin.prefill}, {&subject.decode, &twin.decode}};
  for (const auto& [rounds, twin_rounds] : phases) {
    if (rounds->rounds.empty()) continue;
    PhaseSummary& summary = report.phases.emplace_back(Summarize(*rounds, options.layers, report.limits, bundle.model->data_path(), isa));
    summary.source = source;
    if (twin.model != nullptr)
      AddMeasuredTwin(Summarize(*twin_rounds, options.layers, report.limits, twin.model->data_path(), isa), summary);
    if (source == TwinSource::kEstimated) AddEstimatedTwin(report.limits, isa, summary);
  }
  return report;
}

absl::Status WriteTrace(const std::string& path, const Subject& subject) {
  std::vector<TraceTrack> tracks;
  for (const PhaseRounds* rounds : {&subject.prefill, &subject.decode}) {
    if (!rounds->rounds.empty()) tracks.push_back({rounds->phase, rounds->rounds.back()});
  }
  return WriteFileAtomically(path, DumpJson(MakeChromeTrace(tracks)) + "\n");
}

absl::Status CheckLength(const ProfileFlags& options, const ModelBundle& bundle) {
  ASSIGN_OR_RETURN(const DecoderConfig config, ReadDecoderConfig(bundle));
  const int64_t longest = options.prompt + options.gen, limit = config.max_position_embeddings;
  if (longest > 0 && longest <= limit) return absl::OkStatus();
  return UsageError("--prompt, --gen: expected 1 to ", limit, " tokens in all (max_position_embeddings), found ", longest);
}

absl::Status RunProfile(const ProfileFlags& options, const CommonOptions& common) {
  if (options.trace.has_value()) RETURN_IF_ERROR(CheckOutputFile(common, "--trace", *options.trace));
  ThreadPool pool(common.threads);
  ASSIGN_OR_RETURN(ModelBundle bundle, LoadModelFiles(options.model));
  RETURN_IF_ERROR(CheckLength(options, bundle));
  RETURN_IF_ERROR(LoadWeights(bundle, pool, options.activations, options.prepack_cache));
  RETURN_IF_ERROR(
      CheckKvCacheFits(*bundle.model, options.batch, options.prompt + options.gen, options.kv_cache_dtype, AvailableMemoryBytes()));
  ASSIGN_OR_RETURN(const Isa isa, SelectIsa());
  Subject subject;
  ASSIGN_OR_RETURN(const ProfileReport report, Measure(options, bundle, isa, pool, subject));
  std::string text, sentences;
  OrderedJson phases = OrderedJson::array();
  for (const PhaseSummary& summary : report.phases) {
    absl::StrAppend(&text, PhaseTable(summary), "\n");
    absl::StrAppend(&sentences, SavingsSentence(summary, report.limits));
    phases.push_back(ToJson(summary, report.limits));
  }
  absl::StrAppend(&text, "limits measured in this run: ", LimitsText(report.limits), "\n", sentences);
  if (!common.json_to_stdout()) RETURN_IF_ERROR(PrintResult(text));
  RETURN_IF_ERROR(
      WriteJsonResult(common, {{"model", options.model},
                               {"data_path", bundle.model->DataPathName()},
                               {"kv_cache_dtype", std::string(KvDtypeName(bundle.model->KvSpecAs(options.kv_cache_dtype, 1).dtype))},
                               {"cpu_info", CpuDescription()},
                               {"isa", IsaName(isa)},
                               {"batch", options.batch},
                               {"limits", ToJson(report.limits)},
                               {"limits_one_thread", ToJson(report.one_thread)},
                               {"phases", phases}}));
  return options.trace.has_value() ? WriteTrace(*options.trace, subject) : absl::OkStatus();  // last: it loses no result
}

}  // namespace

CommandFunction SetupProfile(CLI::App& app) {
  auto options = std::make_shared<ProfileFlags>();
  app.add_option("model", options->model, "model: a directory, a .gguf file, or ORG/NAME that pith pull fetched")->required();
  app.add_option("-p,--prompt", options->prompt, "tokens of the prompt; 0: none")->check(CLI::Range(0, 1 << 20))->capture_default_str();
  app.add_option("-n,--gen", options->gen, "decode steps after it; 0: none")->check(CLI::Range(0, 1 << 20))->capture_default_str();
  app.add_option("-b,--batch", options->batch, "sequences side by side")->check(CLI::Range(1, 64))->capture_default_str();
  app.add_option("-r,--repeat", options->repeat, "timed rounds after one warm-up")->check(CLI::Range(1, 100))->capture_default_str();
  app.add_flag("--layers", options->layers, "one line per operator and layer");
  app.add_option("--bf16", options->bf16, "the BF16 model of the same shapes: measured (synthetic weights), estimated or off")
      ->check(CLI::IsMember({"measured", "estimated", "off"}))
      ->capture_default_str();
  app.add_option("--trace", options->trace, "write the last round for chrome://tracing")->type_name("FILE");
  AddKvCacheDtypeFlag(app, options->kv_cache_dtype);
  AddActivationsFlag(app, options->activations);
  AddPrepackCacheFlag(app, options->prepack_cache);
  return [options](const CommonOptions& common) { return RunProfile(*options, common); };
}

}  // namespace pith
