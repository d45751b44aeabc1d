#include "quantization/quantization_scheme.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr int64_t kLargestAutoGroupSize = 128;
constexpr int64_t kSmallestAutoGroupSize = 16;

// Divisors of n in [kSmallestAutoGroupSize, kLargestAutoGroupSize], largest first.
std::vector<int64_t> GroupSizes(int64_t n) {
  std::vector<int64_t> sizes;
  for (int64_t size = kLargestAutoGroupSize; size >= kSmallestAutoGroupSize; --size) {
    if (n % size == 0) sizes.push_back(size);
  }
  return sizes;
}

// "90 of in=576 (model.layers.0.self_attn.q_proj, ...)" per distinct row length, at most four of them.
std::string DescribeRows(absl::Span<const RowLength> layers, absl::FunctionRef<bool(int64_t)> selected) {
  std::map<int64_t, std::pair<int, std::string>> by_length;
  for (const RowLength& layer : layers) {
    if (!selected(layer.in)) continue;
    auto& [count, example] = by_length[layer.in];
    if (count++ == 0) example = layer.name;
  }
  std::vector<std::string> parts;
  for (const auto& [in, found] : by_length) {
    if (parts.size() == 4) {
      parts.push_back(absl::StrCat(by_length.size() - 4, " more lengths"));
      break;
    }
    const std::vector<int64_t> sizes = GroupSizes(in);
    parts.push_back(absl::StrCat(found.first, found.first == 1 ? " layer" : " layers", " with in=", in, " (", found.second,
                                 found.first == 1 ? "" : ", ...",
                                 "; sizes that divide: ", sizes.empty() ? std::string("none") : absl::StrJoin(sizes, " "), ")"));
  }
  return absl::StrJoin(parts, ", ");
}

}  // namespace

absl::StatusOr<QuantizationScheme> WithStrategy(const QuantizationScheme& scheme, QuantizationStrategy strategy, int group_size) {
  if (!scheme.weights.has_value()) {
    return UsageError("scheme ", scheme.name, ": expected quantized weights for strategy ", StrategyName(strategy), ", found none");
  }
  QuantizationScheme result = scheme;
  result.weights->strategy = strategy;
  result.weights->group_size = group_size;
  if (strategy != QuantizationStrategy::kBlock) result.weights->block_rows = result.weights->block_cols = 0;
  RETURN_IF_ERROR(Annotate(Validate(*result.weights), absl::StrCat("scheme ", scheme.name)));
  return result;
}

absl::StatusOr<int> ResolveGroupSize(absl::Span<const RowLength> layers, int requested) {
  if (requested < 0) return UsageError("group size: expected a positive size or auto, found ", requested);
  int64_t divisor = 0;
  for (const RowLength& layer : layers) divisor = std::gcd(divisor, layer.in);
  if (divisor == 0) return UsageError("group size: expected at least one layer with rows, found none");
  const std::vector<int64_t> sizes = GroupSizes(divisor);
  if (requested == 0) {
    // Powers of two first: serving engines have kernels for 128, 64 and 32 only.
    for (const int64_t size : sizes) {
      if (std::has_single_bit(static_cast<uint64_t>(size))) return static_cast<int>(size);
    }
    if (!sizes.empty()) return static_cast<int>(sizes.front());
    return UsageError("group size auto: expected a size from ", kSmallestAutoGroupSize, " to ", kLargestAutoGroupSize,
                      " that divides every row, found none: ", DescribeRows(layers, [](int64_t) { return true; }));
  }
  if (divisor % requested == 0) return requested;
  return UsageError("group size ", requested, ": expected a divisor of every row, found ",
                    DescribeRows(layers, [&](int64_t in) { return in % requested != 0; }),
                    "; sizes that divide every row: ", sizes.empty() ? std::string("none") : absl::StrJoin(sizes, " "));
}

}  // namespace pith
