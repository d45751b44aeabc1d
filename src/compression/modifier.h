// The parts of a quantization method as a pipeline sees them: hooks here, pure mathematics in a solver beside each.
//
// A method is a rotation of the whole model (rotated_reader.h) or none, an optional InputScaler and a WeightQuantizer. A pipeline drives
// the last two from one thread, decoder layer by decoder layer: BeginLayer of both; for each input that can be scaled, Search with the
// modules that read it; then Quantize for each linear module, whose weights and statistics have been scaled by then. Statistics are
// collected once, by the pipeline, at the level the parts need. Either part may use the pool, and must give the same bits for any number of
// threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/thread_pool.h"
#include "compression/compression_report.h"
#include "compression/input_statistics.h"
#include "compression/recipe.h"
#include "quantization/quantized_tensor.h"
#include "tensor/tensor.h"

namespace pith {

// One linear layer, unquantized.
struct LinearLayer {
  std::string name;                           // "model.layers.0.self_attn.q_proj"
  MatrixView<const float> weight;             // [out, in], finite
  QuantizationArgs args;                      // with strategy and group size resolved
  DType scale_dtype = DType::kBF16;           // what scales are stored in
  std::vector<int32_t> outlier_columns = {};  // kept beside the codes: what the codes of these columns are does not matter
};

struct QuantizedLayer {
  QuantizedTensor weight;
  LayerReport report;
};

// Chooses the codes of a weight matrix.
class WeightQuantizer {
 public:
  virtual ~WeightQuantizer() = default;
  // What it cannot do without. kNone: statistics are welcome, and null otherwise.
  virtual StatisticsLevel needs() const = 0;
  // What is known of the layer before is no longer needed.
  virtual void BeginLayer() {}
  // `input`: of the rows that flow into the layer, or null.
  virtual absl::StatusOr<QuantizedLayer> Quantize(const LinearLayer& layer, InputStatistics* input, ThreadPool& pool) = 0;
};

// An input and all linear modules that read it.
struct SharedInput {
  std::string name;  // for messages: the first of the modules
  InputStatistics* statistics = nullptr;
  std::vector<MatrixView<const float>> weights;  // [out_i, in] each
  QuantizationArgs args;                         // of all of them
  DType scale_dtype = DType::kBF16;
  std::vector<int32_t> tied_columns;  // AwqOptions::tied_columns
};

struct InputScales {
  std::vector<float> scales;  // [in], > 0: weights are multiplied by them, the input is divided; empty: best left alone
  std::string choice;         // "ratio 0.35", for the report
  double error_ratio = 1;     // the method's own error over that without scales
};

// Moves size between the channels of an input and the weights that read it.
class InputScaler {
 public:
  virtual ~InputScaler() = default;
  virtual StatisticsLevel needs() const = 0;
  virtual absl::StatusOr<InputScales> Search(const SharedInput& input, ThreadPool& pool) = 0;
};

struct MethodRow {
  absl::string_view name;  // "awq+gptq"
  absl::string_view summary;
  bool rotates;  // the model, before all else
  // Null: the method scales nothing. Both may refuse the recipe.
  absl::StatusOr<std::unique_ptr<InputScaler>> (*make_scaler)(const Recipe& recipe);
  absl::StatusOr<std::unique_ptr<WeightQuantizer>> (*make_quantizer)(const Recipe& recipe);
};

// What a recipe's method is made of.
struct MethodParts {
  std::unique_ptr<InputScaler> scaler;  // null: it scales nothing
  std::unique_ptr<WeightQuantizer> quantizer;

  StatisticsLevel needs() const;  // of both together
};
// Errors: those of FindMethod and of the row's functions.
absl::StatusOr<MethodParts> MakeMethodParts(const Recipe& recipe);

// THE TABLE of methods (modifiers/method_table.cc).
absl::Span<const MethodRow> Methods();
// Errors: kUnimplemented with the known names.
absl::StatusOr<const MethodRow*> FindMethod(absl::string_view name);
// The best known method for a scheme with quantized weights: a row of the table.
absl::string_view BestMethod(const QuantizationScheme& scheme);

}  // namespace pith
