// Turns a dense model into a quantized artifact by a recipe, layer by layer, in one streaming pass.
//
// Everything that can be refused is refused before the long work: a source that is not dense, an unknown architecture, a group size that
// does not divide (every such layer listed), layers of different schemes that serving engines fuse, NaN or infinite weights (tensor and
// index), an output that exists, too little disk. The artifact appears under its name whole, or not at all. The same recipe, source and
// calibration data give the same bytes for any number of threads, and after any number of interruptions: each decoder layer that is done
// is kept (checkpoint.h) until the artifact is whole.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "artifact/artifact_writer.h"
#include "base/thread_pool.h"
#include "compression/calibration_data.h"
#include "compression/compression_report.h"
#include "compression/recipe.h"
#include "quantization/quantization_config.h"

namespace pith {

// What will be done to one module.
struct PlannedModule {
  std::string name;
  std::string class_name;  // "Linear", "Embedding", "RMSNorm"
  bool quantized = false;
  int64_t out = 0, in = 0;          // quantized ones
  std::vector<TensorSpec> tensors;  // as written
};

struct CompressionPlan {
  QuantizationConfig config;  // what config.json will say
  QuantizationArgs args;      // weights, with strategy and group size resolved
  std::optional<QuantizationArgs> input_activations;
  DType model_dtype = DType::kBF16;           // of kept tensors and scales
  std::vector<PlannedModule> modules;         // in layer order
  std::vector<TensorSpec> plain_tensors;      // biases and the like, copied
  int64_t input_bytes = 0, output_bytes = 0;  // of tensors
};

// Every tensor that will be written.
std::vector<TensorSpec> PlannedTensors(const CompressionPlan& plan);

// Reads headers only. Errors: kUnimplemented for a source that is quantized or no Hugging Face directory, or an unknown architecture;
// kUnimplemented for rows that are not of whole blocks; kInvalidArgument for a group size that does not divide, a recipe that quantizes
// nothing, an entry of recipe.ignore (beside lm_head) that matches no module, or entries that match only a part of q/k/v or gate/up.
absl::StatusOr<CompressionPlan> PlanCompression(const ArtifactReader& reader, const Recipe& recipe);

struct CompressionOptions {
  std::string pith_version;
  // Called after each module of a phase ("checking", "quantizing"), and between calibration sequences with what is done so far; an error
  // ends the work with it. May be empty.
  std::function<absl::Status(absl::string_view phase, int64_t done, int64_t total)> progress;
  const CalibrationData* calibration = nullptr;  // borrowed; null: none
  bool resume = false;                           // continue what an interrupted run of the same output left, if there is any
};

// Whether the recipe's method or scheme cannot do without calibration data.
bool NeedsCalibration(const Recipe& recipe);

// After so many more modules (0: some of the work on one) of the phase; an error ends the work.
using CompressionProgress = std::function<absl::Status(int64_t modules)>;

// Errors: those of PlanCompression, ArtifactWriter and Checkpoint; kInvalidArgument for a recipe without the calibration data it needs;
// kDataLoss for weights that are not finite.
absl::StatusOr<CompressionReport> Compress(const ArtifactReader& reader, const Recipe& recipe, const std::string& output, ThreadPool& pool,
                                           const CompressionOptions& options);

}  // namespace pith
