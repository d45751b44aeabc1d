#include "eval/kl_histogram.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pith {

KlHistogram::KlHistogram() : counts_(kNumBins, 0) {
  for (int i = 0; i <= kNumBins; ++i) edges_.push_back(std::pow(10.0, kFirstExponent + static_cast<double>(i) / kBinsPerDecade));
}

void KlHistogram::Add(double kl) {
  const auto bin = std::upper_bound(edges_.begin(), edges_.end(), kl) - edges_.begin() - 1;
  if (bin < 0) {
    ++below_;
  } else if (bin >= kNumBins) {
    ++above_;
  } else {
    ++counts_[static_cast<size_t>(bin)];
  }
}

int64_t KlHistogram::total() const { return std::accumulate(counts_.begin(), counts_.end(), below_ + above_); }

OrderedJson ToJson(const KlHistogram& histogram) {
  const std::vector<int64_t>& counts = histogram.counts();
  const auto counted = [](int64_t count) { return count > 0; };
  const auto first = std::find_if(counts.begin(), counts.end(), counted) - counts.begin();
  const auto end = std::find_if(counts.rbegin(), counts.rend(), counted).base() - counts.begin();
  OrderedJson edges = OrderedJson::array(), bins = OrderedJson::array();
  for (auto i = first; i < end; ++i) {
    edges.push_back(histogram.edges()[static_cast<size_t>(i)]);
    bins.push_back(counts[static_cast<size_t>(i)]);
  }
  if (first < end) edges.push_back(histogram.edges()[static_cast<size_t>(end)]);
  return {{"edges", edges}, {"counts", bins}, {"below", histogram.below()}, {"above", histogram.above()}};
}

}  // namespace pith
