#include "compression/bit_allocation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "base/status.h"

namespace pith {
namespace {

constexpr int64_t kMaxItemBytes = int64_t{1} << 50;
constexpr size_t kMaxOptions = 255;
constexpr size_t kMaxItems = 1 << 12;  // sums of bytes stay below 2^62

absl::Status CheckItems(absl::Span<const AllocationItem> items) {
  if (items.size() > kMaxItems) return UsageError("bit allocation: expected at most ", kMaxItems, " items, found ", items.size());
  for (const AllocationItem& item : items) {
    if (item.options.empty() || item.options.size() > kMaxOptions) {
      return UsageError("bit allocation: ", item.name, ": expected 1 to ", kMaxOptions, " options, found ", item.options.size());
    }
    for (const AllocationOption& option : item.options) {
      if (option.bytes < 0 || option.bytes > kMaxItemBytes) {
        return UsageError("bit allocation: ", item.name, ": expected 0 to ", kMaxItemBytes, " bytes, found ", option.bytes);
      }
      if (!std::isfinite(option.loss)) return UsageError("bit allocation: ", item.name, ": expected a finite loss, found ", option.loss);
    }
  }
  return absl::OkStatus();
}

// Options of an item by bytes, without those that another one matches in loss with no more bytes: losses fall strictly, bytes rise.
std::vector<int> EfficientOptions(const AllocationItem& item) {
  std::vector<int> order(item.options.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int i) { return std::make_tuple(item.options[i].bytes, item.options[i].loss, i); };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
  std::vector<int> kept;
  for (const int i : order) {
    if (kept.empty() || item.options[i].loss < item.options[kept.back()].loss) kept.push_back(i);
  }
  return kept;
}

// Loss saved per byte between two options of an item.
double Slope(const AllocationItem& item, int from, int to) {
  return (item.options[from].loss - item.options[to].loss) / static_cast<double>(item.options[to].bytes - item.options[from].bytes);
}

// Of efficient options those on the lower convex hull: slopes fall strictly.
std::vector<int> ConvexHull(const AllocationItem& item, const std::vector<int>& efficient) {
  std::vector<int> hull;
  for (const int i : efficient) {
    while (hull.size() > 1 && Slope(item, hull[hull.size() - 2], hull.back()) <= Slope(item, hull.back(), i)) hull.pop_back();
    hull.push_back(i);
  }
  return hull;
}

void SumUp(absl::Span<const AllocationItem> items, Allocation& allocation) {
  allocation.bytes = 0;
  allocation.loss = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const AllocationOption& option = items[i].options[allocation.choice[i]];
    allocation.bytes += option.bytes;
    allocation.loss += option.loss;
  }
}

absl::Status CheckBudget(int64_t smallest, int64_t budget_bytes) {
  if (budget_bytes >= smallest) return absl::OkStatus();
  return UsageError("bit allocation: expected a budget of at least ", smallest, " bytes (every item in its smallest option), found ",
                    budget_bytes);
}

// A move of an item to its next option on the hull.
struct Step {
  double slope = 0;
  int64_t bytes = 0;
  size_t item = 0;
  int to = 0;
};

std::vector<Step> HullSteps(absl::Span<const AllocationItem> items, const std::vector<std::vector<int>>& efficient) {
  std::vector<Step> steps;
  for (size_t i = 0; i < items.size(); ++i) {
    const std::vector<int> hull = ConvexHull(items[i], efficient[i]);
    for (size_t k = 1; k < hull.size(); ++k) {
      const int64_t bytes = items[i].options[hull[k]].bytes - items[i].options[hull[k - 1]].bytes;
      steps.push_back({Slope(items[i], hull[k - 1], hull[k]), bytes, i, hull[k]});
    }
  }
  // Stable: an item's steps stay in their order, and ties go to the first item.
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.slope > b.slope; });
  return steps;
}

// Takes steps in the order of their slopes until one does not fit; a part of that one would be the optimum of the relaxation.
Allocation FollowHulls(absl::Span<const AllocationItem> items, const std::vector<std::vector<int>>& efficient, int64_t budget_bytes) {
  Allocation allocation;
  for (const std::vector<int>& options : efficient) allocation.choice.push_back(options.front());
  SumUp(items, allocation);
  int64_t left = budget_bytes - allocation.bytes;
  double saved = 0;
  for (const Step& step : HullSteps(items, efficient)) {
    if (step.bytes > left) {
      allocation.price = step.slope;
      saved = step.slope * static_cast<double>(left);
      break;
    }
    left -= step.bytes;
    allocation.choice[step.item] = step.to;
  }
  SumUp(items, allocation);
  allocation.lower_bound = allocation.loss - saved;
  allocation.exact = allocation.price == 0;  // nothing was left out
  return allocation;
}

