#include "eval/paired_outcomes.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace pith {
namespace {

Estimate WilsonRate(double rate, int64_t n, double z) {
  const auto count = static_cast<double>(n);
  const double scale = 1 + z * z / count;
  const double center = (rate + z * z / (2 * count)) / scale;
  const double half = z * std::sqrt(rate * (1 - rate) / count + z * z / (4 * count * count)) / scale;
  // The interval ends at 0 and 1 exactly when every outcome does; rounding must not move it off.
  return {.value = rate, .low = rate == 0 ? 0 : center - half, .high = rate == 1 ? 1 : center + half, .n = n, .documents = n};
}

// Wald interval of the mean difference after one item more on which the model does better and one on which the reference does.
void WidenByAdjustedWald(absl::Span<const ItemOutcome> items, double z, Estimate& difference) {
  double sum = 0, squares = 2;
  for (const ItemOutcome& item : items) {
    sum += item.model - item.reference;
    squares += (item.model - item.reference) * (item.model - item.reference);
  }
  const double n = static_cast<double>(items.size()) + 2;
  const double mean = sum / n;
  const double half = z * std::sqrt((squares / n - mean * mean) / n);
  difference.low = std::max(-1.0, std::min(difference.low, mean - half));
  difference.high = std::min(1.0, std::max(difference.high, mean + half));
}

}  // namespace

OutcomeComparison CompareOutcomes(absl::Span<const ItemOutcome> items, const BootstrapOptions& options) {
  OutcomeComparison comparison;
  if (items.empty()) return comparison;
  const auto n = static_cast<int64_t>(items.size());
  double reference = 0, model = 0;
  std::vector<DocumentValue> differences;
  for (const ItemOutcome& item : items) {
    CHECK(item.reference >= 0 && item.reference <= 1 && item.model >= 0 && item.model <= 1);
    reference += item.reference;
    model += item.model;
    comparison.reference_better += item.reference > item.model ? 1 : 0;
    comparison.model_better += item.model > item.reference ? 1 : 0;
    differences.push_back({item.model - item.reference, static_cast<int64_t>(differences.size())});
  }
  const double z = NormalQuantile(1 - (1 - options.confidence) / 2);
  comparison.reference_rate = WilsonRate(reference / static_cast<double>(n), n, z);
  comparison.model_rate = WilsonRate(model / static_cast<double>(n), n, z);
  comparison.difference = EstimateMean(differences, options);
  WidenByAdjustedWald(items, z, comparison.difference);
  comparison.mcnemar_p = McNemarExact(comparison.reference_better, comparison.model_better);
  return comparison;
}

double McNemarExact(int64_t a, int64_t b) {
  CHECK(a >= 0 && b >= 0);
  const auto n = static_cast<double>(a + b);
  // P(X <= min(a, b)) of a binomial with probability 1/2. Logarithms, because 2^-n is no double from n = 1075 on.
  double tail = 0;
  for (int64_t k = 0; k <= std::min(a, b); ++k) {
    const auto x = static_cast<double>(k);
    tail += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) - n * std::log(2.0));
  }
  return std::min(1.0, 2 * tail);  // an even split counts its middle twice
}

double NormalQuantile(double p) {
  CHECK(p > 0 && p < 1);
  double low = -40, high = 40;
  for (int i = 0; i < 100; ++i) {  // halves to the last bit; the distribution function has no closed inverse
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

OrderedJson ToJson(const OutcomeComparison& c) {
  return {{"reference_rate", ToJson(c.reference_rate)}, {"model_rate", ToJson(c.model_rate)}, {"difference", ToJson(c.difference)},
          {"reference_better", c.reference_better},     {"model_better", c.model_better},     {"mcnemar_p", c.mcnemar_p}};
}

}  // namespace pith
