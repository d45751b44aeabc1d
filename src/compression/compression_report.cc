#include "compression/compression_report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "quantization/reference.h"

namespace pith {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Infinite decibels have no number in JSON.
OrderedJson Decibels(double value) { return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr); }

absl::StatusOr<double> GetDecibels(const Json& object, absl::string_view key) {
  if (FindMember(object, key) == nullptr) return kInfinity;  // null, or absent
  return GetDouble(object, key, -kLargest, kLargest);
}

// Of a group size: null where scales are not per group.
OrderedJson OrNull(int group_size) { return group_size == 0 ? OrderedJson(nullptr) : OrderedJson(group_size); }

OrderedJson ErrorJson(const OutputError& error) {
  return {{"relative_error", error.relative}, {"sqnr_db", Decibels(error.sqnr_db)}, {"cosine", error.cosine}};
}

absl::StatusOr<OutputError> ParseError(const Json& json, absl::string_view key) {
  const Json* object = FindMember(json, key);
  if (object == nullptr || !object->is_object()) return BadFileError(key, ": expected an object");
  OutputError error;
  ASSIGN_OR_RETURN(error.relative, GetDouble(*object, "relative_error", 0, kLargest));
  ASSIGN_OR_RETURN(error.sqnr_db, GetDecibels(*object, "sqnr_db"));
  ASSIGN_OR_RETURN(error.cosine, GetDouble(*object, "cosine", -1.0, 1.0));
  return error;
}

absl::StatusOr<std::vector<std::string>> ParseNotes(const Json& json) {
  std::vector<std::string> texts;
  const Json* notes = FindMember(json, "notes");
  for (size_t i = 0; notes != nullptr && i < notes->size(); ++i) {
    if (!(*notes)[i].is_string()) return BadFileError("notes: expected strings");
    texts.push_back((*notes)[i].get<std::string>());
  }
  return texts;
}

constexpr std::pair<const char*, std::vector<float> KvScaleReport::*> kKvScaleLists[] = {{"key_max_abs", &KvScaleReport::key_max_abs},
                                                                                         {"value_max_abs", &KvScaleReport::value_max_abs},
                                                                                         {"key_scales", &KvScaleReport::key_scales},
                                                                                         {"value_scales", &KvScaleReport::value_scales}};

}  // namespace

void OutputErrorMeter::Add(absl::Span<const float> expected, absl::Span<const float> found) {
  CHECK_EQ(expected.size(), found.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const double e = expected[i], f = found[i];
    error_ += (f - e) * (f - e);
    expected_ += e * e;
    found_ += f * f;
    product_ += e * f;
  }
}

OutputError OutputErrorMeter::Get() const {
  if (!(expected_ > 0)) return {};
  OutputError error{.relative = std::sqrt(error_ / expected_), .sqnr_db = error_ > 0 ? 10 * std::log10(expected_ / error_) : kInfinity};
  error.cosine = found_ > 0 ? std::fmin(product_ / std::sqrt(expected_ * found_), 1.0) : 0.0;
  return error;
}

ResourceUse TotalUse(absl::Span<const PhaseUse> phases) {
  ResourceUse total;
  for (const PhaseUse& phase : phases) {
    total.seconds += phase.use.seconds;
    total.cpu_seconds += phase.use.cpu_seconds;
    total.peak_memory_bytes = std::max(total.peak_memory_bytes, phase.use.peak_memory_bytes);
  }
  return total;
}

std::vector<std::string> CompressionReport::Warnings() const {
  std::vector<std::string> warnings;
  for (const LayerReport& layer : layers) {
    for (const std::string& note : layer.notes) warnings.push_back(absl::StrCat(layer.name, ": ", note));
  }
  for (const KvScaleReport& scales : kv_scales) {
    for (const std::string& note : scales.notes) warnings.push_back(absl::StrCat(scales.name, ": ", note));
  }
  return warnings;
}

LayerReport MakeLayerReport(const std::string& name, MatrixView<const float> weight, const QuantizedTensor& quantized) {
  const ErrorStatistics error = CompareWeights(weight, quantized);
  return {.name = name,
          .out = quantized.out,
          .in = quantized.in,
          .group_size = quantized.group_size,
          .bits = quantized.bits,
          .relative_error = error.relative_error,
          .sqnr_db = error.sqnr_db,
          .max_abs_error = error.max_abs_error,
          .outlier_columns = quantized.outlier_column};
}

OrderedJson ToJson(const LayerReport& report) {
  OrderedJson json = {{"name", report.name},
                      {"shape", {report.out, report.in}},
                      {"bits", report.bits},
                      {"group_size", report.group_size},
                      {"relative_error", report.relative_error},
                      {"sqnr_db", Decibels(report.sqnr_db)},
                      {"max_abs_error", report.max_abs_error}};
  if (report.output_error_vs_rtn > 0) json["output_error_vs_rtn"] = report.output_error_vs_rtn;
  if (!report.outlier_columns.empty()) json["outlier_columns"] = report.outlier_columns;
  if (!report.notes.empty()) json["notes"] = report.notes;
  return json;
}

OrderedJson ToJson(const BlockReport& report) {
  return {{"layer", report.layer}, {"local", ErrorJson(report.local)}, {"accumulated", ErrorJson(report.accumulated)}};
}

OrderedJson ToJson(const ScaledInputReport& report) {
  return {{"input", report.input}, {"choice", report.choice}, {"error_ratio", report.error_ratio}};
}

