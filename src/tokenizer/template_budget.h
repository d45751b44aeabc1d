// What one rendering may use: steps, recursion, text and time. Every passed limit is an error that names it.
//
// A step is one evaluated node, one iteration, one compared or copied element, or 64 bytes of text made or searched, so total work and
// memory are bounded by the steps alone; the clock is looked at every thousand steps. Not thread-safe; one per rendering.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "tokenizer/chat_template.h"

namespace pith::jinja {

class Budget {
 public:
  explicit Budget(const ChatTemplateLimits& limits);

  const ChatTemplateLimits& limits() const { return limits_; }
  int64_t steps_spent() const { return spent_; }

  absl::Status Spend(int64_t steps);
  // Checks the size of a text against output_bytes.
  absl::Status CheckText(size_t bytes) const;
  // Call before making a text of that many bytes: checks it, then spends its steps.
  absl::Status SpendText(size_t bytes);
  // Call before reading that many bytes (searching, comparing).
  absl::Status SpendScan(size_t bytes) { return Spend(1 + static_cast<int64_t>(bytes / kBytesPerStep)); }

  // Checks the nesting of a new container or macro call against `depth`.
  absl::Status CheckDepth(int depth) const;

 private:
  friend class BudgetFrame;
  static constexpr size_t kBytesPerStep = 64;
  // Evaluator frames one unit of `depth` may use: a macro call and the nested statements and expressions that lead to the next one.
  static constexpr int kFramesPerDepth = 16;

  absl::Status CheckClock();

  const ChatTemplateLimits limits_;
  const std::chrono::steady_clock::time_point deadline_;
  int64_t spent_ = 0;
  int64_t next_clock_check_ = 0;
  int frames_ = 0;
};

// One level of C++ recursion; check status() before going on.
class BudgetFrame {
 public:
  explicit BudgetFrame(Budget& budget) : budget_(budget) { ++budget_.frames_; }
  ~BudgetFrame() { --budget_.frames_; }
  BudgetFrame(const BudgetFrame&) = delete;
  BudgetFrame& operator=(const BudgetFrame&) = delete;
  absl::Status status() const;

 private:
  Budget& budget_;
};

}  // namespace pith::jinja
