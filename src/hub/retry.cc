#include "hub/retry.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "base/interrupt.h"
#include "base/log.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr double kNotedDelaySeconds = 4;  // a wait that a user would wonder about

absl::Status SleepFor(double seconds, const std::atomic<bool>* cancel) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    RETURN_IF_ERROR(CheckInterrupted());
    if (cancel != nullptr && cancel->load()) return CancelledError("interrupted");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return absl::OkStatus();
}

// Half to all of the delay, so that many clients that failed together do not come back together.
double WithJitter(double seconds) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return seconds * std::uniform_real_distribution<double>(0.5, 1.0)(random);
}

}  // namespace

absl::Status RetryState::WaitAfter(const absl::Status& failure, std::optional<int64_t> retry_after_s) {
  if (!absl::IsUnavailable(failure)) return failure;
  ++failures_;
  if (failures_ >= policy_.max_attempts) return UnavailableError(failure.message(), " (", failures_, " attempts)");
  double delay_s = WithJitter(std::min(policy_.first_delay_s * static_cast<double>(1 << std::min(failures_ - 1, 20)), policy_.max_delay_s));
  if (retry_after_s.has_value()) {
    if (*retry_after_s > policy_.max_retry_after_s) {
      return UnavailableError(failure.message(), "; it asks to wait ", *retry_after_s, " s: try again then");
    }
    delay_s = static_cast<double>(*retry_after_s);
  }
  const auto level = delay_s < kNotedDelaySeconds ? spdlog::level::info : spdlog::level::warn;
  spdlog::log(level, "{}; next attempt in {:.1f} s", std::string(failure.message()), delay_s);
  return policy_.sleep ? policy_.sleep(delay_s) : SleepFor(delay_s, cancel_);
}

}  // namespace pith
