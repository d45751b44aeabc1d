// What quantizing did to each layer and to the whole: kept in the manifest, printed, and returned by --json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/json.h"
#include "base/resource_use.h"
#include "compression/modifiers/rotation_solver.h"
#include "quantization/quantized_tensor.h"
#include "tensor/tensor.h"

namespace pith {

struct LayerReport {
  std::string name;
  int64_t out = 0, in = 0, group_size = 0;
  int bits = 0;
  double relative_error = 0;  // ||dequantized - weight|| / ||weight||, of weights with the scales of channels that were folded in
  double sqnr_db = 0;         // infinite when exact
  double max_abs_error = 0;
  // Of GPTQ: the error of the module's output over that of rounding to nearest with the scales it began with; 0: not measured.
  double output_error_vs_rtn = 0;
  std::vector<int32_t> outlier_columns = {};  // of LLM_INT8, kept in bf16, ascending
  std::vector<std::string> notes = {};        // what did not go as asked: "damping raised from 0.01 to 0.04"
};

// How far outputs are from what they should be.
struct OutputError {
  double relative = 0;  // ||found - expected|| / ||expected||
  double sqnr_db = 0;   // infinite when exact
  double cosine = 1;
};

// Sums for an OutputError.
class OutputErrorMeter {
 public:
  void Add(absl::Span<const float> expected, absl::Span<const float> found);
  OutputError Get() const;

 private:
  double error_ = 0, expected_ = 0, found_ = 0, product_ = 0;
};

// The hidden states behind one decoder layer, over a sample of the calibration sequences.
struct BlockReport {
  int64_t layer = 0;
  OutputError local;        // from the same input: that of the quantized layers before
  OutputError accumulated;  // beside the dense model
};

// Channel scales that were folded in.
struct ScaledInputReport {
  std::string input;         // the first module that reads it
  std::string choice;        // "ratio 0.35"
  double error_ratio = 1.0;  // the method's own measure over that without scales
};

// How the model was rotated before.
struct RotationReport {
  RotationOptions options;
  int64_t untied_head_bytes = 0;  // of the head in the model's dtype, which was tied and is a matrix of its own now
};

// Static scales of the keys and values that one layer puts into the cache.
struct KvScaleReport {
  std::string name;                               // "model.layers.3.self_attn"
  std::vector<float> key_max_abs, value_max_abs;  // [num_kv_heads], on the calibration data
  std::vector<float> key_scales, value_scales;    // [num_kv_heads], or [1] for all heads
  std::vector<std::string> notes;                 // what did not go as asked: a scale that clips
};

// What was measured of modules that share a scheme, and what they got for it (bit_budget.h).
struct SensitivityReport {
  std::vector<std::string> modules;
  double kl = 0;           // nats per position when they alone are rounded to nearest in the recipe's scheme
  double expected_kl = 0;  // in the scheme that was chosen
  std::string scheme;      // "W4A16", with
  int group_size = 0;      // 0: per channel
  int64_t bytes = 0;       // in it
};

// A stretch of the work: "checking", "quantizing", and before them how calibration data came about.
struct PhaseUse {
  std::string name;
  ResourceUse use;
};
// Sums of times and the largest peak.
ResourceUse TotalUse(absl::Span<const PhaseUse> phases);

struct CompressionReport {
  std::optional<RotationReport> rotation;
  std::vector<LayerReport> layers;
  std::vector<ScaledInputReport> scaled_inputs;
  std::vector<BlockReport> blocks;                  // empty without calibration data
  std::vector<KvScaleReport> kv_scales;             // empty without static scales of the KV cache
  int group_size = 0;                               // resolved; 0 when scales are per channel or tensor
  int64_t input_bytes = 0;                          // tensors of the source
  int64_t output_bytes = 0;                         // tensors of the artifact
  int64_t quantized_weights = 0, kept_weights = 0;  // elements
  int64_t resumed_layers = 0;                       // taken over from an unfinished run
  std::vector<SensitivityReport> sensitivities;     // empty without a budget of bits
  std::vector<PhaseUse> phases;                     // what the work took

  // One line per thing that did not go as asked, with its module.
  std::vector<std::string> Warnings() const;
};

LayerReport MakeLayerReport(const std::string& name, MatrixView<const float> weight, const QuantizedTensor& quantized);

OrderedJson ToJson(const LayerReport& report);
OrderedJson ToJson(const BlockReport& report);
OrderedJson ToJson(const ScaledInputReport& report);
OrderedJson ToJson(const KvScaleReport& report);
OrderedJson ToJson(const SensitivityReport& report);
OrderedJson ToJson(const RotationReport& report);
OrderedJson ToJson(const PhaseUse& phase);
OrderedJson ToJson(const ResourceUse& use);
// `run`: also what differs from run to run with the same result, times and memory.
OrderedJson ToJson(const CompressionReport& report, bool run);

template <typename Report> OrderedJson ToJson(const std::vector<Report>& reports) {
  OrderedJson list = OrderedJson::array();
  for (const Report& report : reports) list.push_back(ToJson(report));
  return list;
}

// The inverse. Errors: kDataLoss for a missing or mistyped field.
absl::StatusOr<LayerReport> ParseLayerReport(const Json& json);
absl::StatusOr<BlockReport> ParseBlockReport(const Json& json);
absl::StatusOr<ScaledInputReport> ParseScaledInputReport(const Json& json);
absl::StatusOr<KvScaleReport> ParseKvScaleReport(const Json& json);

}  // namespace pith