OrderedJson ToJson(const RotationReport& report) {
  return {{"residual", report.options.residual},
          {"heads", report.options.heads},
          {"random_signs", report.options.random_signs},
          {"untied_head_bytes", report.untied_head_bytes}};
}

OrderedJson ToJson(const KvScaleReport& report) {
  OrderedJson json = {{"name", report.name}};
  for (const auto& [key, list] : kKvScaleLists) json[key] = report.*list;
  if (!report.notes.empty()) json["notes"] = report.notes;
  return json;
}

OrderedJson ToJson(const SensitivityReport& report) {
  return {{"modules", report.modules},         {"kl", report.kl},      {"scheme", report.scheme}, {"group_size", OrNull(report.group_size)},
          {"expected_kl", report.expected_kl}, {"bytes", report.bytes}};
}

OrderedJson ToJson(const ResourceUse& use) {
  return {{"seconds", use.seconds}, {"cpu_seconds", use.cpu_seconds}, {"peak_memory_bytes", use.peak_memory_bytes}};
}

OrderedJson ToJson(const PhaseUse& phase) {
  OrderedJson json = {{"name", phase.name}};
  json.update(ToJson(phase.use));
  return json;
}

OrderedJson ToJson(const CompressionReport& report, bool run) {
  OrderedJson json = {{"group_size", OrNull(report.group_size)},
                      {"input_bytes", report.input_bytes},
                      {"output_bytes", report.output_bytes},
                      {"quantized_weights", report.quantized_weights},
                      {"kept_weights", report.kept_weights}};
  if (run) {
    json["resumed_layers"] = report.resumed_layers;
    json.update(ToJson(TotalUse(report.phases)));
    json["phases"] = ToJson(report.phases);
  }
  json["warnings"] = report.Warnings();
  json["rotation"] = report.rotation.has_value() ? ToJson(*report.rotation) : OrderedJson(nullptr);
  json["blocks"] = ToJson(report.blocks);
  if (!report.sensitivities.empty()) json["sensitivities"] = ToJson(report.sensitivities);
  json["scaled_inputs"] = ToJson(report.scaled_inputs);
  json["kv_scales"] = ToJson(report.kv_scales);
  json["layers"] = ToJson(report.layers);
  return json;
}

absl::StatusOr<LayerReport> ParseLayerReport(const Json& json) {
  constexpr int64_t kMaxSize = int64_t{1} << 40;
  LayerReport report;
  ASSIGN_OR_RETURN(report.name, GetString(json, "name"));
  const Json* shape = FindMember(json, "shape");
  if (shape == nullptr || !shape->is_array() || shape->size() != 2 || !(*shape)[0].is_number_integer() ||
      !(*shape)[1].is_number_integer()) {
    return BadFileError("shape: expected two integers");
  }
  report.out = (*shape)[0].get<int64_t>();
  report.in = (*shape)[1].get<int64_t>();
  ASSIGN_OR_RETURN(const int64_t bits, GetInt(json, "bits", 1, 32));
  report.bits = static_cast<int>(bits);
  ASSIGN_OR_RETURN(report.group_size, GetInt(json, "group_size", 0, kMaxSize));
  ASSIGN_OR_RETURN(report.relative_error, GetDouble(json, "relative_error", 0, kLargest));
  ASSIGN_OR_RETURN(report.sqnr_db, GetDecibels(json, "sqnr_db"));
  ASSIGN_OR_RETURN(report.max_abs_error, GetDouble(json, "max_abs_error", 0, kLargest));
  ASSIGN_OR_RETURN(report.output_error_vs_rtn, GetDouble(json, "output_error_vs_rtn", 0, kLargest, 0.0));
  const Json* columns = FindMember(json, "outlier_columns");
  for (size_t i = 0; columns != nullptr && i < columns->size(); ++i) {
    if (!(*columns)[i].is_number_unsigned() || (*columns)[i] >= report.in) return BadFileError("outlier_columns: expected columns");
    report.outlier_columns.push_back((*columns)[i].get<int32_t>());
  }
  ASSIGN_OR_RETURN(report.notes, ParseNotes(json));
  return report;
}

absl::StatusOr<BlockReport> ParseBlockReport(const Json& json) {
  BlockReport report;
  ASSIGN_OR_RETURN(report.layer, GetInt(json, "layer", 0, int64_t{1} << 20));
  ASSIGN_OR_RETURN(report.local, ParseError(json, "local"));
  ASSIGN_OR_RETURN(report.accumulated, ParseError(json, "accumulated"));
  return report;
}

absl::StatusOr<ScaledInputReport> ParseScaledInputReport(const Json& json) {
  ScaledInputReport report;
  ASSIGN_OR_RETURN(report.input, GetString(json, "input"));
  ASSIGN_OR_RETURN(report.choice, GetString(json, "choice"));
  ASSIGN_OR_RETURN(report.error_ratio, GetDouble(json, "error_ratio", 0, kLargest));
  return report;
}

absl::StatusOr<KvScaleReport> ParseKvScaleReport(const Json& json) {
  KvScaleReport report;
  ASSIGN_OR_RETURN(report.name, GetString(json, "name"));
  for (const auto& [key, list] : kKvScaleLists) {
    const Json* values = FindMember(json, key);
    if (values == nullptr || !values->is_array()) return BadFileError(key, ": expected a list of numbers");
    for (const Json& value : *values) {
      if (!value.is_number()) return BadFileError(key, ": expected a list of numbers");
      (report.*list).push_back(value.get<float>());
    }
  }
  ASSIGN_OR_RETURN(report.notes, ParseNotes(json));
  return report;
}

}  // namespace pith
