#include "eval/position_growth.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"

namespace pith {
namespace {

// What a least-squares line needs to know of a set of points; sets add up.
struct Moments {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;

  void Add(const Moments& other, double times) {
    n += times * other.n;
    x += times * other.x;
    y += times * other.y;
    xx += times * other.xx;
    xy += times * other.xy;
  }
  // NaN when all x are equal, but for rounding.
  double Slope() const {
    const double variance = n * xx - x * x;
    return variance > 1e-9 * n * xx ? (n * xy - x * y) / variance : std::nan("");
  }
};

Estimate EstimateSlope(absl::Span<const PositionValue> values, const std::vector<int64_t>& documents, const BootstrapOptions& options) {
  std::vector<Moments> moments(static_cast<size_t>(documents.back()) + 1);
  Moments all;
  for (const PositionValue& value : values) {
    const double x = std::log2(static_cast<double>(value.position));
    const Moments point = {.n = 1, .x = x, .y = value.value, .xx = x * x, .xy = x * value.value};
    moments[static_cast<size_t>(value.document)].Add(point, 1);
    all.Add(point, 1);
  }
  const double slope = all.Slope();
  if (std::isnan(slope)) return {};
  return BootstrapDocuments({&slope, 1}, static_cast<int64_t>(values.size()), documents, options,
                            [&](absl::Span<const int> weights, absl::Span<double> results) {
                              Moments drawn;
                              for (size_t d = 0; d < weights.size(); ++d) drawn.Add(moments[d], weights[d]);
                              results[0] = drawn.Slope();
                            })[0];
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
