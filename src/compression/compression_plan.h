// What compressing a model by a recipe will do, known from the headers of its files: which modules are quantized and how, and every tensor
// that will be written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "artifact/artifact_writer.h"
#include "compression/recipe.h"
#include "quantization/quantization_config.h"

namespace pith {

// What will be done to one module.
struct PlannedModule {
  std::string name;
  std::string class_name;  // "Linear", "Embedding", "RMSNorm"
  bool quantized = false;
  // Of quantized ones:
  int64_t out = 0, in = 0;
  QuantizationScheme scheme;  // with strategy and group size resolved

  std::vector<TensorSpec> tensors;  // as written

  const QuantizationArgs& args() const { return *scheme.weights; }
};

struct CompressionPlan {
  QuantizationConfig config;                  // what config.json will say
  QuantizationArgs args;                      // of the weights of recipe.scheme, with strategy and group size resolved
  DType model_dtype = DType::kBF16;           // of kept tensors and scales
  std::vector<PlannedModule> modules;         // in layer order
  std::vector<TensorSpec> plain_tensors;      // biases and the like, copied
  std::vector<TensorSpec> kv_scales;          // of a KV cache with static scales
  int64_t input_bytes = 0, output_bytes = 0;  // of tensors
  int64_t untied_head_bytes = 0;              // of the head in model_dtype, where rotating makes it a matrix of its own
};

// Declares that the outliers of LLM_INT8 are columns which calibration finds, and whether there is anything to declare. Their tensors are
// not in the plan: how many columns there are shows on the way (AddOutlierTensors).
bool FixOutliers(CompressionPlan& plan);
// Adds tensors of outlier columns, "<module>.outlier_index" and "<module>.outlier_weight", to their modules.
void AddOutlierTensors(std::vector<TensorSpec> tensors, CompressionPlan& plan);

// Every tensor that will be written.
std::vector<TensorSpec> PlannedTensors(const CompressionPlan& plan);

int64_t TotalBytes(const std::vector<TensorSpec>& tensors);

// Reads headers only. Errors: kUnimplemented for a source that is quantized or no Hugging Face directory, or an unknown architecture;
// kUnimplemented for rows that are not of whole blocks, and for a model that cannot be rotated where the method rotates; kInvalidArgument
// for a group size that does not divide, a recipe that quantizes nothing, an entry of recipe.ignore (beside lm_head) or a target of
// recipe.overrides that matches no module, or entries that match only a part of q/k/v or gate/up.
absl::StatusOr<CompressionPlan> PlanCompression(const ArtifactReader& reader, const Recipe& recipe);

}  // namespace pith
