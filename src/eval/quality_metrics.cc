#include "eval/quality_metrics.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace pith {
namespace {

// Values of tokens with the documents of the bootstrap.
class TokenValues {
 public:
  TokenValues(absl::Span<const ScoredToken> tokens, const Corpus& corpus) : tokens_(tokens), corpus_(corpus) {}

  template <typename Pick> std::vector<DocumentValue> operator()(Pick pick) const {
    std::vector<DocumentValue> values;
    values.reserve(tokens_.size());
    for (const ScoredToken& token : tokens_) values.push_back({pick(token), Document(token)});
    return values;
  }
  int64_t Document(const ScoredToken& token) const { return corpus_.windows[static_cast<size_t>(token.window)].document; }

 private:
  absl::Span<const ScoredToken> tokens_;
  const Corpus& corpus_;
};

ServedMetrics SummarizeServed(const TokenValues& values, size_t setting, const SamplingParams& params, const BootstrapOptions& options) {
  const auto of = [&](double ServedComparison::*member) {
    return values([&](const ScoredToken& token) { return token.served[setting].*member; });
  };
  const auto variation = of(&ServedComparison::total_variation);
  ServedMetrics metrics{.params = params};
  if (!params.greedy()) {
    const auto kl = of(&ServedComparison::kl);
    metrics.kl_mean = EstimateMean(kl, options);
    metrics.kl_p99 = EstimateQuantile(kl, 0.99, options);
    metrics.kl_shared_mean = EstimateMean(of(&ServedComparison::kl_shared), options);
  }
  metrics.jensen_shannon_mean = EstimateMean(of(&ServedComparison::jensen_shannon), options);
  metrics.total_variation_mean = EstimateMean(variation, options);
  metrics.total_variation_p99 = EstimateQuantile(variation, 0.99, options);
  metrics.lost_mass_mean = EstimateMean(of(&ServedComparison::lost_mass), options);
  metrics.added_mass_mean = EstimateMean(of(&ServedComparison::added_mass), options);
  return metrics;
}

QualityMetrics SummarizeTokens(absl::Span<const ScoredToken> tokens, const Corpus& corpus, const SummaryOptions& options) {
  const BootstrapOptions& bootstrap = options.bootstrap;
  const TokenValues values(tokens, corpus);
  const std::vector<Estimate> kl = EstimateQuantiles(values([](const ScoredToken& t) { return t.comparison.kl; }),
                                                     {0.5, 0.9, 0.99, 0.999, 1.0}, bootstrap);
  const auto delta_p = values([](const ScoredToken& t) { return t.comparison.delta_p; });
  QualityMetrics metrics;
  metrics.kl_mean = EstimateMean(values([](const ScoredToken& t) { return t.comparison.kl; }), bootstrap);
  metrics.kl_median = kl[0];
  metrics.kl_p90 = kl[1];
  metrics.kl_p99 = kl[2];
  metrics.kl_p999 = kl[3];
  metrics.kl_max = kl[4];
  metrics.same_top = EstimateMean(values([](const ScoredToken& t) { return t.comparison.same_top ? 1.0 : 0.0; }), bootstrap);
  metrics.ppl_ratio = EstimateExpMean(values([](const ScoredToken& t) { return t.comparison.nll_model - t.comparison.nll_reference; }),
                                      bootstrap);
  metrics.ppl = EstimateExpMean(values([](const ScoredToken& t) { return t.comparison.nll_model; }), bootstrap);
  metrics.ppl_reference = EstimateExpMean(values([](const ScoredToken& t) { return t.comparison.nll_reference; }), bootstrap);
  metrics.delta_p_mean = EstimateMean(delta_p, bootstrap);
  metrics.delta_p_rms = EstimateRootMeanSquare(delta_p, bootstrap);
  for (size_t i = 0; i < options.served.size(); ++i) {
    metrics.served.push_back(SummarizeServed(values, i, options.served[i], bootstrap));
  }
  return metrics;
}

// Settings that are off are left out.
OrderedJson ToJson(const ServedMetrics& m) {
  OrderedJson json = {{"temperature", DecimalSetting(m.params.temperature)}};
  if (m.params.top_k > 0) json["top_k"] = m.params.top_k;
  if (m.params.top_p < 1) json["top_p"] = DecimalSetting(m.params.top_p);
  if (m.params.min_p > 0) json["min_p"] = DecimalSetting(m.params.min_p);
  if (!m.params.greedy()) {
    json["kl_mean"] = ToJson(m.kl_mean);
    json["kl_p99"] = ToJson(m.kl_p99);
    json["kl_shared_mean"] = ToJson(m.kl_shared_mean);
  }
  json["jensen_shannon_mean"] = ToJson(m.jensen_shannon_mean);
  json["total_variation_mean"] = ToJson(m.total_variation_mean);
  json["total_variation_p99"] = ToJson(m.total_variation_p99);
  json["lost_mass_mean"] = ToJson(m.lost_mass_mean);
  json["added_mass_mean"] = ToJson(m.added_mass_mean);
  return json;
}

}  // namespace

