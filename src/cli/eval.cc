#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/status.h"
#include "cli/activations_flag.h"
#include "cli/commands.h"
#include "cli/eval_table.h"
#include "cli/eval_tasks.h"
#include "cli/kv_cache_flag.h"
#include "cli/model_bundle.h"
#include "cli/model_path.h"
#include "cli/prepack_cache_flag.h"
#include "cli/quality_record.h"
#include "cli/version.h"
#include "eval/kl_divergence.h"
#include "eval/quality_metrics.h"

namespace pith {
namespace {

struct EvalFlags {
  WeightOnlyActivation activations;
  std::string prepack_cache;
  std::vector<std::string> models;
  std::string reference, data, score = "second-half";
  int64_t context = 512, limit = 0, chunk = 64;
  std::optional<KvDtype> kv_cache_dtype;
  std::vector<float> temperatures;
  SamplingParams cuts;  // top_k and top_p at every temperature
  size_t worst = 10;
  uint64_t seed = 1;
  QualityRecordOptions record;
  TaskFlags tasks;

  // What is compared as served; nothing unless a setting is asked for.
  std::vector<SamplingParams> served() const {
    std::vector<float> at = temperatures;
    if (at.empty() && (cuts.top_k > 0 || cuts.top_p < 1)) at.push_back(1);
    std::vector<SamplingParams> settings;
    for (const float temperature : at) {
      settings.push_back(cuts);
      settings.back().temperature = temperature;
    }
    return settings;
  }
};

// The same text must become the same ids in both models, or a token-by-token comparison means nothing.
absl::Status CheckSameTokens(const ModelBundle& reference, const ModelBundle& model, const Corpus& corpus) {
  for (size_t w = 0; w < std::min<size_t>(corpus.windows.size(), 4); ++w) {
    const std::string text = reference.tokenizer->Decode(corpus.windows[w].tokens, /*skip_special=*/true);
    ASSIGN_OR_RETURN(const auto expected, reference.tokenizer->Encode(text, {.add_special_tokens = false}));
    ASSIGN_OR_RETURN(const auto found, model.tokenizer->Encode(text, {.add_special_tokens = false}));
    if (found != expected) {
      return UsageError(model.reader->path(), ": expected the tokenizer of the reference ", reference.reader->path(),
                        ", found one that encodes the corpus otherwise");
    }
  }
  return absl::OkStatus();
}

// Puts text to the ids of the worst tokens, and what stands before them.
void AddTexts(OrderedJson& worst_tokens, const Corpus& corpus, const Tokenizer& tokenizer) {
  constexpr int64_t kShownBefore = 24;  // tokens
  for (OrderedJson& token : worst_tokens) {
    const std::vector<int32_t>& ids = corpus.windows[token["window"].get<size_t>()].tokens;
    const int64_t position = token["position"].get<int64_t>();
    token["before"] = tokenizer.Decode({ids.begin() + std::max<int64_t>(0, position - kShownBefore), ids.begin() + position});
    for (const char* key : {"token", "reference_top", "model_top"})
      token[absl::StrCat(key, "_text")] = tokenizer.Decode({token[key].get<int32_t>()});
  }
}

// One run, from files to figures. Its steps are called in this order.
class EvalRun {
 public:
  EvalRun(const EvalFlags& flags, const CommonOptions& common) : flags_(flags), common_(common), pool_(common.threads) {}

  absl::Status Run() {
    // Whatever can be refused without weights is, before any are read.
    if (!flags_.record.html.empty()) RETURN_IF_ERROR(CheckOutputFile(common_, "--html", flags_.record.html));
    ASSIGN_OR_RETURN(record_, QualityRecord::Prepare(flags_.record, common_.command_line));
    RETURN_IF_ERROR(LoadFiles());
    RETURN_IF_ERROR(LoadWeights(reference_, pool_, {}, flags_.prepack_cache));
    for (ModelBundle& bundle : bundles_) RETURN_IF_ERROR(LoadWeights(bundle, pool_, flags_.activations, flags_.prepack_cache));
    RETURN_IF_ERROR(CompareDistributions());
    if (tasks_.has_value()) RETURN_IF_ERROR(AskQuestions());
    return Report();
  }

