#include "cli/operator_profile.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "cli/command.h"
#include "cli/samples.h"

namespace pith {
namespace {

template <typename T> void AddOnce(std::vector<T>& list, const T& value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

// Refusals that name a reason other than an instruction set beyond the chosen one, or one that has no such row.
void AddFallbacks(absl::string_view kernels, absl::Span<const TensorDataPath> data_path, Isa isa, std::vector<std::string>& fallbacks) {
  for (const KernelRow& row : RowsOf(kernels)) {
    if (isa != Isa::kScalar && row.isa == KernelIsa::kScalar) AddOnce(fallbacks, absl::StrCat(row.name, ": scalar kernel"));
    for (const TensorDataPath& path : data_path) {
      if (path.kernel != row.name) continue;
      for (const std::string& refused : path.refused) {
        if (!absl::StrContains(refused, ": needs ") && !absl::StrContains(refused, ": no row for "))
          AddOnce(fallbacks, absl::StrCat(row.name, ", not ", refused));
      }
    }
  }
}

OperatorSummary* Find(std::vector<OperatorSummary>& summaries, absl::string_view name, int64_t layer) {
  for (OperatorSummary& summary : summaries) {
    if (summary.name == name && summary.layer == layer) return &summary;
  }
  return nullptr;
}

void AddRecord(const OperatorRecord& record, const MachineLimits& limits, OperatorSummary& summary) {
  ++summary.calls;
  summary.threads = record.threads;
  summary.work += record.work;
  summary.roofline += Roofline(record, limits);
  bool matrix_product = false;
  for (const KernelRow& row : RowsOf(record.kernel)) {
    summary.emulated = summary.emulated || row.emulated != nullptr;
    matrix_product = matrix_product || row.is_gemm;
  }
  summary.matrix_product = summary.matrix_product || matrix_product;
  // A multiply-add per row and weight: the weights are operations / (2 * rows), two bytes each.
  summary.bf16_weight_bytes += matrix_product ? record.work.operations / record.rows : record.work.weight_bytes;
  AddOnce(summary.kernels, record.kernel);
}

// How the products of a BF16 model would run: the best row for dense weights.
KernelMultiply TwinMultiply(Isa isa) {
  for (const GemmKernelEntry* row : AllGemmKernels()) {
    if (row->weight == GemmWeight::kBf16 && IsaIncludes(isa, static_cast<Isa>(row->isa))) return row->multiply;
  }
  return {};
}

const char* SourceName(TwinSource source) {
  switch (source) {
    case TwinSource::kNone: return "none";
    case TwinSource::kMeasured: return "measured";
    case TwinSource::kEstimated: return "estimated";
    case TwinSource::kIsBf16: return "is_bf16";
  }
  return "none";
}

double PerPassMs(double seconds, const PhaseSummary& summary) { return 1e3 * seconds / static_cast<double>(summary.passes); }
double GigaPerSecond(int64_t count, double seconds) { return seconds > 0 ? 1e-9 * static_cast<double>(count) / seconds : 0.0; }

std::string Line(const OperatorSummary& op, const PhaseSummary& summary, double total_seconds) {
  const bool has_roofline = op.work.operations > 0;
  const std::string name = op.layer < 0 ? op.name : absl::StrCat(op.name, " ", op.layer);
  std::string flags;
  if (!op.fallbacks.empty()) flags += " fallback";
  if (op.emulated) flags += " emulated";
  return absl::StrFormat("%-14s %6d %9.3f %6.1f %9.3f %7.1f %8.1f %9s %11s %9s  %s%s\n", name, op.calls / summary.passes,
                         PerPassMs(op.seconds, summary), 100 * op.seconds / total_seconds,
                         1e-6 * static_cast<double>(op.work.bytes()) / static_cast<double>(summary.passes),
                         GigaPerSecond(op.work.bytes(), op.seconds), GigaPerSecond(op.work.operations, op.seconds),
                         has_roofline ? absl::StrFormat("%.2f", op.roofline_share()) : "-",
                         op.matrix_product ? absl::StrFormat("%.3f", PerPassMs(op.conversion_seconds(), summary)) : "-",
                         op.bf16_seconds > 0 ? absl::StrFormat("%.3f", PerPassMs(op.bf16_seconds, summary)) : "-", op.kernel(), flags);
}

}  // namespace

std::string OperatorSummary::kernel() const { return absl::StrJoin(kernels, " "); }

OperatorSummary PhaseSummary::Total() const {
  OperatorSummary total;
  total.name = "total";
  for (const OperatorSummary& op : operators) {
    total.calls += op.calls;
    total.threads = op.threads;
    total.seconds += op.seconds;
    total.work += op.work;
    total.roofline += op.roofline;
    total.bf16_weight_bytes += op.bf16_weight_bytes;
    total.bf16_seconds += op.bf16_seconds;
  }
  return total;
}

PhaseSummary Summarize(const PhaseRounds& rounds, bool by_layer, const MachineLimits& limits, absl::Span<const TensorDataPath> data_path,
                       Isa isa) {
  CHECK(!rounds.rounds.empty());
  PhaseSummary summary{.phase = rounds.phase, .passes = rounds.passes, .rows_per_pass = rounds.rows_per_pass};
  for (const OperatorRecord& record : rounds.rounds[0]) {
    const int64_t layer = by_layer ? record.layer : -1;
    OperatorSummary* op = Find(summary.operators, record.name, layer);
    if (op == nullptr) op = &summary.operators.emplace_back(OperatorSummary{.name = record.name, .layer = layer});
    AddRecord(record, limits, *op);
  }
  for (OperatorSummary& op : summary.operators) {
    std::vector<double> seconds;
    for (const std::vector<OperatorRecord>& round : rounds.rounds) {
      int64_t ns = 0;
      for (const OperatorRecord& record : round) {
        if (op.name == record.name && (!by_layer || op.layer == record.layer)) ns += record.duration_ns();
      }
      seconds.push_back(1e-9 * static_cast<double>(ns));
    }
    op.seconds = Median(seconds);
    for (const std::string& kernel : op.kernels) AddFallbacks(kernel, data_path, isa, op.fallbacks);
  }
  return summary;
}

void AddMeasuredTwin(const PhaseSummary& twin, PhaseSummary& summary) {
  CHECK_EQ(twin.operators.size(), summary.operators.size());
  for (size_t i = 0; i < summary.operators.size(); ++i) {
    CHECK(twin.operators[i].name == summary.operators[i].name);
    summary.operators[i].bf16_seconds = twin.operators[i].seconds;
  }
  summary.source = TwinSource::kMeasured;
}

void AddEstimatedTwin(const MachineLimits& limits, Isa isa, PhaseSummary& summary) {
  const KernelMultiply multiply = TwinMultiply(isa);
  const double peak = limits.gops(multiply.limit) / multiply.passes;
  for (OperatorSummary& op : summary.operators) {
    op.bf16_seconds = op.seconds;
    if (!op.matrix_product || op.roofline_share() <= 0) continue;
    const double read_seconds = 1e-9 * static_cast<double>(op.bf16_streamed_bytes()) / limits.read_gb_per_s;
    const double multiply_seconds = peak > 0 ? 1e-9 * static_cast<double>(op.work.operations) / peak : 0.0;
    op.bf16_seconds = std::max(read_seconds, multiply_seconds) / std::min(1.0, op.roofline_share());
  }
  summary.source = TwinSource::kEstimated;
}

std::string PhaseTable(const PhaseSummary& summary) {
  const OperatorSummary total = summary.Total();
  std::string text = absl::StrFormat(
      "%s: %s of %s with %s, %.3f ms per pass\n", summary.phase, absl::StrCat(summary.passes, summary.passes == 1 ? " pass" : " passes"),
      Plural(summary.rows_per_pass, "row"), Plural(total.threads, "thread"), PerPassMs(total.seconds, summary));
  absl::StrAppendFormat(&text, "%-14s %6s %9s %6s %9s %7s %8s %9s %11s %9s  %s\n", "operator", "calls", "ms/pass", "time %", "MB/pass",
                        "GB/s", "GOP/s", "roofline", "conversion", "bf16 ms", "kernel");
  for (const OperatorSummary& op : summary.operators) text += Line(op, summary, total.seconds);
  text += Line(total, summary, total.seconds);
  std::vector<std::string> fallbacks;
  for (const OperatorSummary& op : summary.operators) {
    for (const std::string& reason : op.fallbacks) AddOnce(fallbacks, absl::StrCat("  ", op.name, ": ", reason, "\n"));
  }
  if (!fallbacks.empty()) absl::StrAppend(&text, "fallback kernels:\n", absl::StrJoin(fallbacks, ""));
  return text;
}

std::string SavingsSentence(const PhaseSummary& summary, const MachineLimits& limits) {
  if (summary.source == TwinSource::kNone) return "";
  if (summary.source == TwinSource::kIsBf16)
    return absl::StrCat(summary.phase, ": the weights are BF16, so there is nothing saved to compare.\n");
  const OperatorSummary total = summary.Total();
  const double passes = static_cast<double>(summary.passes);
  const double bytes = static_cast<double>(total.streamed_bytes()) / passes,
               bf16_bytes = static_cast<double>(total.bf16_streamed_bytes()) / passes;
  const double ms = PerPassMs(total.seconds, summary), bf16_ms = PerPassMs(total.bf16_seconds, summary);
  const double worth_ms = 1e-6 * (bf16_bytes - bytes) / limits.read_gb_per_s;
  const std::string fewer = absl::StrFormat("%s: %s per pass instead of %s in BF16 (%.2fx fewer bytes), %.2f ms", summary.phase,
                                            HumanBytes(static_cast<int64_t>(bytes)), HumanBytes(static_cast<int64_t>(bf16_bytes)),
                                            bf16_bytes / bytes, ms);
  if (summary.source == TwinSource::kEstimated) {  // an assumption is no evidence that time was saved
    return absl::StrFormat("%s; BF16 was not measured: at the same share of its limits it would take %.2f ms.\n", fewer, bf16_ms);
  }
  const std::string head = absl::StrFormat("%s instead of %.2f ms (%.2fx as fast, %s): ", fewer, bf16_ms, bf16_ms / ms,
                                           SourceName(summary.source));
  const std::string saved = HumanBytes(static_cast<int64_t>(bf16_bytes - bytes));
  if (bf16_ms <= ms) return absl::StrFormat("%s%s saved became no time, %.2f ms were lost.\n", head, saved, ms - bf16_ms);
  if (total.roofline.multiply_seconds > total.roofline.read_seconds) {
    return absl::StrFormat("%s%s saved, and %.2f ms; the pass is bound by compute, not by bytes.\n", head, saved, bf16_ms - ms);
  }
  if (bf16_ms - ms > worth_ms) {
    return absl::StrFormat("%s%s saved became %.2f ms saved, more than the %.2f ms that reading them takes at %.1f GB/s.\n", head, saved,
                           bf16_ms - ms, worth_ms, limits.read_gb_per_s);
  }
  return absl::StrFormat("%s%s saved became %.2f ms saved, %.0f %% of the %.2f ms that reading them takes at %.1f GB/s.\n", head, saved,
                         bf16_ms - ms, 100 * (bf16_ms - ms) / worth_ms, worth_ms, limits.read_gb_per_s);
}

namespace {

OrderedJson ToJson(const OperatorSummary& op, const PhaseSummary& summary, double total_seconds) {
  OrderedJson json = {{"name", op.name}};
  if (op.layer >= 0) json["layer"] = op.layer;
  json.update({{"calls", op.calls},
               {"threads", op.threads},
               {"seconds", op.seconds},
               {"time_share", op.seconds / total_seconds},
               {"weight_bytes", op.work.weight_bytes},
               {"activation_bytes", op.work.activation_bytes},
               {"kv_bytes", op.work.kv_bytes},
               {"operations", op.work.operations},
               {"gb_per_s", GigaPerSecond(op.work.bytes(), op.seconds)},
               {"gop_per_s", GigaPerSecond(op.work.operations, op.seconds)},
               {"roofline_seconds", op.roofline.seconds()},
               {"roofline_share", op.roofline_share()},
               {"bound", op.roofline.read_seconds >= op.roofline.multiply_seconds ? "memory" : "compute"},
               {"conversion_seconds", op.matrix_product ? OrderedJson(op.conversion_seconds()) : OrderedJson(nullptr)},
               {"kernel", op.kernel()},
               {"emulated", op.emulated},
               {"fallbacks", op.fallbacks}});
  if (summary.source == TwinSource::kMeasured || summary.source == TwinSource::kEstimated) {
    json["bf16"] = {{"seconds", op.bf16_seconds}, {"weight_bytes", op.bf16_weight_bytes}};
  }
  return json;
}

}  // namespace

OrderedJson ToJson(const PhaseSummary& summary, const MachineLimits& limits) {
  const OperatorSummary total = summary.Total();
  OrderedJson operators = OrderedJson::array();
  for (const OperatorSummary& op : summary.operators) operators.push_back(ToJson(op, summary, total.seconds));
  OrderedJson json = {{"phase", summary.phase},
                      {"passes", summary.passes},
                      {"rows_per_pass", summary.rows_per_pass},
                      {"total", ToJson(total, summary, total.seconds)},
                      {"operators", operators},
                      {"bf16_source", SourceName(summary.source)}};
  if (summary.source == TwinSource::kMeasured || summary.source == TwinSource::kEstimated) {
    json["bytes_saved_per_pass"] = (total.bf16_streamed_bytes() - total.streamed_bytes()) / summary.passes;
    json["seconds_saved_per_pass"] = (total.bf16_seconds - total.seconds) / static_cast<double>(summary.passes);
    json["byte_ratio"] = static_cast<double>(total.bf16_streamed_bytes()) / static_cast<double>(total.streamed_bytes());
    json["time_ratio"] = total.bf16_seconds / total.seconds;
  }
  json["sentence"] = SavingsSentence(summary, limits);
  return json;
}

}  // namespace pith
