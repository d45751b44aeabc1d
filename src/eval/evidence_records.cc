#include "eval/evidence_records.h"

#include <utility>

namespace pith {
namespace {

// THE TABLE of figures that become evidence.
struct Figure {
  absl::string_view metric;
  Estimate QualityMetrics::*estimate;
};
constexpr Figure kFigures[] = {{"kl_mean", &QualityMetrics::kl_mean},
                               {"kl_p99", &QualityMetrics::kl_p99},
                               {"ppl_ratio", &QualityMetrics::ppl_ratio},
                               {"same_top", &QualityMetrics::same_top}};
struct ServedFigure {
  absl::string_view metric;
  Estimate ServedMetrics::*estimate;
};
constexpr ServedFigure kServedFigures[] = {{"served_kl_mean", &ServedMetrics::kl_mean},
                                           {"total_variation_mean", &ServedMetrics::total_variation_mean}};

// Slices with "all" before them.
std::vector<std::pair<std::string, const QualityMetrics*>> SlicesOf(const ModelQuality& quality) {
  std::vector<std::pair<std::string, const QualityMetrics*>> slices = {{"all", &quality.overall}};
  for (const auto& [name, metrics] : quality.slices) slices.emplace_back(name, &metrics);
  return slices;
}

bool HasCuts(const SamplingParams& params) { return params.top_k > 0 || params.top_p < 1 || params.min_p > 0; }

// Calls visit(conditions, estimate) for every figure, always in the same order for measurements of the same shape.
void VisitFigures(const ModelQuality& quality, const MeasurementConditions& at,
                  const std::function<void(EvidenceConditions, const Estimate&)>& visit) {
  for (const auto& [slice, metrics] : SlicesOf(quality)) {
    EvidenceConditions conditions = {.slice = slice, .context = at.context, .kv_cache = at.kv_cache, .data_path = at.data_path};
    for (const Figure& figure : kFigures) {
      conditions.metric = std::string(figure.metric);
      visit(conditions, metrics->*figure.estimate);
    }
    for (const ServedMetrics& served : metrics->served) {
      if (HasCuts(served.params)) continue;
      conditions.temperature = DecimalSetting(served.params.temperature);
      for (const ServedFigure& figure : kServedFigures) {
        if ((served.*figure.estimate).n == 0) continue;  // greedy decoding has no KL
        conditions.metric = std::string(figure.metric);
        visit(conditions, served.*figure.estimate);
      }
    }
  }
}

}  // namespace

std::vector<EvidenceRecord> MakeEvidenceRecords(const ModelQuality& quality, const MeasurementConditions& at) {
  std::vector<EvidenceRecord> records;
  VisitFigures(quality, at, [&](EvidenceConditions conditions, const Estimate& estimate) {
    records.push_back(
        {.conditions = std::move(conditions), .n = estimate.n, .value = estimate.value, .low = estimate.low, .high = estimate.high});
  });
  return records;
}

std::vector<GateFigure> MakeGateFigures(const ModelQuality& quality, const MeasurementConditions& at,
                                        std::function<const ModelQuality&(double confidence)> quality_at) {
  std::vector<GateFigure> figures;
  VisitFigures(quality, at, [&](EvidenceConditions conditions, const Estimate&) {
    GateFigure figure = {.conditions = std::move(conditions)};
    figure.estimate = [at, quality_at, wanted = figures.size()](double confidence) {
      Estimate found;
      size_t i = 0;
      VisitFigures(quality_at(confidence), at, [&](const EvidenceConditions&, const Estimate& estimate) {
        if (i++ == wanted) found = estimate;
      });
      return found;
    };
    figures.push_back(std::move(figure));
  });
  return figures;
}

void SetVerdicts(absl::Span<const GateResult> results, absl::Span<EvidenceRecord> records) {
  for (EvidenceRecord& record : records) {
    bool judged = false, undecided = false, failed = false;
    for (const GateResult& result : results) {
      if (result.conditions != record.conditions) continue;
      judged = true;
      failed |= result.outcome == Decision::kFails;
      undecided |= result.outcome == Decision::kNotEnoughData;
    }
    record.verdict = failed ? EvidenceVerdict::kRegression : judged && !undecided ? EvidenceVerdict::kOk : EvidenceVerdict::kUnknown;
  }
}

}  // namespace pith
