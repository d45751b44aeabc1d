#include "base/progress.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"

namespace pith {
namespace {

std::atomic<bool> enabled{true};

std::string FormatSeconds(double seconds) {
  const int64_t s = std::llround(seconds);
  if (s < 60) return absl::StrFormat("%ds", s);
  if (s < 3600) return absl::StrFormat("%dm%02ds", s / 60, s % 60);
  return absl::StrFormat("%dh%02dm", s / 3600, s / 60 % 60);
}

std::string FormatRate(double rate) { return rate < 1000 ? absl::StrFormat("%.3g", rate) : absl::StrFormat("%.0f", rate); }

}  // namespace

void SetProgressEnabled(bool value) { enabled = value; }
bool ProgressEnabled() { return enabled; }
bool StderrIsTerminal() { return isatty(STDERR_FILENO) == 1; }
bool ColorAllowed() {
  const char* no_color = std::getenv("NO_COLOR");
  return StderrIsTerminal() && (no_color == nullptr || *no_color == '\0');
}

Progress::Progress(absl::string_view label, int64_t total, absl::string_view unit)
    : label_(Printable(label)),
      unit_(unit),
      total_(total),
      terminal_(StderrIsTerminal()),
      start_(std::chrono::steady_clock::now()),
      last_print_(start_) {}

Progress::~Progress() { Finish(); }

void Progress::Set(int64_t done) {
  done_ = done;
  if (!enabled || finished_) return;
  const auto now = std::chrono::steady_clock::now();
  const auto interval = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000);
  if (now - last_print_ < interval || (!terminal_ && done == total_)) return;  // Finish writes the last line
  last_print_ = now;
  Print(false);
}

void Progress::Finish() {
  if (finished_) return;
  finished_ = true;
  if (enabled && (printed_ || !terminal_)) Print(true);
}

void Progress::Print(bool final) {
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const double rate = elapsed > 0 ? static_cast<double>(done_) / elapsed : 0;
  std::string line;
  if (total_ > 0) {
    const double fraction = std::clamp(static_cast<double>(done_) / static_cast<double>(total_), 0.0, 1.0);
    constexpr int kWidth = 24;
    const int filled = static_cast<int>(fraction * kWidth);
    if (terminal_) line = absl::StrCat("[", std::string(filled, '#'), std::string(kWidth - filled, '.'), "] ");
    absl::StrAppend(&line, absl::StrFormat("%s %d/%d %s, %s/s", label_, done_, total_, unit_, FormatRate(rate)));
    if (!final && done_ > 0 && done_ <= total_ && rate > 0)
      absl::StrAppend(&line, ", ", FormatSeconds(static_cast<double>(total_ - done_) / rate), " left");
  } else {
    line = absl::StrFormat("%s %d %s, %s/s", label_, done_, unit_, FormatRate(rate));
  }
  if (final) absl::StrAppend(&line, ", ", FormatSeconds(elapsed));
  if (terminal_) {
    std::fprintf(stderr, "\r\033[K%s%s", line.c_str(), final ? "\n" : "");
  } else {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  std::fflush(stderr);
  printed_ = true;
}

}  // namespace pith
