// How often divergences of each size occur, in bins of equal width on a logarithmic scale.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"

namespace pith {

// Counts values; never keeps them. Not thread-safe.
class KlHistogram {
 public:
  static constexpr int kFirstExponent = -9, kLastExponent = 2;  // of ten, in nats
  static constexpr int kBinsPerDecade = 4;
  static constexpr int kNumBins = (kLastExponent - kFirstExponent) * kBinsPerDecade;

  KlHistogram();

  void Add(double kl);  // >= 0
  // Edges of the bins, [kNumBins + 1], ascending; bin i counts values in [edges[i], edges[i + 1]).
  const std::vector<double>& edges() const { return edges_; }
  const std::vector<int64_t>& counts() const { return counts_; }
  int64_t below() const { return below_; }  // less than the first edge, exact zeros among them
  int64_t above() const { return above_; }  // the last edge or more
  int64_t total() const;

 private:
  std::vector<double> edges_;
  std::vector<int64_t> counts_;
  int64_t below_ = 0, above_ = 0;
};

// {"edges": [...], "counts": [...], "below", "above"}, from the first bin that counted anything to the last; all zero: no bins.
OrderedJson ToJson(const KlHistogram& histogram);

}  // namespace pith
