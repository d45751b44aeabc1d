// The work on a model in parts that are done or not done: what is checkpointed and resumed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compression/compression_plan.h"
#include "compression/compression_report.h"
#include "tensor/tensor.h"

namespace pith {

// One decoder layer, or (layer -1) everything outside the layers.
struct Stage {
  int64_t layer = -1;
  std::vector<const PlannedModule*> modules;
  std::vector<const TensorSpec*> plain_tensors;  // biases and the like
};

// The layers in order, then the rest. Borrows from `plan`.
std::vector<Stage> SplitStages(const CompressionPlan& plan);

// After so many more modules (0: some of the work on one); an error ends the work.
using CompressionProgress = std::function<absl::Status(int64_t modules)>;

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

struct StageResult {
  std::vector<NamedTensor> tensors;  // all of the stage, as written
  std::vector<LayerReport> layers;   // of its quantized modules
  std::optional<BlockReport> block;  // of a decoder layer that was run
  std::vector<ScaledInputReport> scaled_inputs;
  std::vector<KvScaleReport> kv_scales;  // one, where the KV cache has static scales
};

}  // namespace pith
