// Point estimates with 95 % bootstrap intervals. The unit that is resampled is the document, because tokens of one document are not
// independent; both models are measured on the same tokens, so differences are paired by construction.
// Source: Efron & Tibshirani 1993, chapter 13 (percentile interval); Koehn 2004 for the paired use.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "base/json.h"

namespace pith {

struct Estimate {
  double value = 0;
  double low = 0, high = 0;  // 95 % interval; equal to value with a single document
  int64_t n = 0;             // values (tokens)
};

struct BootstrapOptions {
  int replicates = 1000;
  uint64_t seed = 1;
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

OrderedJson ToJson(const Estimate& estimate);  // {"value", "ci95": [low, high], "n"}

}  // namespace pith
