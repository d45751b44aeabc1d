// What quantizing did to each layer and to the whole: kept in the manifest, printed, and returned by --json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "quantization/quantized_tensor.h"
#include "tensor/tensor.h"

namespace pith {

struct LayerReport {
  std::string name;
  int64_t out = 0, in = 0, group_size = 0;
  int bits = 0;
  double relative_error = 0;  // ||dequantized - weight|| / ||weight||
  double sqnr_db = 0;         // infinite when exact
  double max_abs_error = 0;
};

struct CompressionReport {
  std::vector<LayerReport> layers;
  int group_size = 0;                               // resolved; 0 when scales are per channel or tensor
  int64_t input_bytes = 0;                          // tensors of the source
  int64_t output_bytes = 0;                         // tensors of the artifact
  int64_t quantized_weights = 0, kept_weights = 0;  // elements
  double seconds = 0;
};

LayerReport MakeLayerReport(const std::string& name, MatrixView<const float> weight, const QuantizedTensor& quantized);

OrderedJson ToJson(const LayerReport& report);
OrderedJson ToJson(const CompressionReport& report);

}  // namespace pith
