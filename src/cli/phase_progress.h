// Progress of work that has phases: a bar for each.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/interrupt.h"
#include "base/progress.h"

namespace pith {

// Not thread-safe; must outlive the callbacks. Ctrl-C ends the work through them.
class PhaseProgress {
 public:
  std::function<absl::Status(absl::string_view phase, int64_t done, int64_t total)> callback(const char* unit) {
    return [this, unit](absl::string_view name, int64_t done, int64_t total) {
      if (phase_ != name) {
        End();
        phase_ = std::string(name);
        progress_.emplace(name, total, unit);
      }
      progress_->Set(done);
      return CheckInterrupted();
    };
  }
  void End() {
    progress_.reset();
    phase_.clear();
  }

 private:
  std::optional<Progress> progress_;
  std::string phase_;
};

}  // namespace pith
