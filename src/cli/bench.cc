#include <algorithm>
#include <chrono>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/cpu_features.h"
#include "base/status.h"
#include "cli/activations_flag.h"
#include "cli/bench_row.h"
#include "cli/commands.h"
#include "cli/kv_cache_flag.h"
#include "cli/machine_limits.h"
#include "cli/model_bundle.h"
#include "cli/prepack_cache_flag.h"
#include "cli/process_memory.h"
#include "cli/version.h"
#include "cli/workload.h"

namespace pith {
namespace {

constexpr int64_t kVerifyPasses = 8;  // in one sample: one pass alone is short beside the clock and the scheduler

struct BenchFlags {
  WeightOnlyActivation activations;
  std::string prepack_cache;
  std::string model;
  std::optional<std::string> output;
  std::vector<int64_t> prompt = {512}, gen = {128}, depth = {0}, batch = {1}, rows = {1, 2, 3, 4, 5, 6, 8, 16};
  std::vector<int> threads = {0};
  bool curve = false, verify = false;
  std::optional<KvDtype> kv_cache_dtype;
  int repeat = 5;
};

std::vector<BenchTest> PlanTests(const BenchFlags& options) {
  const std::vector<int64_t> curve = {1, 2, 3, 4, 5, 6, 8, 16, 32};
  std::vector<BenchTest> tests;
  for (const int64_t depth : options.depth) {
    for (const int64_t rows : options.rows) {
      if (options.verify) tests.push_back({BenchKind::kVerify, rows, 1, depth});
    }
    if (options.verify) continue;
    for (const int64_t batch : options.curve ? curve : options.batch) {
      for (const int64_t tokens : options.prompt) {
        if (tokens > 0 && !options.curve) tests.push_back({BenchKind::kPrefill, tokens, batch, depth});
      }
      for (const int64_t tokens : options.gen) {
        if (tokens > 0) tests.push_back({BenchKind::kDecode, tokens, batch, depth});
      }
    }
  }
  return tests;
}

absl::Status CheckLengths(absl::Span<const BenchTest> tests, const ModelBundle& bundle) {
  ASSIGN_OR_RETURN(const DecoderConfig config, ReadDecoderConfig(bundle));
  for (const BenchTest& test : tests) {
    if (test.depth + test.tokens <= config.max_position_embeddings) continue;
    return UsageError("--depth, --prompt, --gen: expected at most ", config.max_position_embeddings,
                      " tokens in all (max_position_embeddings), found ", test.depth + test.tokens);
  }
  if (tests.empty()) return UsageError("--prompt, --gen: expected at least one test, found none");
  return absl::OkStatus();
}

// One run of the test at its depth.
absl::Status RunOnce(const BenchTest& test, Workload& workload) {
  switch (test.kind) {
    case BenchKind::kPrefill: return workload.Advance(test.tokens);
    case BenchKind::kVerify: return workload.Advance(test.tokens, LogitsRows::kAll);
    case BenchKind::kDecode:
      for (int64_t i = 0; i < test.tokens; ++i) RETURN_IF_ERROR(workload.Advance(1));
  }
  return absl::OkStatus();
}

absl::StatusOr<BenchRow> Measure(const BenchTest& test, DecoderModel& model, MachineProbe& probe, int repeat,
                                 std::optional<KvDtype> kv_cache_dtype) {
  BenchRow row{.test = test, .passes_per_sample = test.kind == BenchKind::kVerify ? kVerifyPasses : 1, .test_time = UtcTime()};
  ASSIGN_OR_RETURN(Workload workload, Workload::Create(model, test.batch, test.depth + test.tokens, kv_cache_dtype));
  if (test.depth > 0) RETURN_IF_ERROR(workload.Advance(test.depth));
  Profiler profiler;  // of the run that warms up: what the test moves and computes
  model.SetProfiler(&profiler);
  const absl::Status warm = RunOnce(test, workload);
  model.SetProfiler(nullptr);
  RETURN_IF_ERROR(warm);
  probe.Clear();
  for (int sample = 0; sample < repeat; ++sample) {
    probe.Sample();
    const auto start = std::chrono::steady_clock::now();
    for (int64_t pass = 0; pass < row.passes_per_sample; ++pass) {
      workload.Truncate(test.depth);
      RETURN_IF_ERROR(RunOnce(test, workload));
    }
    row.samples_ns.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  row.limits = probe.limits();
  row.run_roofline = Roofline(profiler.records(), row.limits);
  return row;
}

absl::StatusOr<BenchModel> Describe(const ModelBundle& bundle, const BenchFlags& options) {
  BenchModel model{.filename = bundle.reader->path(),
                   .type = absl::StrCat(bundle.model->config().model_type, " ", bundle.name),
                   .data_path = bundle.model->DataPathName(),
                   .build_commit = BuildCommit(),
                   .kv_cache = std::string(KvDtypeName(bundle.model->KvSpecAs(options.kv_cache_dtype, 1).dtype)),
                   .cpu = CpuDescription(),
                   .resident_bytes = bundle.model->resident_weight_bytes()};
  for (const TensorInfo& tensor : bundle.reader->Tensors()) model.file_bytes += tensor.stored_bytes;
  for (const std::string& name : bundle.reader->WeightNames()) {
    ASSIGN_OR_RETURN(const TensorInfo info, bundle.reader->DescribeWeight(name));
    model.num_params += NumElements(info.shape);
  }
  return model;
}

// Prints rows as they come. What it printed is whole even when the run fails.
class RowPrinter {
 public:
  RowPrinter(const std::string& format, bool enabled) : renderer_(format), enabled_(enabled) {}
  ~RowPrinter() { End().IgnoreError(); }
  RowPrinter(const RowPrinter&) = delete;
  RowPrinter& operator=(const RowPrinter&) = delete;

  absl::Status Print(const BenchRow& row, const BenchModel& model) {
    return enabled_ ? PrintResult(renderer_.Row(row, model)) : absl::OkStatus();
  }
  absl::Status End() {
    const std::string end = renderer_.End();
    return end.empty() ? absl::OkStatus() : PrintResult(end);
  }

 private:
  RowRenderer renderer_;
  const bool enabled_;
};

struct Results {
  BenchModel model;
  std::vector<BenchRow> rows;
  std::vector<MachineLimits> one_thread;
};

// All tests with one number of threads.
absl::Status MeasureAll(const BenchFlags& options, int threads, RowPrinter& printer, Results& results) {
  const std::vector<BenchTest> tests = PlanTests(options);
  ThreadPool pool(threads), alone(1);
  ASSIGN_OR_RETURN(ModelBundle bundle, LoadModelFiles(options.model));
  RETURN_IF_ERROR(CheckLengths(tests, bundle));
  RETURN_IF_ERROR(LoadWeights(bundle, pool, options.activations, options.prepack_cache));
  for (const BenchTest& test : tests) {
    RETURN_IF_ERROR(CheckKvCacheFits(*bundle.model, test.batch, test.depth + test.tokens, options.kv_cache_dtype, AvailableMemoryBytes()));
  }
  ASSIGN_OR_RETURN(const Isa isa, SelectIsa());
  ASSIGN_OR_RETURN(results.model, Describe(bundle, options));
  MachineProbe probe(pool, isa, StreamedWeightBytes(*bundle.model));
  for (const BenchTest& test : tests) {
    ASSIGN_OR_RETURN(results.rows.emplace_back(), Measure(test, *bundle.model, probe, options.repeat, options.kv_cache_dtype));
    RETURN_IF_ERROR(printer.Print(results.rows.back(), results.model));
  }
  if (results.one_thread.empty()) results.one_thread.push_back(MeasureMachineLimits(alone, isa, StreamedWeightBytes(*bundle.model)));
  return absl::OkStatus();
}

// Limits by number of threads, each from the samples of its last row.
std::vector<MachineLimits> LimitsOf(const Results& results) {
  std::vector<MachineLimits> all;
  for (const BenchRow& row : results.rows) {
    if (all.empty() || all.back().threads != row.limits.threads) {
      all.push_back(row.limits);
    } else {
      all.back() = row.limits;
    }
  }
  for (const MachineLimits& limits : results.one_thread) {
    const auto same = [&](const MachineLimits& other) { return other.threads == limits.threads; };
    if (std::none_of(all.begin(), all.end(), same)) all.insert(all.begin(), limits);
  }
  return all;
}

// 0 stands for a number; none comes twice.
std::vector<int> ThreadCounts(const BenchFlags& options) {
  std::vector<int> counts;
  for (const int given : options.threads) {
    const int threads = given > 0 ? given : UsableCpus();
    if (std::find(counts.begin(), counts.end(), threads) == counts.end()) counts.push_back(threads);
  }
  return counts;
}

absl::Status RunBench(const BenchFlags& options, const CommonOptions& common) {
  if (options.output.has_value() && common.json_to_stdout()) {
    return UsageError("--output: expected no --json -, which prints all rows as JSON, found both");
  }
  const std::string output = options.output.value_or("md");
  RowPrinter printer(output, !common.json_to_stdout());
  Results results;
  for (const int threads : ThreadCounts(options)) RETURN_IF_ERROR(MeasureAll(options, threads, printer, results));
  RETURN_IF_ERROR(printer.End());
  const std::vector<MachineLimits> limits = LimitsOf(results);
  if (output == "md" && !common.json_to_stdout()) {
    std::string footer = absl::StrCat("\n", results.model.cpu, ", data path ", results.model.data_path, "; limits measured in this run:\n");
    for (const MachineLimits& each : limits) absl::StrAppend(&footer, "  ", LimitsText(each), "\n");
    RETURN_IF_ERROR(PrintResult(footer));
  }
  OrderedJson rows = OrderedJson::array(), limits_json = OrderedJson::array();
  for (const BenchRow& row : results.rows) rows.push_back(ToJson(row, results.model));
  for (const MachineLimits& each : limits) limits_json.push_back(ToJson(each));
  return WriteJsonResult(common, {{"cpu_info", results.model.cpu}, {"limits", limits_json}, {"rows", rows}});
}

}  // namespace

CommandFunction SetupBench(CLI::App& app) {
  auto options = std::make_shared<BenchFlags>();
  const auto list = [&app](const char* flags, auto& values, const char* text, int64_t low, int64_t high) {
    return app.add_option(flags, values, text)->check(CLI::Range(low, high))->delimiter(',')->capture_default_str();
  };
  app.add_option("model", options->model, "model: a directory, a .gguf file, or ORG/NAME that pith pull fetched")->required();
  CLI::Option* const prompt = list("-p,--prompt", options->prompt, "tokens of the prefill tests; 0: none", 0, 1 << 20);
  CLI::Option* const gen = list("-n,--gen", options->gen, "tokens of the decode tests; 0: none", 0, 1 << 20);
  list("-d,--depth", options->depth, "tokens already in the KV cache", 0, 1 << 20);
  CLI::Option* const batch = list("-b,--batch", options->batch, "sequences side by side", 1, 64);
  CLI::Option* const curve = app.add_flag("--curve", options->curve, "decode only, at batch 1,2,3,4,5,6,8,16,32");
  curve->excludes(prompt)->excludes(batch);
  CLI::Option* const verify = app.add_flag("--verify", options->verify,
                                           "verification passes instead: --rows of one sequence, logits of all of them");
  verify->excludes(curve)->excludes(prompt)->excludes(gen)->excludes(batch);
  list("--rows", options->rows, "rows of the verification passes", 1, 512)->needs(verify);
  AddKvCacheDtypeFlag(app, options->kv_cache_dtype);
  app.add_option("-r,--repeat", options->repeat, "timed samples after one warm-up")->check(CLI::Range(1, 100))->capture_default_str();
  app.remove_option(app.get_option("--threads"));
  list("-t,--threads", options->threads, "threads, several values: the tests with each; 0: every usable CPU", 0, 256);
  app.add_option("-o,--output", options->output, "rows as md, csv, json or jsonl, with llama-bench's column names")
      ->check(CLI::IsMember({"md", "csv", "json", "jsonl"}))
      ->default_str("md");
  AddActivationsFlag(app, options->activations);
  AddPrepackCacheFlag(app, options->prepack_cache);
  return [options](const CommonOptions& common) { return RunBench(*options, common); };
}

}  // namespace pith
