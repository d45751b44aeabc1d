#include "eval/position_growth.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"

namespace pith {
namespace {

// Sums over the points of one document.
struct Moments {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;

  // Around the document's own means; 0 when all x are equal, but for rounding.
  double SumXx() const { return n * xx - x * x > 1e-9 * n * xx ? xx - x * x / n : 0; }
  double SumXy() const { return SumXx() > 0 ? xy - x * y / n : 0; }
};

Estimate EstimateSlope(absl::Span<const PositionValue> values, const std::vector<int64_t>& documents, const BootstrapOptions& options) {
  std::vector<Moments> moments(static_cast<size_t>(documents.back()) + 1);
  for (const PositionValue& value : values) {
    const double x = std::log2(static_cast<double>(value.position));
    Moments& document = moments[static_cast<size_t>(value.document)];
    document.n += 1;
    document.x += x;
    document.y += value.value;
    document.xx += x * x;
    document.xy += x * value.value;
  }
  const auto slope = [&](absl::Span<const int> weights) {  // of none: each document once
    double xx = 0, xy = 0;
    for (size_t d = 0; d < moments.size(); ++d) {
      const double weight = weights.empty() ? 1.0 : weights[d];
      if (moments[d].n == 0 || weight == 0) continue;
      xx += weight * moments[d].SumXx();
      xy += weight * moments[d].SumXy();
    }
    return xx > 0 ? xy / xx : std::nan("");
  };
  const double value = slope({});
  if (std::isnan(value)) return {};
  return BootstrapDocuments({&value, 1}, static_cast<int64_t>(values.size()), documents, options,
                            [&](absl::Span<const int> weights, absl::Span<double> results) { results[0] = slope(weights); })[0];
}

}  // namespace

PositionGrowth MeasureGrowth(absl::Span<const PositionValue> values, const BootstrapOptions& options) {
  PositionGrowth growth;
  if (values.empty()) return growth;
  std::vector<DocumentValue> plain;
  std::map<int64_t, std::vector<DocumentValue>> bins;  // by first position
  for (const PositionValue& value : values) {
    CHECK(value.position >= 1);
    plain.push_back({value.value, value.document});
    bins[int64_t{1} << std::ilogb(static_cast<double>(value.position))].push_back(plain.back());
  }
  growth.slope_per_doubling = EstimateSlope(values, PresentDocuments(plain), options);
  for (const auto& [first, members] : bins) growth.bins.push_back({first, 2 * first - 1, EstimateMean(members, options)});
  return growth;
}

OrderedJson ToJson(const PositionGrowth& growth) {
  OrderedJson bins = OrderedJson::array();
  for (const PositionBin& bin : growth.bins) {
    OrderedJson entry = {{"first", bin.first}, {"last", bin.last}};
    entry.update(ToJson(bin.mean));
    bins.push_back(std::move(entry));
  }
  return {{"slope_per_doubling", ToJson(growth.slope_per_doubling)}, {"bins", bins}};
}

}  // namespace pith
