#include "cli/bench_row.h"

#include <cmath>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/samples.h"
#include "cli/workload.h"

namespace pith {
namespace {

std::string HumanParams(int64_t params) {
  return params < 1'000'000'000 ? absl::StrFormat("%.2f M", static_cast<double>(params) / 1e6)
                                : absl::StrFormat("%.2f B", static_cast<double>(params) / 1e9);
}

constexpr size_t kMaxTextBytes = 4000;  // of a name: a path and more

// Nanoseconds as llama-bench has them.
int64_t Whole(double ns) { return std::llround(ns); }

// llama-bench quotes every value.
std::string CsvValue(const OrderedJson& value) {
  const std::string text = value.is_string() ? Printable(value.get<std::string>(), kMaxTextBytes) : value.is_null() ? "" : DumpJson(value);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string CsvRow(const OrderedJson& json, bool first) {
  std::vector<std::string> keys, values;
  for (const auto& [key, value] : json.items()) {
    if (value.is_array()) continue;  // the samples
    keys.push_back(key);
    values.push_back(CsvValue(value));
  }
  return absl::StrCat(first ? absl::StrCat(absl::StrJoin(keys, ","), "\n") : "", absl::StrJoin(values, ","), "\n");
}

std::string MarkdownText(absl::string_view text) { return absl::StrReplaceAll(Printable(text, kMaxTextBytes), {{"|", "\\|"}}); }

std::string MarkdownRow(const BenchRow& row, const BenchModel& model, const OrderedJson& json, bool first) {
  constexpr absl::string_view kHead =
      "| model | size | params | backend | threads | test | t/s | ms/pass | share of roofline | bound |\n"
      "|---|---:|---:|---|---:|---|---:|---:|---:|---|\n";
  return absl::StrCat(
      first ? kHead : "",
      absl::StrFormat("| %s | %s | %s | CPU | %d | %s | %.2f +- %.2f | %.3f | %.2f | %s |\n", MarkdownText(model.type),
                      HumanBytes(model.file_bytes), HumanParams(model.num_params), row.limits.threads, row.test.Name(),
                      json["avg_ts"].get<double>(), json["stddev_ts"].get<double>(), row.pass_ms(), row.share(), row.bound()));
}

}  // namespace

std::string BenchTest::Name() const {
  const char* const kPrefix[] = {"pp", "tg", "verify"};
  std::string name = absl::StrCat(kPrefix[static_cast<int>(kind)], tokens);
  if (batch > 1) absl::StrAppend(&name, " b", batch);
  if (depth > 0) absl::StrAppend(&name, " @ d", depth);
  return name;
}

RooflineTime BenchRow::roofline() const {
  const auto runs = static_cast<double>(passes_per_sample);
  return {.read_seconds = runs * run_roofline.read_seconds, .multiply_seconds = runs * run_roofline.multiply_seconds};
}
double BenchRow::median_ns() const { return Median(samples_ns); }
double BenchRow::tokens_per_second() const { return 1e9 * static_cast<double>(tokens_per_sample()) / median_ns(); }
double BenchRow::share() const { return 1e9 * roofline().seconds() / median_ns(); }
double BenchRow::pass_ms() const {
  const int64_t passes = test.kind == BenchKind::kDecode ? test.tokens : passes_per_sample;
  return 1e-6 * median_ns() / static_cast<double>(passes);
}

std::string UtcTime() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

OrderedJson ToJson(const BenchRow& row, const BenchModel& model) {
  std::vector<double> speeds;
  std::vector<int64_t> samples;
  for (const double ns : row.samples_ns) {
    samples.push_back(Whole(ns));
    speeds.push_back(1e9 * static_cast<double>(row.tokens_per_sample()) / ns);
  }
  const bool decode = row.test.kind == BenchKind::kDecode;
  return {{"build_commit", model.build_commit},
          {"build_number", 0},
          {"cpu_info", model.cpu},
          {"gpu_info", ""},
          {"backends", "CPU"},
          {"model_filename", model.filename},
          {"model_type", model.type},
          {"model_size", model.file_bytes},
          {"model_n_params", model.num_params},
          {"n_batch", Workload::kMaxPassRows},
          {"n_ubatch", Workload::kMaxPassRows},
          {"n_threads", row.limits.threads},
          {"type_k", model.kv_cache},
          {"type_v", model.kv_cache},
          {"n_gpu_layers", 0},
          {"n_prompt", decode ? 0 : row.test.tokens},
          {"n_gen", decode ? row.test.tokens : 0},
          {"n_depth", row.test.depth},
          {"test_time", row.test_time},
          {"avg_ns", Whole(Mean(row.samples_ns))},
          {"stddev_ns", Whole(StandardDeviation(row.samples_ns))},
          {"avg_ts", Mean(speeds)},
          {"stddev_ts", StandardDeviation(speeds)},
          {"samples_ns", samples},
          {"samples_ts", speeds},
          // Beyond llama-bench:
          {"test", row.test.Name()},
          {"batch", row.test.batch},
          {"verify", row.test.kind == BenchKind::kVerify},
          {"data_path", model.data_path},
          {"resident_weight_bytes", model.resident_bytes},
          {"median_ts", row.tokens_per_second()},
          {"pass_ms", row.pass_ms()},
          {"roofline_share", row.share()},
          {"bound", row.bound()},
          {"read_gb_per_s", row.limits.read_gb_per_s}};
}

std::string RowRenderer::Row(const BenchRow& row, const BenchModel& model) {
  const bool first = !begun_;
  begun_ = true;
  const OrderedJson json = ToJson(row, model);
  if (format_ == "csv") return CsvRow(json, first);
  if (format_ == "md") return MarkdownRow(row, model, json, first);
  if (format_ == "jsonl") return absl::StrCat(DumpJson(json), "\n");
  return absl::StrCat(first ? "[" : ",", "\n  ", absl::StrReplaceAll(DumpJson(json, 2), {{"\n", "\n  "}}));
}

std::string RowRenderer::End() {
  const bool array = begun_ && format_ == "json";
  begun_ = false;
  return array ? "\n]\n" : "";
}

}  // namespace pith