double DecimalSetting(float setting) {
  double value = 0;
  CHECK(absl::SimpleAtod(absl::StrCat(setting), &value));
  return value;
}

ModelQuality Summarize(absl::Span<const ScoredToken> tokens, const Corpus& corpus, const SummaryOptions& options) {
  ModelQuality quality{.overall = SummarizeTokens(tokens, corpus, options)};
  const std::vector<std::string> slices = corpus.slices();
  for (const std::string& slice : slices) {
    if (slices.size() < 2) break;
    std::vector<ScoredToken> members;
    for (const ScoredToken& token : tokens) {
      if (corpus.windows[static_cast<size_t>(token.window)].slice == slice) members.push_back(token);
    }
    quality.slices.emplace_back(slice, SummarizeTokens(members, corpus, options));
  }
  const TokenValues values(tokens, corpus);
  std::vector<PositionValue> kl_at;
  WorstTokens worst(options.worst);
  for (const ScoredToken& token : tokens) {
    const TokenComparison& c = token.comparison;
    quality.histogram.Add(c.kl);
    kl_at.push_back({c.kl, values.Document(token), token.position});
    worst.Add({.kl = c.kl,
               .document = values.Document(token),
               .window = token.window,
               .position = token.position,
               .next_token = corpus.windows[static_cast<size_t>(token.window)].tokens[static_cast<size_t>(token.position)],
               .reference_top = c.reference_top,
               .model_top = c.model_top});
  }
  quality.growth = MeasureGrowth(kl_at, options.bootstrap);
  quality.worst = worst.Descending();
  return quality;
}

OrderedJson ToJson(const QualityMetrics& m) {
  OrderedJson json = {{"kl_mean", ToJson(m.kl_mean)},
                      {"kl_median", ToJson(m.kl_median)},
                      {"kl_p90", ToJson(m.kl_p90)},
                      {"kl_p99", ToJson(m.kl_p99)},
                      {"kl_p999", ToJson(m.kl_p999)},
                      {"kl_max", ToJson(m.kl_max)},
                      {"same_top", ToJson(m.same_top)},
                      {"ppl_ratio", ToJson(m.ppl_ratio)},
                      {"ppl", ToJson(m.ppl)},
                      {"ppl_reference", ToJson(m.ppl_reference)},
                      {"delta_p_mean", ToJson(m.delta_p_mean)},
                      {"delta_p_rms", ToJson(m.delta_p_rms)}};
  if (m.served.empty()) return json;
  json["served"] = OrderedJson::array();
  for (const ServedMetrics& served : m.served) json["served"].push_back(ToJson(served));
  return json;
}

OrderedJson ToJson(const ModelQuality& quality, const Corpus& corpus) {
  OrderedJson slices = OrderedJson::object(), worst = OrderedJson::array();
  for (const auto& [name, metrics] : quality.slices) slices[name] = ToJson(metrics);
  for (const WorstToken& token : quality.worst) {
    worst.push_back({{"kl", token.kl},
                     {"slice", corpus.windows[static_cast<size_t>(token.window)].slice},
                     {"document", token.document},
                     {"window", token.window},
                     {"position", token.position},
                     {"token", token.next_token},
                     {"reference_top", token.reference_top},
                     {"model_top", token.model_top}});
  }
  return {{"metrics", ToJson(quality.overall)},
          {"slices", slices},
          {"kl_histogram", ToJson(quality.histogram)},
          {"kl_growth", ToJson(quality.growth)},
          {"worst_tokens", worst}};
}

}  // namespace pith
