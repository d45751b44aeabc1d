// Progress of long work on stderr: a bar with rate and ETA on a terminal, one plain line every ten seconds otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace pith {

// Whether reports are shown at all (--quiet turns them off for the process) and whether colour may be used (NO_COLOR, terminal).
void SetProgressEnabled(bool enabled);
bool ProgressEnabled();
bool StderrIsTerminal();
bool ColorAllowed();

// One bar. Not thread-safe. Finishes its line when destroyed.
class Progress {
 public:
  // label: "quantizing", shown with control characters escaped; unit: "layers". total <= 0: unknown, only a count is shown.
  Progress(absl::string_view label, int64_t total, absl::string_view unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Advance(int64_t by = 1) { Set(done_ + by); }
  void Set(int64_t done);
  void Finish();

 private:
  void Print(bool final);

  const std::string label_, unit_;
  const int64_t total_;
  const bool terminal_;
  int64_t done_ = 0;
  bool finished_ = false, printed_ = false;
  const std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_print_;
};

}  // namespace pith
