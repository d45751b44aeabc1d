#include "compression/stage_clock.h"

#include <algorithm>
#include <chrono>

#include "base/resource_use.h"

namespace pith {

Cost CostNow() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration<double>(now).count(), ProcessCpuSeconds()};
}

Cost MeanCost(absl::Span<const Cost> costs) {
  Cost sum;
  for (const Cost& cost : costs) sum = sum + cost;
  return costs.empty() ? sum : (1.0 / static_cast<double>(costs.size())) * sum;
}

Cost AtLeastZero(const Cost& cost) { return {std::max(cost.seconds, 0.0), std::max(cost.cpu_seconds, 0.0)}; }

void StageClock::Begin(const Cost& now) {
  marks_.clear();
  modules_ = 0;
  begin_ = now;
}

void StageClock::Mark(int64_t modules, const Cost& now) {
  marks_.push_back(now);
  modules_ += modules;
}

LayerCost StageClock::Split(absl::Span<const int64_t> lengths, int64_t num_measured) const {
  const auto count = static_cast<int64_t>(lengths.size());
  const int64_t advance = count + modules_;  // the first mark of the passes through the quantized layer
  if (static_cast<int64_t>(marks_.size()) != advance + count || count <= num_measured + 1) return {.once = Whole()};
  std::vector<Cost> observed, measured, advanced;
  const auto per_token = [&](int64_t mark, int64_t sequence) {
    return (1.0 / static_cast<double>(lengths[static_cast<size_t>(sequence)])) * (marks_[mark] - marks_[mark - 1]);
  };
  for (int64_t i = 1; i < count; ++i) {
    observed.push_back(per_token(i, i));
    (i < num_measured ? measured : advanced).push_back(per_token(advance + i, i));
  }
  LayerCost cost{.observe = MeanCost(observed), .advance_measured = MeanCost(measured), .advance = MeanCost(advanced)};
  const auto first = static_cast<double>(lengths.front());
  cost.once = AtLeastZero((marks_[0] - begin_) - first * cost.observe) +
              AtLeastZero((marks_[advance] - marks_[count - 1]) - first * cost.advance_measured) + (end_ - marks_.back());
  return cost;
}

}  // namespace pith
