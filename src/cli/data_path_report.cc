#include "cli/data_path_report.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "cli/command.h"

namespace pith {
namespace {

// "model.layers.12.mlp.down_proj" -> "layers.*.mlp.down_proj": what tensors of one kind have in common.
std::string KindOf(absl::string_view name) {
  std::vector<std::string> parts = absl::StrSplit(name, '.');
  if (parts.size() > 1 && parts[0] == "model") parts.erase(parts.begin());
  for (std::string& part : parts) {
    if (!part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return absl::ascii_isdigit(c); })) part = "*";
  }
  return absl::StrJoin(parts, ".");
}

struct Row {
  std::string kind;
  TensorDataPath path;
  int64_t count = 0, stored_bytes = 0, resident_bytes = 0, weights = 0;
  size_t least_outliers = 0, most_outliers = 0;  // columns of a tensor
};

// Whether one line can stand for both: everything it shows is the same, but what it sums or gives a range of (bits, outlier columns).
bool SamePath(const TensorDataPath& a, const TensorDataPath& b) {
  const auto shown = [](const TensorDataPath& p) {
    return std::tie(p.out, p.in, p.packing, p.scheme, p.scale_dtype, p.group_size, p.activation, p.accumulator, p.output, p.kernel,
                    p.emulated, p.refused, p.tied_to);
  };
  return shown(a) == shown(b);
}

std::vector<Row> GroupRows(absl::Span<const TensorDataPath> paths, bool all) {
  std::vector<Row> rows;
  for (const TensorDataPath& path : paths) {
    const std::string kind = all ? path.name : KindOf(path.name);
    Row* row = nullptr;
    for (Row& candidate : rows) {
      if (candidate.kind == kind && SamePath(candidate.path, path)) row = &candidate;
    }
    const size_t outliers = path.outlier_columns.size();
    if (row == nullptr) row = &rows.emplace_back(Row{.kind = kind, .path = path, .least_outliers = outliers});
    row->least_outliers = std::min(row->least_outliers, outliers);
    row->most_outliers = std::max(row->most_outliers, outliers);
    ++row->count;
    row->stored_bytes += path.stored_bytes;
    row->resident_bytes += path.resident_bytes;
    row->weights += path.out * path.in;
  }
  return rows;
}

// ", 3 to 41 outlier columns"; empty where no tensor has any.
std::string OutlierText(const Row& row) {
  if (row.most_outliers == 0) return "";
  const std::string least = row.least_outliers < row.most_outliers ? absl::StrCat(row.least_outliers, " to ") : "";
  return absl::StrCat(", ", least, Plural(static_cast<int64_t>(row.most_outliers), "outlier column"));
}

// Of a column that holds the field of every path.
int Width(absl::Span<const TensorDataPath> paths, std::string TensorDataPath::*field, size_t least) {
  for (const TensorDataPath& path : paths) least = std::max(least, (path.*field).size());
  return static_cast<int>(least);
}

constexpr int64_t kWorkspaceRows = 512;  // the largest pass of the engine with its defaults

// The last rows that fit a prompt into the context, and the logits of the last one.
ForwardBatch LastPassOfAPrompt(int64_t max_position_embeddings) {
  const int64_t rows = std::min(kWorkspaceRows, max_position_embeddings);
  return {.token_ids = std::vector<int32_t>(static_cast<size_t>(rows)),
          .sequences = {{.num_rows = rows, .first_position = max_position_embeddings - rows}},
          .logits_rows = {static_cast<int32_t>(rows - 1)}};
}

constexpr std::pair<const char*, int64_t WeightBytes::*> kParts[] = {{"attention", &WeightBytes::attention},
                                                                     {"mlp", &WeightBytes::mlp},
                                                                     {"embedding", &WeightBytes::embedding},
                                                                     {"lm_head", &WeightBytes::lm_head},
                                                                     {"norms", &WeightBytes::norms}};

