#include "cli/bench_row.h"

#include <ctime>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/samples.h"
#include "cli/workload.h"

namespace pith {
namespace {

std::string HumanParams(int64_t params) {
  return params < 1'000'000'000 ? absl::StrFormat("%.2f M", static_cast<double>(params) / 1e6)
                                : absl::StrFormat("%.2f B", static_cast<double>(params) / 1e9);
}

// llama-bench quotes every value.
std::string CsvValue(const OrderedJson& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : value.is_null() ? "" : DumpJson(value);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string Csv(absl::Span<const BenchRow> rows, const BenchModel& model) {
  std::string header, text;
  for (const BenchRow& row : rows) {
    std::string line;
    header.clear();
    const OrderedJson json = ToJson(row, model);
    for (const auto& [key, value] : json.items()) {
      if (value.is_array()) continue;  // the samples
      absl::StrAppend(&header, header.empty() ? "" : ",", key);
      absl::StrAppend(&line, line.empty() ? "" : ",", CsvValue(value));
    }
    absl::StrAppend(&text, line, "\n");
  }
  return absl::StrCat(header, "\n", text);
}

std::string Markdown(absl::Span<const BenchRow> rows, const BenchModel& model) {
  std::string text =
      "| model | size | params | backend | threads | test | t/s | ms/pass | share of roofline | bound |\n"
      "|---|---:|---:|---|---:|---|---:|---:|---:|---|\n";
  for (const BenchRow& row : rows) {
    const OrderedJson json = ToJson(row, model);
    absl::StrAppendFormat(&text, "| %s | %s | %s | CPU | %d | %s | %.2f +- %.2f | %.3f | %.2f | %s |\n", model.type,
                          HumanBytes(model.file_bytes), HumanParams(model.num_params), row.limits.threads, row.test.Name(),
                          json["avg_ts"].get<double>(), json["stddev_ts"].get<double>(), row.pass_ms(), row.share(), row.bound());
  }
  return text;
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
  for (const double ns : row.samples_ns) speeds.push_back(1e9 * static_cast<double>(row.tokens_per_sample()) / ns);
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
          {"avg_ns", Mean(row.samples_ns)},
          {"stddev_ns", StandardDeviation(row.samples_ns)},
          {"avg_ts", Mean(speeds)},
          {"stddev_ts", StandardDeviation(speeds)},
          {"samples_ns", row.samples_ns},
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

std::string RenderRows(absl::Span<const BenchRow> rows, const BenchModel& model, const std::string& format) {
  if (format == "csv") return Csv(rows, model);
  if (format == "md") return Markdown(rows, model);
  OrderedJson list = OrderedJson::array();
  std::string lines;
  for (const BenchRow& row : rows) {
    list.push_back(ToJson(row, model));
    absl::StrAppend(&lines, DumpJson(list.back()), "\n");
  }
  return format == "jsonl" ? lines : DumpJson(list, 2) + "\n";
}

}  // namespace pith