 private:
  absl::Status LoadFiles();
  absl::Status CompareDistributions();
  absl::Status AskQuestions();
  absl::Status Report();
  absl::StatusOr<OrderedJson> ModelEntry(size_t i);
  BootstrapOptions Bootstrap(double confidence = 0.95) const { return {.seed = flags_.seed, .confidence = confidence}; }
  ModelQuality QualityOf(size_t i, double confidence) const {
    return Summarize(scored_[i], corpus_, {.served = flags_.served(), .worst = flags_.worst, .bootstrap = Bootstrap(confidence)});
  }

  const EvalFlags& flags_;
  const CommonOptions& common_;
  ThreadPool pool_;
  QualityRecord record_;
  ModelBundle reference_;
  std::vector<ModelBundle> bundles_;
  Corpus corpus_;
  std::optional<TaskRunner> tasks_;
  std::vector<std::vector<ScoredToken>> scored_;  // per model
  std::vector<ModelQuality> qualities_;
  std::vector<std::vector<TaskMeasurement>> answered_;  // per model, one per temperature
};

absl::Status EvalRun::LoadFiles() {
  ASSIGN_OR_RETURN(reference_, LoadModelFiles(flags_.reference));
  const absl::StatusOr<DecoderConfig> config = ParseDecoderConfig(reference_.reader->config());
  if (!config.ok()) return Annotate(config.status(), flags_.reference);
  RETURN_IF_ERROR(CheckContext(*config, flags_.context));
  const Tokenizer& tokenizer = *reference_.tokenizer;
  ASSIGN_OR_RETURN(std::vector<TaskItem> items, LoadTaskItems(flags_.data, flags_.limit, flags_.seed, flags_.tasks, tokenizer));
  const CorpusOptions windows = {.context = flags_.context, .limit = flags_.limit};
  auto corpus = flags_.data.empty() ? LoadBuiltinCorpus(tokenizer, windows) : LoadCorpus(flags_.data, tokenizer, windows);
  if (absl::IsDataLoss(corpus.status()) && !items.empty()) {
    spdlog::warn("{}: distributions are compared on the built-in slices, for there is no text to read: {}", flags_.data,
                 std::string(corpus.status().message()));
    corpus = LoadBuiltinCorpus(tokenizer, windows);
  }
  RETURN_IF_ERROR(corpus.status());
  corpus_ = *std::move(corpus);
  for (const std::string& path : flags_.models) {
    ASSIGN_OR_RETURN(ModelBundle bundle, LoadModelFiles(path));
    RETURN_IF_ERROR(CheckSameTokens(reference_, bundle, corpus_));
    bundles_.push_back(std::move(bundle));
  }
  if (items.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(tasks_, TaskRunner::Create(std::move(items), flags_.tasks, flags_.seed));
  return absl::OkStatus();
}

absl::Status EvalRun::CompareDistributions() {
  std::vector<DecoderModel*> models;
  for (ModelBundle& bundle : bundles_) models.push_back(bundle.model.get());
  Progress progress("comparing", static_cast<int64_t>(corpus_.windows.size()), "windows");
  ComparisonOptions comparison{
      .score_all = flags_.score == "all", .chunk = flags_.chunk, .kv_cache_dtype = flags_.kv_cache_dtype, .served = flags_.served()};
  comparison.progress = [&](int64_t done) {
    progress.Set(done);
    return CheckInterrupted();
  };
  ASSIGN_OR_RETURN(scored_, CompareModels(*reference_.model, models, corpus_, comparison, pool_));
  progress.Finish();
  for (size_t i = 0; i < bundles_.size(); ++i) qualities_.push_back(QualityOf(i, 0.95));
  return absl::OkStatus();
}

absl::Status EvalRun::AskQuestions() {
  std::vector<float> temperatures = flags_.temperatures;
  if (temperatures.empty()) temperatures.push_back(0);
  answered_.resize(bundles_.size());
  for (const float temperature : temperatures) {
    ASSIGN_OR_RETURN(const std::vector<ItemResult> expected, tasks_->Ask(reference_, std::nullopt, temperature));
    for (size_t i = 0; i < bundles_.size(); ++i) {
      TaskMeasurement measurement = {.temperature = DecimalSetting(temperature), .items = tasks_->items(), .reference = expected};
      ASSIGN_OR_RETURN(measurement.model, tasks_->Ask(bundles_[i], flags_.kv_cache_dtype, temperature));
      measurement.context = tasks_->longest();
      answered_[i].push_back(std::move(measurement));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<OrderedJson> EvalRun::ModelEntry(size_t i) {
  const DecoderModel& model = *bundles_[i].model;
  const MeasurementConditions at = {.context = flags_.context,
                                    .kv_cache = std::string(KvDtypeName(model.KvSpecAs(flags_.kv_cache_dtype, 1).dtype)),
                                    .data_path = model.DataPathName()};
  OrderedJson entry = {{"path", flags_.models[i]}, {"data_path", at.data_path}, {"kv_cache", at.kv_cache}};
  entry.update(ToJson(qualities_[i], corpus_));
  AddTexts(entry["worst_tokens"], corpus_, *reference_.tokenizer);
  MeasuredModel measured = {.bundle = &bundles_[i], .quality = &qualities_[i], .at = at, .quality_at = [this, i](double confidence) {
                              return QualityOf(i, confidence);
                            }};
  if (tasks_.has_value()) {
    entry["tasks"] = OrderedJson::array();
    for (const TaskMeasurement& measurement : answered_[i]) {
      for (const OrderedJson& row : ToJson(measurement, Bootstrap())) entry["tasks"].push_back(row);
      for (GateFigure& figure : MakeTaskFigures(measurement, at.kv_cache, at.data_path, Bootstrap()))
        measured.tasks.push_back(std::move(figure));
    }
  }
  RETURN_IF_ERROR(record_.Judge(reference_, measured, entry));
  return entry;
}

absl::Status EvalRun::Report() {
  std::vector<std::string> names;
  OrderedJson list = OrderedJson::array();
  for (size_t i = 0; i < bundles_.size(); ++i) {
    names.push_back(Printable(ModelName(flags_.models[i])));
    ASSIGN_OR_RETURN(OrderedJson entry, ModelEntry(i));
    list.push_back(std::move(entry));
  }
  if (!common_.json_to_stdout()) {
    RETURN_IF_ERROR(PrintResult(QualityTable(names, qualities_)));
    if (tasks_.has_value()) RETURN_IF_ERROR(PrintResult("\n" + TaskTable(names, answered_, Bootstrap())));
  }
  OrderedJson result = {{"reference", flags_.reference},
                        {"reference_data_path", reference_.model->DataPathName()},
                        {"data", corpus_.source},
                        {"context", flags_.context},
                        {"windows", corpus_.windows.size()},
                        {"scored", flags_.score},
                        {"bos", corpus_.bos},
                        {"seed", flags_.seed},
                        {"version", VersionText()},
                        {"models", list}};
  const absl::Status verdict = record_.Finish(reference_, result);
  RETURN_IF_ERROR(WriteJsonResult(common_, std::move(result)));
  return verdict;
}

}  // namespace

CommandFunction SetupEval(CLI::App& app) {
  auto options = std::make_shared<EvalFlags>();
  app.add_option("models", options->models, "models to measure: directories or .gguf files")->required();
  app.add_option("--reference", options->reference, "the model they should equal")->required();
  app.add_option("--data", options->data,
                 "text to measure on: a .txt, .raw, .utf8 or .jsonl file, or a folder of them; without it, the built-in slices");
  app.add_option("--context", options->context, "tokens per window")->check(CLI::Range(2, 1 << 20))->capture_default_str();
  app.add_option("--limit", options->limit, "windows of each slice, and with --tasks questions of each file; 0: all")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  app.add_option("--score", options->score,
                 "positions scored in each window: second-half (each with at least half a window of context) or all")
      ->check(CLI::IsMember({"second-half", "all"}))
      ->capture_default_str();
  app.add_option("--chunk", options->chunk, "rows whose logits are held at a time (never changes the result)")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--temperature", options->temperatures, "temperatures, separated by commas: what is served at each is compared too")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 2.0));
  app.add_option("--top-k", options->cuts.top_k, "tokens kept in what is served; 0: all")->check(CLI::Range(0, 1 << 30));
  app.add_option("--top-p", options->cuts.top_p, "probability kept in what is served, above 0 and at most 1")->check(CLI::Range(1e-6, 1.0));
  app.add_option("--worst", options->worst, "tokens with the largest KL to name in the JSON")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
  AddTaskFlags(app, options->tasks);
  AddQualityRecordFlags(app, options->record);
  AddKvCacheDtypeFlag(app, options->kv_cache_dtype);
  AddSeedFlag(app, options->seed, "seed of the bootstrap");
  AddActivationsFlag(app, options->activations);
  AddPrepackCacheFlag(app, options->prepack_cache);
  return [options](const CommonOptions& common) { return EvalRun(*options, common).Run(); };
}

}  // namespace pith