OrderedJson ToJson(const WeightBytes& bytes) {
  OrderedJson json;
  for (const auto& [name, part] : kParts) json[name] = bytes.*part;
  json["total"] = bytes.total();
  return json;
}

}  // namespace

absl::StatusOr<MemoryReport> MakeMemoryReport(const ArtifactReader& reader, const DecoderModel& model, const ComputeContext& context) {
  MemoryReport report;
  for (const TensorInfo& tensor : reader.Tensors()) report.file_bytes += tensor.stored_bytes;
  for (const TensorDataPath& path : model.data_path()) {
    if (path.tied_to.empty()) report.bf16_weight_bytes += 2 * path.out * path.in;  // a tied head is the embedding once more
  }
  ASSIGN_OR_RETURN(report.stored, StoredWeightBytes(reader));
  report.resident = CountWeightBytes(model.data_path(), model.resident_weight_bytes());
  for (int dtype = 0; dtype < kNumKvDtypes; ++dtype) {
    report.kv_bytes_per_token[static_cast<size_t>(dtype)] = model.KvSpecAs(static_cast<KvDtype>(dtype), 1).bytes_per_token();
  }
  report.max_position_embeddings = model.config().max_position_embeddings;
  const ForwardBatch pass = LastPassOfAPrompt(report.max_position_embeddings);
  report.workspace_rows = pass.num_rows();
  ASSIGN_OR_RETURN(report.workspace_bytes, ForecastWorkspaceBytes(reader, context, pass));
  return report;
}

std::string DataPathTable(absl::Span<const TensorDataPath> paths, bool all) {
  const int packing = Width(paths, &TensorDataPath::packing, 14), activation = Width(paths, &TensorDataPath::activation, 13);
  std::string text = absl::StrFormat("%-36s %5s %13s %-*s %6s %6s %5s %-*s %-27s %-6s %s\n", "tensor", "count", "shape", packing, "packing",
                                     "bits", "scale", "group", activation, "activation", "accumulator", "output", "kernel");
  std::vector<std::pair<std::string, std::string>> refusals;  // the reason, and the kinds it holds for
  for (const Row& row : GroupRows(paths, all)) {
    const TensorDataPath& path = row.path;
    const std::string bits = path.tied_to.empty()
                                 ? absl::StrFormat("%.3f", 8.0 * static_cast<double>(row.stored_bytes) / static_cast<double>(row.weights))
                                 : "tied";
    absl::StrAppendFormat(&text, "%-36s %5d %13s %-*s %6s %6s %5s %-*s %-27s %-6s %s%s\n", row.kind, row.count,
                          absl::StrCat(path.out, "x", path.in), packing, path.packing, bits,
                          path.scale_dtype.empty() ? "-" : path.scale_dtype, path.group_size == 0 ? "-" : absl::StrCat(path.group_size),
                          activation, path.activation.empty() ? "-" : path.activation, path.accumulator.empty() ? "-" : path.accumulator,
                          path.output, path.kernel,
                          absl::StrCat(OutlierText(row), path.emulated.empty() ? "" : absl::StrCat(" (emulated: ", path.emulated, ")"),
                                       path.tied_to.empty() ? "" : absl::StrCat(", tied to ", path.tied_to)));
    for (const std::string& refused : path.refused) {
      const auto found = std::find_if(refusals.begin(), refusals.end(), [&](const auto& entry) { return entry.first == refused; });
      if (found == refusals.end()) {
        refusals.emplace_back(refused, row.kind);
      } else {
        absl::StrAppend(&found->second, ", ", row.kind);
      }
    }
  }
  if (!refusals.empty()) absl::StrAppend(&text, "why no better kernel:\n");
  for (const auto& [reason, kinds] : refusals) absl::StrAppend(&text, "  ", reason, " (", kinds, ")\n");
  return text;
}

