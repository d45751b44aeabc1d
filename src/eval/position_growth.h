// Whether an error grows with the position in the context: per doubling of the position, because contexts are compared on that scale.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "base/json.h"
#include "eval/paired_statistics.h"

namespace pith {

struct PositionValue {
  double value = 0;
  int64_t document = 0;
  int64_t position = 1;  // >= 1: how many tokens the value had before it
};

// Mean of the values whose positions lie in [first, last].
struct PositionBin {
  int64_t first = 1, last = 1;
  Estimate mean;
};

struct PositionGrowth {
  // Least-squares slope of the values over log2(position) that all documents share, each with a level of its own (else documents that are
  // both short and hard would look like growth): by how much the mean grows when the context doubles. An interval above 0 says that the
  // error grows with length. No slope (n = 0) when no document has values at two positions.
  Estimate slope_per_doubling;
  std::vector<PositionBin> bins;  // [2^k, 2^(k+1) - 1], ascending, those with values
};

// Intervals resample documents. Deterministic. Thread-safe.
PositionGrowth MeasureGrowth(absl::Span<const PositionValue> values, const BootstrapOptions& options);

OrderedJson ToJson(const PositionGrowth& growth);  // {"slope_per_doubling", "bins": [{"first", "last", "value", "ci95", "n"}]}

}  // namespace pith
