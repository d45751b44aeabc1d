// Two models' outcomes on the same task items: rates, their difference, and whether chance explains it.
// Sources: McNemar 1947 in its exact form (binomial over the discordant items); Wilson 1927 for a rate; Koehn 2004 for the paired
// bootstrap; Bonett & Price 2012 for the adjusted Wald interval of a paired difference.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "eval/paired_statistics.h"

namespace pith {

// How one item went: 0 or 1, or the share of its samples that were right, when both models answered it several times with the same seeds.
struct ItemOutcome {
  double reference = 0;
  double model = 0;
};

struct OutcomeComparison {
  Estimate reference_rate, model_rate;  // Wilson score intervals
  // model - reference. The interval is the union of two: the paired bootstrap over items, and an adjusted Wald interval, which has a width
  // also when no item differs (where any bootstrap has none, however few items there are).
  Estimate difference;
  int64_t reference_better = 0, model_better = 0;  // items where one did better than the other
  double mcnemar_p = 1;  // two-sided, of items with that split if neither model were better; one sample per item: McNemar's exact test
};

// Items are the documents of the bootstrap. Outcomes in [0, 1]. No items: everything 0, p = 1. Deterministic. Thread-safe.
OutcomeComparison CompareOutcomes(absl::Span<const ItemOutcome> items, const BootstrapOptions& options);

// Two-sided exact binomial test of an even split into a and b >= 0.
double McNemarExact(int64_t a, int64_t b);

// The value below which a standard normal variable lies with probability p in (0, 1).
double NormalQuantile(double p);

OrderedJson ToJson(const OutcomeComparison& comparison);

}  // namespace pith
