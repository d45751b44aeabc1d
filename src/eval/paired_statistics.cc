#include "eval/paired_statistics.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/random.h"

namespace pith {
namespace {

int64_t NumDocuments(absl::Span<const DocumentValue> values) {
  int64_t largest = -1;
  for (const DocumentValue& value : values) largest = std::max(largest, value.document);
  return largest + 1;
}

Estimate EstimateOfMean(absl::Span<const DocumentValue> values, const BootstrapOptions& options, double (*transform)(double)) {
  if (values.empty()) return {};
  const int64_t num_documents = NumDocuments(values);
  std::vector<double> sum(static_cast<size_t>(num_documents), 0.0);
  std::vector<int64_t> count(static_cast<size_t>(num_documents), 0);
  for (const DocumentValue& value : values) {
    sum[static_cast<size_t>(value.document)] += value.value;
    ++count[static_cast<size_t>(value.document)];
  }
  const auto mean = [&](absl::Span<const int> weights) {  // of none: each document once
    double total = 0, n = 0;
    for (size_t d = 0; d < sum.size(); ++d) {
      const double weight = weights.empty() ? 1.0 : weights[d];
      total += weight * sum[d];
      n += weight * static_cast<double>(count[d]);
    }
    return transform(total / n);
  };
  const double value = mean({});
  return BootstrapDocuments({&value, 1}, static_cast<int64_t>(values.size()), PresentDocuments(values), options,
                            [&](absl::Span<const int> weights, absl::Span<double> results) { results[0] = mean(weights); })[0];
}

// The quantiles `qs` (ascending) of sorted values, each counted as often as its document was drawn (no weights: once).
void Quantiles(absl::Span<const DocumentValue> sorted, absl::Span<const double> qs, absl::Span<const int> weights,
               absl::Span<double> results) {
  const auto weight = [&](const DocumentValue& value) { return weights.empty() ? 1 : weights[static_cast<size_t>(value.document)]; };
  int64_t total = 0, seen = 0;
  for (const DocumentValue& value : sorted) total += weight(value);
  size_t next = 0;
  double last = sorted.front().value;
  for (const DocumentValue& value : sorted) {
    const int times = weight(value);
    if (times == 0) continue;
    seen += times;
    last = value.value;
    for (; next < qs.size() && static_cast<double>(seen) >= qs[next] * static_cast<double>(total); ++next) results[next] = last;
  }
  for (; next < qs.size(); ++next) results[next] = last;
}

}  // namespace

Estimate EstimateMean(absl::Span<const DocumentValue> values, const BootstrapOptions& options) {
  return EstimateOfMean(values, options, [](double mean) { return mean; });
}

Estimate EstimateExpMean(absl::Span<const DocumentValue> values, const BootstrapOptions& options) {
  return EstimateOfMean(values, options, [](double mean) { return std::exp(mean); });
}

Estimate EstimateRootMeanSquare(absl::Span<const DocumentValue> values, const BootstrapOptions& options) {
  std::vector<DocumentValue> squares(values.begin(), values.end());
  for (DocumentValue& value : squares) value.value *= value.value;
  return EstimateOfMean(squares, options, [](double mean) { return std::sqrt(mean); });
}

Estimate EstimateQuantile(absl::Span<const DocumentValue> values, double q, const BootstrapOptions& options) {
  return EstimateQuantiles(values, {&q, 1}, options)[0];
}

std::vector<Estimate> EstimateQuantiles(absl::Span<const DocumentValue> values, absl::Span<const double> qs,
                                        const BootstrapOptions& options) {
  CHECK(std::is_sorted(qs.begin(), qs.end()));
  if (values.empty() || qs.empty()) return std::vector<Estimate>(qs.size());
  CHECK(qs.front() >= 0 && qs.back() <= 1);
  std::vector<DocumentValue> sorted(values.begin(), values.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const DocumentValue& a, const DocumentValue& b) { return a.value < b.value; });
  std::vector<double> points(qs.size());
  Quantiles(sorted, qs, {}, absl::MakeSpan(points));
  return BootstrapDocuments(points, static_cast<int64_t>(values.size()), PresentDocuments(values), options,
                            [&](absl::Span<const int> weights, absl::Span<double> results) { Quantiles(sorted, qs, weights, results); });
}

std::vector<Estimate> BootstrapDocuments(absl::Span<const double> values, int64_t n, absl::Span<const int64_t> documents,
                                         const BootstrapOptions& options,
                                         const std::function<void(absl::Span<const int>, absl::Span<double>)>& statistics) {
  CHECK(options.confidence > 0 && options.confidence < 1);
  std::vector<Estimate> estimates;
  for (const double value : values) {
    estimates.push_back({.value = value, .low = value, .high = value, .n = n, .documents = static_cast<int64_t>(documents.size())});
  }
  if (documents.size() < 2 || options.replicates < 2) return estimates;
  RandomStream random(options.seed, 0xB007);
  std::vector<std::vector<double>> replicates(values.size());
  std::vector<int> weights(static_cast<size_t>(documents.back()) + 1);
  std::vector<double> results(values.size());
  for (int r = 0; r < options.replicates; ++r) {
    std::fill(weights.begin(), weights.end(), 0);
    for (size_t i = 0; i < documents.size(); ++i) ++weights[static_cast<size_t>(documents[random.Below(documents.size())])];
    statistics(weights, absl::MakeSpan(results));
    for (size_t i = 0; i < results.size(); ++i) {
      if (!std::isnan(results[i])) replicates[i].push_back(results[i]);
    }
  }
  const double tail = (1 - options.confidence) / 2;
  for (size_t i = 0; i < estimates.size(); ++i) {
    std::vector<double>& sorted = replicates[i];
    if (sorted.empty()) continue;
    std::sort(sorted.begin(), sorted.end());
    const auto at = [&](double q) { return sorted[static_cast<size_t>(std::lround(q * static_cast<double>(sorted.size() - 1)))]; };
    estimates[i].low = at(tail);
    estimates[i].high = at(1 - tail);
  }
  return estimates;
}

std::vector<int64_t> PresentDocuments(absl::Span<const DocumentValue> values) {
  std::vector<int64_t> documents;
  for (const DocumentValue& value : values) documents.push_back(value.document);
  std::sort(documents.begin(), documents.end());
  documents.erase(std::unique(documents.begin(), documents.end()), documents.end());
  return documents;
}

Decision DecideAtMost(const Estimate& estimate, double bound, int64_t min_documents) {
  if (estimate.documents < min_documents) return Decision::kNotEnoughData;
  if (estimate.high <= bound) return Decision::kHolds;
  return estimate.low > bound ? Decision::kFails : Decision::kNotEnoughData;
}

Decision DecideAtLeast(const Estimate& estimate, double bound, int64_t min_documents) {
  if (estimate.documents < min_documents) return Decision::kNotEnoughData;
  if (estimate.low >= bound) return Decision::kHolds;
  return estimate.high < bound ? Decision::kFails : Decision::kNotEnoughData;
}

const char* DecisionName(Decision decision) {
  switch (decision) {
    case Decision::kHolds: return "holds";
    case Decision::kFails: return "fails";
    case Decision::kNotEnoughData: break;
  }
  return "not enough data";
}

OrderedJson ToJson(const Estimate& estimate) {
  return {{"value", estimate.value}, {"ci95", {estimate.low, estimate.high}}, {"n", estimate.n}};
}

}  // namespace pith
