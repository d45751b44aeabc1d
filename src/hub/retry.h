// When to ask again after a failure, and how long to wait before: exponential back-off with jitter, or what the server asks for.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"

namespace pith {

struct RetryPolicy {
  int max_attempts = 6;  // in a row without progress
  double first_delay_s = 1, max_delay_s = 30;
  int64_t max_retry_after_s = 300;                    // a server that asks for more is not waited for
  std::function<absl::Status(double seconds)> sleep;  // for tests; empty: sleeps, and kCancelled on Ctrl-C
};

// The failures of one request. Not thread-safe.
class RetryState {
 public:
  // `cancel`: ends a wait when it becomes true; may be null.
  explicit RetryState(const RetryPolicy& policy, const std::atomic<bool>* cancel = nullptr) : policy_(policy), cancel_(cancel) {}

  // Something was received: the next failure counts as the first again.
  void Progress() { failures_ = 0; }
  // Waits, and returns OK to ask again; else the error to give up with: `failure` itself when it is no kUnavailable or was the last
  // attempt, kCancelled when the wait was ended.
  absl::Status WaitAfter(const absl::Status& failure, std::optional<int64_t> retry_after_s);

 private:
  const RetryPolicy& policy_;
  const std::atomic<bool>* cancel_;
  int failures_ = 0;
};

}  // namespace pith
