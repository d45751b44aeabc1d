#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/cpu_features.h"
#include "base/file.h"
#include "base/random.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/machine_limits.h"
#include "cli/model_bundle.h"

namespace pith {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string model;
  int64_t prompt = 512, gen = 128, depth = 0;
  std::vector<int64_t> batch = {1};
  int repeat = 5;
};

struct Row {
  std::string test;  // "pp512", "tg128", "tg128 b4 @ d4096"
  int64_t n_prompt = 0, n_gen = 0, batch = 1, depth = 0;
  std::vector<double> samples_ns;
  int64_t tokens = 0;  // per sample

  double MedianNs() const {
    std::vector<double> sorted = samples_ns;
    std::sort(sorted.begin(), sorted.end());
    const size_t half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }
  double MedianTokensPerSecond() const { return static_cast<double>(tokens) / MedianNs() * 1e9; }
};

// Sequences that share one KV storage, with tokens drawn from a fixed seed.
class Workload {
 public:
  static absl::StatusOr<Workload> Create(DecoderModel& model, int64_t sequences, int64_t tokens_each) {
    Workload workload(model, sequences);
    const int64_t blocks = BlockPool::BlocksForTokens(tokens_each);
    workload.pool_ = std::make_unique<BlockPool>(sequences * blocks);
    ASSIGN_OR_RETURN(KvStorage storage, KvStorage::Create(model.MakeKvSpec(sequences * blocks)));
    workload.storage_ = std::make_unique<KvStorage>(std::move(storage));
    for (BlockTable& table : workload.tables_) RETURN_IF_ERROR(workload.pool_->Grow(table, tokens_each));
    return workload;
  }

  void Reset() {
    for (BlockTable& table : tables_) table.num_tokens = 0;
  }

  // One pass of `rows` tokens for every sequence, in chunks of at most 512; logits of the last row of each.
  absl::Status Advance(int64_t rows) {
    for (int64_t done = 0; done < rows; done += 512) RETURN_IF_ERROR(Pass(std::min<int64_t>(512, rows - done)));
    return absl::OkStatus();
  }

 private:
  Workload(DecoderModel& model, int64_t sequences) : model_(&model), tables_(sequences) {}

  absl::Status Pass(int64_t rows) {
    ForwardBatch batch;
    for (BlockTable& table : tables_) {
      batch.sequences.push_back({.row_begin = batch.num_rows(), .num_rows = rows, .first_position = table.num_tokens, .blocks = &table});
      for (int64_t i = 0; i < rows; ++i) {
        batch.token_ids.push_back(static_cast<int32_t>(random_.Below(static_cast<uint64_t>(model_->config().vocab_size))));
      }
      batch.logits_rows.push_back(static_cast<int32_t>(batch.num_rows() - 1));
    }
    logits_.resize(tables_.size() * static_cast<size_t>(model_->config().vocab_size));
    RETURN_IF_ERROR(model_->Forward(batch, *storage_, absl::MakeSpan(logits_)));
    for (BlockTable& table : tables_) table.num_tokens += rows;
    return CheckInterrupted();
  }

  DecoderModel* model_;
  std::unique_ptr<BlockPool> pool_;
  std::unique_ptr<KvStorage> storage_;
  std::vector<BlockTable> tables_;
  std::vector<float> logits_;
  RandomStream random_{1};
};

std::string TestName(const Row& row) {
  std::string name = row.n_gen > 0 ? absl::StrCat("tg", row.n_gen) : absl::StrCat("pp", row.n_prompt);
  if (row.batch > 1) absl::StrAppend(&name, " b", row.batch);
  if (row.depth > 0) absl::StrAppend(&name, " @ d", row.depth);
  return name;
}

absl::StatusOr<Row> Measure(DecoderModel& model, Row row, int repeat) {
  row.test = TestName(row);
  row.tokens = row.batch * (row.n_prompt + row.n_gen);
  ASSIGN_OR_RETURN(Workload workload, Workload::Create(model, row.batch, row.depth + row.n_prompt + row.n_gen));
  for (int sample = -1; sample < repeat; ++sample) {  // the first is a warm-up
    workload.Reset();
    if (row.depth > 0) RETURN_IF_ERROR(workload.Advance(row.depth));
    const Clock::time_point start = Clock::now();
    if (row.n_prompt > 0) RETURN_IF_ERROR(workload.Advance(row.n_prompt));
    for (int64_t i = 0; i < row.n_gen; ++i) RETURN_IF_ERROR(workload.Advance(1));
    if (sample >= 0) row.samples_ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count());
  }
  return row;
}

// Share of the measured read bandwidth a decode row reaches when every step streams the resident weights once.
double BandwidthShare(const Row& row, const DecoderModel& model, const MachineLimits& limits) {
  const double steps_per_second = row.MedianTokensPerSecond() / static_cast<double>(row.batch);
  return steps_per_second * static_cast<double>(model.resident_weight_bytes()) / (limits.read_gb_per_s * 1e9);
}

