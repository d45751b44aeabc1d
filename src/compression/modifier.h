// A quantization method as a pipeline sees it: hooks here, pure mathematics in a solver beside it.
//
// Life of a modifier: Initialize once; then per layer, in model order, ObserveLayerInput for every batch of calibration rows (when it
// RequiresCalibrationData) and QuantizeLayer; Finalize once. One pipeline drives it from one thread; QuantizeLayer may use the pool.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/thread_pool.h"
#include "compression/compression_report.h"
#include "compression/recipe.h"
#include "quantization/quantized_tensor.h"
#include "tensor/tensor.h"

namespace pith {

// One linear layer, unquantized.
struct LinearLayer {
  std::string name;                  // "model.layers.0.self_attn.q_proj"
  MatrixView<const float> weight;    // [out, in], finite
  DType model_dtype = DType::kBF16;  // scales are stored in it
};

struct QuantizedLayer {
  QuantizedTensor weight;
  LayerReport report;
};

class Modifier {
 public:
  virtual ~Modifier() = default;
  virtual bool RequiresCalibrationData() const = 0;
  // `args`: the scheme's weights with its strategy and group size resolved.
  virtual absl::Status Initialize(const Recipe& recipe, const QuantizationArgs& args) = 0;
  // Rows [num_rows, in] of f32 that flow into the layer.
  virtual absl::Status ObserveLayerInput(absl::string_view layer, MatrixView<const float> rows) = 0;
  virtual absl::StatusOr<QuantizedLayer> QuantizeLayer(const LinearLayer& layer, ThreadPool& pool) = 0;
  virtual absl::Status Finalize() = 0;
};

struct ModifierRow {
  absl::string_view name;  // "rtn"
  absl::string_view summary;
  std::unique_ptr<Modifier> (*make)();
};

// THE TABLE of methods (modifiers/modifier_table.cc).
absl::Span<const ModifierRow> Modifiers();
// Errors: kUnimplemented with the known names.
absl::StatusOr<const ModifierRow*> FindModifier(absl::string_view name);

}  // namespace pith
