// Point estimates with bootstrap intervals, and what can be decided from them. The unit that is resampled is the document, because tokens
// of one document are not independent; both models are measured on the same tokens, so differences are paired by construction. Source:
// Efron & Tibshirani 1993, chapter 13 (percentile interval); Koehn 2004 for the paired use.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "base/json.h"

namespace pith {

struct Estimate {
  double value = 0;
  double low = 0, high = 0;  // interval; equal to value with a single document, which says nothing about others
  int64_t n = 0;             // values (tokens)
  int64_t documents = 0;     // they come from
};

struct BootstrapOptions {
  int replicates = 1000;
  uint64_t seed = 1;
  double confidence = 0.95;  // share of intervals that hold the true value, in (0, 1)
};

// A value with the document it belongs to. Documents are numbered from 0, in any order.
struct DocumentValue {
  double value = 0;
  int64_t document = 0;
};

// Deterministic for the same values and options.
Estimate EstimateMean(absl::Span<const DocumentValue> values, const BootstrapOptions& options);
// exp of the mean: perplexities, and their ratios when the values are differences of log-probabilities.
Estimate EstimateExpMean(absl::Span<const DocumentValue> values, const BootstrapOptions& options);
// The q-quantile, 0 <= q <= 1: the smallest value whose share of values at or below it is at least q (q = 1: the largest).
Estimate EstimateQuantile(absl::Span<const DocumentValue> values, double q, const BootstrapOptions& options);
// Several quantiles, each as EstimateQuantile gives it, in one pass over the values per replicate. `qs` ascend.
std::vector<Estimate> EstimateQuantiles(absl::Span<const DocumentValue> values, absl::Span<const double> qs,
                                        const BootstrapOptions& options);
// Square root of the mean of the squares.
Estimate EstimateRootMeanSquare(absl::Span<const DocumentValue> values, const BootstrapOptions& options);

// Intervals of any statistics of documents. `documents` are the numbers of those that have values, ascending; statistics(weights, results)
// is called once per replicate, weights[d] being how often document d was drawn. A result that is NaN (a statistic that this draw does not
// have) is left out. values[i] is the point estimate of result i, n the number of values behind them.
std::vector<Estimate> BootstrapDocuments(absl::Span<const double> values, int64_t n, absl::Span<const int64_t> documents,
                                         const BootstrapOptions& options,
                                         const std::function<void(absl::Span<const int>, absl::Span<double>)>& statistics);
// Numbers of the documents that have values, ascending.
std::vector<int64_t> PresentDocuments(absl::Span<const DocumentValue> values);

// What an estimate says about a bound.
enum class Decision {
  kHolds,          // the whole interval keeps the bound
  kFails,          // the whole interval breaks it
  kNotEnoughData,  // the bound lies inside the interval, or there are too few documents for the interval to mean anything
};

// Percentile intervals of fewer documents are too narrow to decide by.
constexpr int64_t kMinDocumentsToDecide = 10;

// Whether the true value is at most, or at least, the bound. A bound that equals an end of the interval is kept.
Decision DecideAtMost(const Estimate& estimate, double bound, int64_t min_documents = kMinDocumentsToDecide);
Decision DecideAtLeast(const Estimate& estimate, double bound, int64_t min_documents = kMinDocumentsToDecide);
const char* DecisionName(Decision decision);  // "holds", "fails", "not enough data"

OrderedJson ToJson(const Estimate& estimate);  // {"value", "ci95": [low, high], "n"}

}  // namespace pith
