#include "server/prometheus.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace pith {
namespace {

// vLLM's buckets.
constexpr double kTtftBounds[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                                  1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
constexpr double kItlBounds[] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80};
constexpr double kLatencyBounds[] = {0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
constexpr double kTokenBounds[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};

std::string Number(double value) { return absl::StrFormat("%.17g", value); }

std::string Bound(double value) { return absl::StrFormat("%g", value); }

std::string Header(absl::string_view name, absl::string_view type, absl::string_view help) {
  return absl::StrCat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

const double kProcessStart = static_cast<double>(std::time(nullptr));

}  // namespace

std::string EscapeLabel(absl::string_view value) {
  std::string escaped;
  for (const char c : value) {
    if (c == '\\' || c == '"') escaped += '\\';
    if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

void Histogram::Observe(double value) {
  const std::lock_guard lock(mutex_);
  ++counts_[static_cast<size_t>(std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin())];
  sum_ += value;
  ++total_;
}

std::string Histogram::Text(absl::string_view name, absl::string_view labels) const {
  const std::lock_guard lock(mutex_);
  std::string text;
  int64_t cumulative = 0;
  for (size_t i = 0; i < bounds_.size(); ++i) {
    cumulative += counts_[i];
    absl::StrAppend(&text, name, "_bucket{", labels, ",le=\"", Bound(bounds_[i]), "\"} ", cumulative, "\n");
  }
  absl::StrAppend(&text, name, "_bucket{", labels, ",le=\"+Inf\"} ", total_, "\n");
  absl::StrAppend(&text, name, "_sum{", labels, "} ", Number(sum_), "\n", name, "_count{", labels, "} ", total_, "\n");
  return text;
}

ServerMetrics::ServerMetrics(absl::string_view model_name)
    : time_to_first_token_seconds(kTtftBounds),
      inter_token_latency_seconds(kItlBounds),
      e2e_request_latency_seconds(kLatencyBounds),
      request_prompt_tokens(kTokenBounds),
      request_generation_tokens(kTokenBounds),
      labels_(absl::StrCat("model_name=\"", EscapeLabel(model_name), "\"")) {
  for (const char* reason : {"stop", "length", "abort", "error"}) finished_[reason] = 0;
}

void ServerMetrics::CountFinished(absl::string_view finished_reason) {
  const std::lock_guard lock(mutex_);
  ++finished_[std::string(finished_reason)];
}

void ServerMetrics::CountResponse(absl::string_view route, int status) {
  const std::lock_guard lock(mutex_);
  ++responses_[{std::string(route), status}];
}

std::string ServerMetrics::Text(const EngineMetrics& engine) const {
  std::string text;
  const auto one = [&](absl::string_view name, absl::string_view type, absl::string_view help, double value) {
    absl::StrAppend(&text, Header(name, type, help), name, "{", labels_, "} ", Number(value), "\n");
  };
  const auto histogram = [&](absl::string_view name, absl::string_view help, const Histogram& h) {
    absl::StrAppend(&text, Header(name, "histogram", help), h.Text(name, labels_));
  };
  const double usage = engine.kv_blocks_total == 0
                           ? 0
                           : static_cast<double>(engine.kv_blocks_used) / static_cast<double>(engine.kv_blocks_total);
  one("vllm:num_requests_running", "gauge", "Requests in the running batch.", static_cast<double>(engine.num_requests_running));
  one("vllm:num_requests_waiting", "gauge", "Requests waiting to be scheduled.", static_cast<double>(engine.num_requests_waiting));
  one("vllm:kv_cache_usage_perc", "gauge", "Share of the KV cache blocks in use, 0 to 1.", usage);
  absl::StrAppend(&text, Header("vllm:cache_config_info", "gauge", "Configuration of the KV cache."), "vllm:cache_config_info{", labels_,
                  ",block_size=\"", engine.kv_block_size, "\",cache_dtype=\"", EscapeLabel(engine.kv_cache_dtype), "\",num_blocks=\"",
                  engine.kv_blocks_total, "\"} 1\n");
  one("vllm:num_preemptions_total", "counter", "Times a sequence was preempted.", static_cast<double>(engine.num_preemptions));
  one("vllm:prompt_tokens_total", "counter", "Prompt tokens processed.", static_cast<double>(engine.prompt_tokens));
  one("vllm:generation_tokens_total", "counter", "Tokens generated.", static_cast<double>(engine.generation_tokens));
  one("pith:engine_steps_total", "counter", "Forward passes of the engine.", static_cast<double>(engine.steps));
  {
    const std::lock_guard lock(mutex_);
    text += Header("vllm:request_success_total", "counter", "Finished requests by reason.");
    for (const auto& [reason, count] : finished_) {
      absl::StrAppend(&text, "vllm:request_success_total{", labels_, ",finished_reason=\"", EscapeLabel(reason), "\"} ", count, "\n");
    }
    text += Header("pith:http_responses_total", "counter", "HTTP responses by route and status.");
    for (const auto& [key, count] : responses_) {
      absl::StrAppend(&text, "pith:http_responses_total{route=\"", EscapeLabel(key.first), "\",status=\"", key.second, "\"} ", count, "\n");
    }
  }
  histogram("vllm:time_to_first_token_seconds", "From arrival to the first token.", time_to_first_token_seconds);
  histogram("vllm:inter_token_latency_seconds", "Between successive tokens of a request.", inter_token_latency_seconds);
  histogram("vllm:e2e_request_latency_seconds", "From arrival to the last token.", e2e_request_latency_seconds);
  histogram("vllm:request_prompt_tokens", "Prompt tokens per request.", request_prompt_tokens);
  histogram("vllm:request_generation_tokens", "Generated tokens per request.", request_generation_tokens);
  absl::StrAppend(&text, Header("process_resident_memory_bytes", "gauge", "Resident memory."), "process_resident_memory_bytes ",
                  ResidentBytes(), "\n");
  absl::StrAppend(&text, Header("process_start_time_seconds", "gauge", "Start of the process, Unix time."), "process_start_time_seconds ",
                  Number(kProcessStart), "\n");
  return text;
}

}  // namespace pith
