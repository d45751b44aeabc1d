#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "base/progress.h"
#include "base/status.h"
#include "cli/activations_flag.h"
#include "cli/commands.h"
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

std::string WithInterval(const Estimate& e, int digits) {
  return absl::StrFormat("%.*f [%.*f, %.*f]", digits, e.value, digits, e.low, digits, e.high);
}

std::string Row(absl::string_view name, const QualityMetrics& m) {
  return absl::StrFormat("%-28s %-28s %-9s %-9s %-9s %-9s %-9s %-24s %-24s %d\n", name, WithInterval(m.kl_mean, 5),
                         absl::StrFormat("%.5f", m.kl_median.value), absl::StrFormat("%.4f", m.kl_p90.value),
                         absl::StrFormat("%.3f", m.kl_p99.value), absl::StrFormat("%.3f", m.kl_p999.value),
                         absl::StrFormat("%.2f", m.kl_max.value), WithInterval(m.same_top, 4), WithInterval(m.ppl_ratio, 4), m.kl_mean.n);
}

std::string ServedRows(absl::string_view name, const QualityMetrics& m) {
  std::string text;
  for (const ServedMetrics& served : m.served) {
    text += absl::StrFormat("%-28s %-12g %-28s %-28s %-10s %s\n", name, served.params.temperature,
                            WithInterval(served.total_variation_mean, 5), WithInterval(served.jensen_shannon_mean, 5),
                            absl::StrFormat("%.5f", served.lost_mass_mean.value),
                            served.params.greedy() ? "-" : WithInterval(served.kl_mean, 5));
  }
  return text;
}

std::string Table(const std::vector<std::string>& paths, const std::vector<ModelQuality>& qualities) {
  std::string text = absl::StrFormat("%-28s %-28s %-9s %-9s %-9s %-9s %-9s %-24s %-24s %s\n", "model", "mean KL [95 %]", "median", "p90",
                                     "p99", "p99.9", "max", "same top [95 %]", "perplexity ratio [95 %]", "tokens");
  for (size_t i = 0; i < paths.size(); ++i) {
    text += Row(ModelName(paths[i]), qualities[i].overall);
    for (const auto& [slice, metrics] : qualities[i].slices) text += Row(absl::StrCat("  ", slice), metrics);
  }
  if (qualities.front().overall.served.empty()) return text;
  text += absl::StrFormat("\n%-28s %-12s %-28s %-28s %-10s %s\n", "served", "temperature", "total variation [95 %]",
                          "Jensen-Shannon [95 %]", "lost mass", "mean KL before cuts [95 %]");
  for (size_t i = 0; i < paths.size(); ++i) {
    text += ServedRows(ModelName(paths[i]), qualities[i].overall);
    for (const auto& [slice, metrics] : qualities[i].slices) text += ServedRows(absl::StrCat("  ", slice), metrics);
  }
  return text;
}

absl::Status RunEval(const EvalFlags& options, const CommonOptions& common) {
  ThreadPool pool(common.threads);
  // Whatever can be refused without weights is, before any are read.
  ASSIGN_OR_RETURN(QualityRecord record, QualityRecord::Prepare(options.record, common.command_line));
  ASSIGN_OR_RETURN(ModelBundle reference, LoadModelFiles(options.reference));
  const absl::StatusOr<DecoderConfig> config = ParseDecoderConfig(reference.reader->config());
  if (!config.ok()) return Annotate(config.status(), options.reference);
  RETURN_IF_ERROR(CheckContext(*config, options.context));
  const CorpusOptions windows = {.context = options.context, .limit = options.limit};
  ASSIGN_OR_RETURN(const Corpus corpus, options.data.empty() ? LoadBuiltinCorpus(*reference.tokenizer, windows)
                                                             : LoadCorpus(options.data, *reference.tokenizer, windows));
  std::vector<ModelBundle> bundles;
  for (const std::string& path : options.models) {
    ASSIGN_OR_RETURN(ModelBundle bundle, LoadModelFiles(path));
    RETURN_IF_ERROR(CheckSameTokens(reference, bundle, corpus));
    bundles.push_back(std::move(bundle));
  }
  RETURN_IF_ERROR(LoadWeights(reference, pool, {}, options.prepack_cache));
  std::vector<DecoderModel*> models;
  for (ModelBundle& bundle : bundles) {
    RETURN_IF_ERROR(LoadWeights(bundle, pool, options.activations, options.prepack_cache));
    models.push_back(bundle.model.get());
  }
  Progress progress("comparing", static_cast<int64_t>(corpus.windows.size()), "windows");
  ComparisonOptions comparison{
      .score_all = options.score == "all", .chunk = options.chunk, .kv_cache_dtype = options.kv_cache_dtype, .served = options.served()};
  comparison.progress = [&](int64_t done) {
    progress.Set(done);
    return CheckInterrupted();
  };
  ASSIGN_OR_RETURN(const auto scored, CompareModels(*reference.model, models, corpus, comparison, pool));
  progress.Finish();
  const auto with = [&](double confidence) {
    return SummaryOptions{
        .served = comparison.served, .worst = options.worst, .bootstrap = {.seed = options.seed, .confidence = confidence}};
  };
  std::vector<ModelQuality> qualities;
  OrderedJson list = OrderedJson::array();
  for (size_t i = 0; i < models.size(); ++i) {
    qualities.push_back(Summarize(scored[i], corpus, with(0.95)));
    OrderedJson entry = {{"path", options.models[i]},
                         {"data_path", models[i]->DataPathName()},
                         {"kv_cache", std::string(KvDtypeName(models[i]->KvSpecAs(options.kv_cache_dtype, 1).dtype))}};
    entry.update(ToJson(qualities.back(), corpus));
    AddTexts(entry["worst_tokens"], corpus, *reference.tokenizer);
    RETURN_IF_ERROR(record.Judge(reference,
                                 {.bundle = &bundles[i],
                                  .quality = &qualities.back(),
                                  .at = {.context = options.context,
                                         .kv_cache = entry["kv_cache"].get<std::string>(),
                                         .data_path = entry["data_path"].get<std::string>()},
                                  .quality_at = [&](double confidence) { return Summarize(scored[i], corpus, with(confidence)); }},
                                 entry));
    list.push_back(std::move(entry));
  }
  if (!common.json_to_stdout()) RETURN_IF_ERROR(PrintResult(Table(options.models, qualities)));
  OrderedJson result = {{"reference", options.reference},
                        {"reference_data_path", reference.model->DataPathName()},
                        {"data", corpus.source},
                        {"context", options.context},
                        {"windows", corpus.windows.size()},
                        {"scored", options.score},
                        {"bos", corpus.bos},
                        {"seed", options.seed},
                        {"version", VersionText()},
                        {"models", list}};
  const absl::Status verdict = record.Finish(reference, result);
  RETURN_IF_ERROR(WriteJsonResult(common, std::move(result)));
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
  app.add_option("--limit", options->limit, "windows per slice; 0: all")->check(CLI::Range(0, 1 << 30))->capture_default_str();
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
  AddQualityRecordFlags(app, options->record);
  AddKvCacheDtypeFlag(app, options->kv_cache_dtype);
  AddSeedFlag(app, options->seed, "seed of the bootstrap");
  AddActivationsFlag(app, options->activations);
  AddPrepackCacheFlag(app, options->prepack_cache);
  return [options](const CommonOptions& common) { return RunEval(*options, common); };
}

}  // namespace pith
