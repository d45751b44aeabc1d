// The shape and form of a matrix as an artifact describes it, before any weight is read.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "nn/weight_shape.h"

namespace pith {

// `module`: "model.layers.0.mlp.down_proj". What ShapeOf says of the loaded weight, but for has_bias (false here) and for scales that turn
// out to fit a narrower type. Errors: kDataLoss when absent or no matrix.
absl::StatusOr<WeightShape> StoredShape(const ArtifactReader& reader, const std::string& module);

}  // namespace pith
