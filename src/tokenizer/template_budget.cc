#include "tokenizer/template_budget.h"

#include "base/status.h"

namespace pith::jinja {
namespace {

constexpr int64_t kStepsBetweenClockChecks = 1000;

}  // namespace

Budget::Budget(const ChatTemplateLimits& limits)
    : limits_(limits), deadline_(std::chrono::steady_clock::now() + std::chrono::milliseconds(limits.wall_ms)) {}

absl::Status Budget::Spend(int64_t steps) {
  if (steps > limits_.steps - spent_) {
    spent_ = limits_.steps;
    return UsageError("passed the limit steps of ", limits_.steps);
  }
  spent_ += steps;
  return spent_ < next_clock_check_ ? absl::OkStatus() : CheckClock();
}

absl::Status Budget::CheckClock() {
  next_clock_check_ = spent_ + kStepsBetweenClockChecks;
  if (std::chrono::steady_clock::now() < deadline_) return absl::OkStatus();
  return UsageError("passed the limit wall_ms of ", limits_.wall_ms);
}

absl::Status Budget::CheckText(size_t bytes) const {
  if (bytes <= limits_.output_bytes) return absl::OkStatus();
  return UsageError("passed the limit output_bytes of ", limits_.output_bytes);
}

absl::Status Budget::SpendText(size_t bytes) {
  const absl::Status status = CheckText(bytes);
  return status.ok() ? SpendScan(bytes) : status;
}

absl::Status Budget::CheckDepth(int depth) const {
  if (depth <= limits_.depth) return absl::OkStatus();
  return UsageError("passed the limit depth of ", limits_.depth);
}

absl::Status BudgetFrame::status() const {
  if (budget_.frames_ <= budget_.limits_.depth * Budget::kFramesPerDepth) return absl::OkStatus();
  return UsageError("passed the limit depth of ", budget_.limits_.depth);
}

}  // namespace pith::jinja