// The table: least loss of the items so far by cells used, and which option the last of them has there.
class KnapsackTable {
 public:
  KnapsackTable(absl::Span<const AllocationItem> items, const std::vector<std::vector<int>>& efficient, const AllocationLimits& limits)
      : items_(items), efficient_(efficient) {
    int64_t range = 0, divisor = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      for (const int option : efficient[i]) divisor = std::gcd(divisor, Extra(i, option));
      range += Extra(i, efficient[i].back());
    }
    const int64_t num_items = std::max<int64_t>(1, static_cast<int64_t>(items.size()));
    const int64_t max_cells = std::max<int64_t>(1, std::min(limits.max_cells, limits.max_table_bytes / num_items));
    // Independent of the budget, so that a larger budget only adds cells.
    exact_ = divisor == 0 || range / divisor <= max_cells;
    unit_ = exact_ ? std::max<int64_t>(1, divisor) : (range + max_cells - 1) / max_cells;
  }

  int64_t unit() const { return unit_; }
  bool exact() const { return exact_; }

  // `extra_bytes`: of the budget beyond every item's smallest option.
  std::vector<int> Solve(int64_t extra_bytes) {
    int64_t most = 0;
    for (size_t i = 0; i < items_.size(); ++i) most += Cells(i, efficient_[i].back());
    cells_ = std::min(extra_bytes / unit_, most) + 1;
    std::vector<double> loss(static_cast<size_t>(cells_), std::numeric_limits<double>::infinity()), next(loss.size());
    loss[0] = 0;
    option_.assign(items_.size() * loss.size(), 0);
    for (size_t i = 0; i < items_.size(); ++i) {
      AddItem(i, loss, next);
      loss.swap(next);
    }
    return TraceBack(std::min_element(loss.begin(), loss.end()) - loss.begin());
  }

 private:
  int64_t Extra(size_t item, int option) const {
    return items_[item].options[option].bytes - items_[item].options[efficient_[item].front()].bytes;
  }
  int64_t Cells(size_t item, int option) const { return (Extra(item, option) + unit_ - 1) / unit_; }

  void AddItem(size_t item, const std::vector<double>& loss, std::vector<double>& next) {
    uint8_t* chosen = option_.data() + item * loss.size();
    std::fill(next.begin(), next.end(), std::numeric_limits<double>::infinity());
    for (const int option : efficient_[item]) {
      const double added = items_[item].options[option].loss;
      for (int64_t cell = Cells(item, option), from = 0; cell < cells_; ++cell, ++from) {
        const double total = loss[from] + added;
        if (total < next[cell]) {
          next[cell] = total;
          chosen[cell] = static_cast<uint8_t>(option);
        }
      }
    }
  }

  std::vector<int> TraceBack(int64_t cell) const {
    std::vector<int> choice(items_.size());
    for (size_t i = items_.size(); i-- > 0;) {
      choice[i] = option_[i * static_cast<size_t>(cells_) + static_cast<size_t>(cell)];
      cell -= Cells(i, choice[i]);
    }
    return choice;
  }

  const absl::Span<const AllocationItem> items_;
  const std::vector<std::vector<int>>& efficient_;
  int64_t unit_ = 1, cells_ = 0;
  bool exact_ = false;
  std::vector<uint8_t> option_;  // [item][cell]
};

absl::StatusOr<std::vector<std::vector<int>>> Prepare(absl::Span<const AllocationItem> items, int64_t budget_bytes) {
  RETURN_IF_ERROR(CheckItems(items));
  std::vector<std::vector<int>> efficient;
  int64_t smallest = 0;
  for (const AllocationItem& item : items) {
    efficient.push_back(EfficientOptions(item));
    smallest += item.options[efficient.back().front()].bytes;
  }
  RETURN_IF_ERROR(CheckBudget(smallest, budget_bytes));
  return efficient;
}

}  // namespace

absl::StatusOr<Allocation> AllocateBitsByPrice(absl::Span<const AllocationItem> items, int64_t budget_bytes) {
  ASSIGN_OR_RETURN(const auto efficient, Prepare(items, budget_bytes));
  return FollowHulls(items, efficient, budget_bytes);
}

absl::StatusOr<Allocation> AllocateBits(absl::Span<const AllocationItem> items, int64_t budget_bytes, const AllocationLimits& limits) {
  ASSIGN_OR_RETURN(const auto efficient, Prepare(items, budget_bytes));
  Allocation by_price = FollowHulls(items, efficient, budget_bytes);
  if (by_price.exact) return by_price;
  Allocation smallest;
  for (const std::vector<int>& options : efficient) smallest.choice.push_back(options.front());
  SumUp(items, smallest);
  KnapsackTable table(items, efficient, limits);
  Allocation best = by_price;
  best.choice = table.Solve(budget_bytes - smallest.bytes);
  SumUp(items, best);
  if (by_price.loss < best.loss) best = by_price;
  best.unit_bytes = table.unit();
  best.exact = table.exact();
  return best;
}

}  // namespace pith
