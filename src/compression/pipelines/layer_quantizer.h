// What both pipelines do with the modules of a stage: quantize, encode, copy.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "base/thread_pool.h"
#include "compression/modifier.h"
#include "compression/stage.h"

namespace pith {

// Quantizes `weight` [out, in] of a planned module and adds its tensors and its report to `result`. `activations`: what its input becomes,
// where the artifact says so; a static scale is stored, and so are outlier columns. Returns the codes.
absl::StatusOr<QuantizedTensor> QuantizeModule(const PlannedModule& module, const CompressionPlan& plan, MatrixView<const float> weight,
                                               InputStatistics* input, const std::optional<InputQuantization>& activations,
                                               WeightQuantizer& quantizer, ThreadPool& pool, StageResult& result);

// Adds a tensor that is kept to `result`: the bytes of the source, or its values rounded to the dtype of `spec`. Errors: kDataLoss for a
// value that is not finite in that.
absl::Status CopyTensor(const TensorSpec& spec, const TensorView& tensor, StageResult& result);

// The modules and plain tensors of a stage without data.
absl::StatusOr<StageResult> RunDataFreeStage(const ArtifactReader& reader, const CompressionPlan& plan, const Stage& stage,
                                             WeightQuantizer& quantizer, ThreadPool& pool, const CompressionProgress& progress);

}  // namespace pith
