#include "compression/compression_report.h"

#include <cmath>

#include "quantization/reference.h"

namespace pith {

LayerReport MakeLayerReport(const std::string& name, MatrixView<const float> weight, const QuantizedTensor& quantized) {
  const ErrorStatistics error = CompareWeights(weight, quantized);
  return {.name = name,
          .out = quantized.out,
          .in = quantized.in,
          .group_size = quantized.group_size,
          .bits = quantized.bits,
          .relative_error = error.relative_error,
          .sqnr_db = error.sqnr_db,
          .max_abs_error = error.max_abs_error};
}

OrderedJson ToJson(const LayerReport& report) {
  return {{"name", report.name},
          {"shape", {report.out, report.in}},
          {"bits", report.bits},
          {"group_size", report.group_size},
          {"relative_error", report.relative_error},
          {"sqnr_db", std::isfinite(report.sqnr_db) ? OrderedJson(report.sqnr_db) : OrderedJson(nullptr)},
          {"max_abs_error", report.max_abs_error}};
}

OrderedJson ToJson(const CompressionReport& report) {
  OrderedJson layers = OrderedJson::array();
  for (const LayerReport& layer : report.layers) layers.push_back(ToJson(layer));
  return {{"group_size", report.group_size == 0 ? OrderedJson(nullptr) : OrderedJson(report.group_size)},
          {"input_bytes", report.input_bytes},
          {"output_bytes", report.output_bytes},
          {"quantized_weights", report.quantized_weights},
          {"kept_weights", report.kept_weights},
          {"seconds", report.seconds},
          {"layers", layers}};
}

}  // namespace pith
