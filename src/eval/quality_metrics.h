// What the token-by-token comparisons of a model amount to: figures with intervals over the whole corpus and per slice.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/json.h"
#include "eval/corpus.h"
#include "eval/kl_divergence.h"
#include "eval/kl_histogram.h"
#include "eval/paired_statistics.h"
#include "eval/position_growth.h"
#include "eval/worst_tokens.h"

namespace pith {

// Of what would be served at one setting (ServedComparison says what each is).
struct ServedMetrics {
  SamplingParams params;
  Estimate kl_mean, kl_p99, kl_shared_mean;  // n = 0 for greedy decoding
  Estimate jensen_shannon_mean, total_variation_mean, total_variation_p99, lost_mass_mean, added_mass_mean;
};

// A float setting as it was written: 0.1, where the float's own value is 0.100000001. What figures are filed and looked up under.
double DecimalSetting(float setting);

// Figures of one model over some windows. KL in nats.
struct QualityMetrics {
  Estimate kl_mean, kl_median, kl_p90, kl_p99, kl_p999, kl_max, same_top, ppl_ratio, ppl, ppl_reference, delta_p_mean, delta_p_rms;
  std::vector<ServedMetrics> served;  // one per setting
};

struct ModelQuality {
  QualityMetrics overall;
  std::vector<std::pair<std::string, QualityMetrics>> slices;  // in the corpus's order; empty with one slice
  KlHistogram histogram;
  PositionGrowth growth;          // of KL; a position counts the tokens before the predicted one
  std::vector<WorstToken> worst;  // by KL, descending
};

struct SummaryOptions {
  std::vector<SamplingParams> served;  // as in the ComparisonOptions that scored the tokens
  size_t worst = 10;                   // tokens kept
  BootstrapOptions bootstrap;
};

// Deterministic: the same tokens and options give the same bits.
ModelQuality Summarize(absl::Span<const ScoredToken> tokens, const Corpus& corpus, const SummaryOptions& options);

OrderedJson ToJson(const QualityMetrics& metrics);
// {"metrics": {...}, "slices": {...}, "kl_histogram": {...}, "kl_growth": {...}, "worst_tokens": [...]}; the slices of the corpus name
// where the worst tokens are.
OrderedJson ToJson(const ModelQuality& quality, const Corpus& corpus);

}  // namespace pith