std::string MemoryTable(const MemoryReport& report) {
  std::string text = absl::StrFormat("\n%-10s %12s %12s %12s\n", "weights", "stored", "forecast", "resident");
  for (const auto& [name, part] : kParts) {
    const std::string stored = report.stored.*part == 0 && report.resident.*part > 0 ? "tied" : HumanBytes(report.stored.*part);
    absl::StrAppendFormat(&text, "%-10s %12s %12s %12s\n", name, stored, HumanBytes(report.forecast.*part),
                          HumanBytes(report.resident.*part));
  }
  const double ratio = static_cast<double>(report.bf16_weight_bytes) / static_cast<double>(std::max<int64_t>(1, report.resident.total()));
  absl::StrAppendFormat(&text, "%-10s %12s %12s %12s (%.2fx smaller than bf16)\n", "total", HumanBytes(report.stored.total()),
                        HumanBytes(report.forecast.total()), HumanBytes(report.resident.total()), ratio);
  absl::StrAppendFormat(&text,
                        "file: %s of tensors; process: grew by %s while loading\n"
                        "workspace: %s for passes of %d rows\n",
                        HumanBytes(report.file_bytes), HumanBytes(report.process_bytes), HumanBytes(report.workspace_bytes),
                        report.workspace_rows);
  for (int dtype = 0; dtype < kNumKvDtypes; ++dtype) {
    const int64_t bytes = report.kv_bytes_per_token[static_cast<size_t>(dtype)];
    absl::StrAppendFormat(&text, "%s%s per token in %s (%s at %d tokens)", dtype == 0 ? "KV cache: " : ", ", HumanBytes(bytes),
                          KvDtypeName(static_cast<KvDtype>(dtype)), HumanBytes(bytes * report.max_position_embeddings),
                          report.max_position_embeddings);
  }
  return text + "\n";
}

OrderedJson ToJson(const TensorDataPath& path) {
  const auto text = [](const std::string& field) { return field.empty() ? OrderedJson(nullptr) : OrderedJson(field); };
  return {{"name", path.name},
          {"shape", {path.out, path.in}},
          {"scheme", text(path.scheme)},
          {"stored_bits", path.stored_bits},
          {"scale_dtype", text(path.scale_dtype)},
          {"group_size", path.group_size == 0 ? OrderedJson(nullptr) : OrderedJson(path.group_size)},
          {"packing", path.packing},
          {"activation", text(path.activation)},
          {"outlier_columns", path.outlier_columns},
          {"accumulator", text(path.accumulator)},
          {"output", path.output},
          {"kernel", path.kernel},
          {"isa", path.isa},
          {"emulated", text(path.emulated)},
          {"refused", path.refused},
          {"tied_to", text(path.tied_to)},
          {"stored_bytes", path.stored_bytes},
          {"resident_bytes", path.resident_bytes}};
}

OrderedJson ToJson(const MemoryReport& report) {
  OrderedJson kv_bytes_per_token;
  for (int dtype = 0; dtype < kNumKvDtypes; ++dtype) {
    kv_bytes_per_token[std::string(KvDtypeName(static_cast<KvDtype>(dtype)))] = report.kv_bytes_per_token[static_cast<size_t>(dtype)];
  }
  return {{"file_bytes", report.file_bytes},
          {"resident_weight_bytes", report.resident.total()},
          {"bf16_weight_bytes", report.bf16_weight_bytes},
          {"stored", ToJson(report.stored)},
          {"forecast", ToJson(report.forecast)},
          {"actual", ToJson(report.resident)},
          {"process_bytes", report.process_bytes > 0 ? OrderedJson(report.process_bytes) : OrderedJson(nullptr)},
          {"kv_bytes_per_token", kv_bytes_per_token},
          {"max_position_embeddings", report.max_position_embeddings},
          {"workspace", {{"rows", report.workspace_rows}, {"bytes", report.workspace_bytes}}}};
}

}  // namespace pith
