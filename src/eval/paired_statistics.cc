#include "eval/paired_statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/check.h"
#include "base/random.h"

namespace pith {
namespace {

int64_t NumDocuments(absl::Span<const DocumentValue> values) {
  int64_t largest = -1;
  for (const DocumentValue& value : values) largest = std::max(largest, value.document);
  return largest + 1;
}

// Calls statistic(weights) with how often each document was drawn, for every replicate, and returns the percentile interval.
Estimate Bootstrap(double value, int64_t n, const std::vector<int64_t>& documents, int64_t num_documents, const BootstrapOptions& options,
                   const std::function<double(const std::vector<int>&)>& statistic) {
  Estimate estimate{.value = value, .low = value, .high = value, .n = n};
  if (documents.size() < 2 || options.replicates < 2) return estimate;
  RandomStream random(options.seed, 0xB007);
  std::vector<double> replicates;
  std::vector<int> weights(static_cast<size_t>(num_documents));
  for (int r = 0; r < options.replicates; ++r) {
    std::fill(weights.begin(), weights.end(), 0);
    for (size_t i = 0; i < documents.size(); ++i) ++weights[static_cast<size_t>(documents[random.Below(documents.size())])];
    replicates.push_back(statistic(weights));
  }
  std::sort(replicates.begin(), replicates.end());
  const auto at = [&](double q) { return replicates[static_cast<size_t>(std::lround(q * static_cast<double>(replicates.size() - 1)))]; };
  estimate.low = at(0.025);
  estimate.high = at(0.975);
  return estimate;
}

// Numbers of the documents that have values, ascending.
std::vector<int64_t> PresentDocuments(absl::Span<const DocumentValue> values) {
  std::vector<int64_t> documents;
  for (const DocumentValue& value : values) documents.push_back(value.document);
  std::sort(documents.begin(), documents.end());
  documents.erase(std::unique(documents.begin(), documents.end()), documents.end());
  return documents;
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
  const auto mean = [&](const std::vector<int>* weights) {
    double total = 0, n = 0;
    for (size_t d = 0; d < sum.size(); ++d) {
      const double weight = weights == nullptr ? 1.0 : (*weights)[d];
      total += weight * sum[d];
      n += weight * static_cast<double>(count[d]);
    }
    return transform(total / n);
  };
  return Bootstrap(mean(nullptr), static_cast<int64_t>(values.size()), PresentDocuments(values), num_documents, options,
                   [&](const std::vector<int>& weights) { return mean(&weights); });
}

}  // namespace

Estimate EstimateMean(absl::Span<const DocumentValue> values, const BootstrapOptions& options) {
  return EstimateOfMean(values, options, [](double mean) { return mean; });
}

Estimate EstimateExpMean(absl::Span<const DocumentValue> values, const BootstrapOptions& options) {
  return EstimateOfMean(values, options, [](double mean) { return std::exp(mean); });
}

Estimate EstimateQuantile(absl::Span<const DocumentValue> values, double q, const BootstrapOptions& options) {
  CHECK(q >= 0 && q <= 1);
  if (values.empty()) return {};
  std::vector<DocumentValue> sorted(values.begin(), values.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const DocumentValue& a, const DocumentValue& b) { return a.value < b.value; });
  const auto quantile = [&](const std::vector<int>* weights) {
    int64_t total = 0;
    for (const DocumentValue& value : sorted) total += weights == nullptr ? 1 : (*weights)[static_cast<size_t>(value.document)];
    const double needed = q * static_cast<double>(total);
    int64_t seen = 0;
    double last = sorted.front().value;
    for (const DocumentValue& value : sorted) {
      const int weight = weights == nullptr ? 1 : (*weights)[static_cast<size_t>(value.document)];
      if (weight == 0) continue;
      seen += weight;
      last = value.value;
      if (static_cast<double>(seen) >= needed) break;
    }
    return last;
  };
  return Bootstrap(quantile(nullptr), static_cast<int64_t>(values.size()), PresentDocuments(values), NumDocuments(values), options,
                   [&](const std::vector<int>& weights) { return quantile(&weights); });
}

OrderedJson ToJson(const Estimate& estimate) {
  return {{"value", estimate.value}, {"ci95", {estimate.low, estimate.high}}, {"n", estimate.n}};
}

}  // namespace pith