std::string Markdown(const std::vector<Row>& rows, const ModelBundle& bundle, const MachineLimits& limits, int threads) {
  std::string text =
      "| model | size | data path | threads | test | t/s (median) | spread | share of read bandwidth "
      "|\n|---|---:|---|---:|---|---:|---:|---:|\n";
  for (const Row& row : rows) {
    const auto [low, high] = std::minmax_element(row.samples_ns.begin(), row.samples_ns.end());
    absl::StrAppendFormat(&text, "| %s | %s | %s | %d | %s | %.1f | %.1f-%.1f | %s |\n", BaseName(bundle.reader->path()),
                          HumanBytes(bundle.model->resident_weight_bytes()), bundle.model->DataPathName(), threads, row.test,
                          row.MedianTokensPerSecond(), static_cast<double>(row.tokens) / *high * 1e9,
                          static_cast<double>(row.tokens) / *low * 1e9,
                          row.n_gen > 0 ? absl::StrFormat("%.2f", BandwidthShare(row, *bundle.model, limits)) : "-");
  }
  absl::StrAppendFormat(&text, "\n%s; read bandwidth %.1f GB/s (%d threads, %s, measured in this run)\n", CpuDescription(),
                        limits.read_gb_per_s, threads, HumanBytes(limits.read_bytes));
  return text;
}

OrderedJson RowJson(const Row& row, const ModelBundle& bundle, int threads) {
  double mean = 0, variance = 0;
  std::vector<double> speeds;
  for (const double ns : row.samples_ns) speeds.push_back(static_cast<double>(row.tokens) / ns * 1e9);
  for (const double speed : speeds) mean += speed / static_cast<double>(speeds.size());
  for (const double speed : speeds)
    variance += (speed - mean) * (speed - mean) / static_cast<double>(std::max<size_t>(1, speeds.size() - 1));
  return {{"model_filename", bundle.reader->path()},
          {"model_type", bundle.model->config().model_type},
          {"model_size", bundle.model->resident_weight_bytes()},
          {"data_path", bundle.model->DataPathName()},
          {"n_threads", threads},
          {"n_prompt", row.n_prompt},
          {"n_gen", row.n_gen},
          {"n_depth", row.depth},
          {"batch", row.batch},
          {"test", row.test},
          {"avg_ts", mean},
          {"stddev_ts", std::sqrt(variance)},
          {"median_ts", row.MedianTokensPerSecond()},
          {"samples_ns", row.samples_ns},
          {"samples_ts", speeds}};
}

absl::Status Run(const Options& options, const CommonOptions& common) {
  ThreadPool pool(common.threads);
  ASSIGN_OR_RETURN(const ModelBundle bundle, LoadModel(options.model, pool));
  const int64_t longest = options.depth + std::max(options.prompt, options.gen);
  if (longest > bundle.model->config().max_position_embeddings) {
    return UsageError("--depth, --prompt, --gen: expected at most ", bundle.model->config().max_position_embeddings,
                      " tokens in all (max_position_embeddings), found ", longest);
  }
  std::vector<Row> rows;
  for (const int64_t batch : options.batch) {
    for (const bool decode : {false, true}) {
      const Row row{.n_prompt = decode ? 0 : options.prompt, .n_gen = decode ? options.gen : 0, .batch = batch, .depth = options.depth};
      if (row.n_prompt + row.n_gen == 0) continue;
      ASSIGN_OR_RETURN(Row measured, Measure(*bundle.model, row, options.repeat));
      rows.push_back(std::move(measured));
    }
  }
  const MachineLimits limits = MeasureMachineLimits(pool);
  if (!common.json_to_stdout()) RETURN_IF_ERROR(PrintResult(Markdown(rows, bundle, limits, pool.num_threads())));
  OrderedJson list = OrderedJson::array();
  for (const Row& row : rows) list.push_back(RowJson(row, bundle, pool.num_threads()));
  return WriteJsonResult(common, {{"cpu_info", CpuDescription()},
                                  {"limits", {{"read_gb_per_s", limits.read_gb_per_s}, {"read_bytes", limits.read_bytes}}},
                                  {"rows", list}});
}

}  // namespace

CommandFunction SetupBench(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("model", options->model, "model: a directory or a .gguf file")->required();
  app.add_option("-p,--prompt", options->prompt, "tokens of the prefill test; 0: none")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("-n,--gen", options->gen, "tokens of the decode test; 0: none")->check(CLI::Range(0, 1 << 20))->capture_default_str();
  app.add_option("-d,--depth", options->depth, "tokens already in the KV cache")->check(CLI::Range(0, 1 << 20))->capture_default_str();
  app.add_option("-b,--batch", options->batch, "sequences side by side; several values: one row each")
      ->check(CLI::Range(1, 64))
      ->delimiter(',');
  app.add_option("-r,--repeat", options->repeat, "timed samples after one warm-up")->check(CLI::Range(1, 100))->capture_default_str();
  return [options](const CommonOptions& common) { return Run(*options, common); };
}

}  // namespace pith
