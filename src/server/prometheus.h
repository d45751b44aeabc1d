// Metrics in Prometheus text format 0.0.4, with vLLM's names where it has one, so that its dashboards work.
// Counters only grow; histograms count what lies at or below each bound. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/metrics.h"

namespace pith {

class Histogram {
 public:
  explicit Histogram(absl::Span<const double> bounds) : bounds_(bounds.begin(), bounds.end()), counts_(bounds.size() + 1, 0) {}
  void Observe(double value);
  // Lines of one histogram; `labels` is the inside of the braces.
  std::string Text(absl::string_view name, absl::string_view labels) const;

 private:
  mutable std::mutex mutex_;
  const std::vector<double> bounds_;
  std::vector<int64_t> counts_;  // per bucket, not cumulative; the last is above every bound
  double sum_ = 0;
  int64_t total_ = 0;
};

class ServerMetrics {
 public:
  explicit ServerMetrics(absl::string_view model_name);

  Histogram time_to_first_token_seconds, inter_token_latency_seconds, e2e_request_latency_seconds, request_prompt_tokens,
      request_generation_tokens;

  void CountFinished(absl::string_view finished_reason);  // stop, length, abort, error
  void CountResponse(absl::string_view route, int status);

  // The whole page. `engine` is a snapshot.
  std::string Text(const EngineMetrics& engine) const;

 private:
  const std::string labels_;  // model_name="..."
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> finished_;
  std::map<std::pair<std::string, int>, int64_t> responses_;
};

// A label value with \ " and newline escaped.
std::string EscapeLabel(absl::string_view value);

}  // namespace pith
