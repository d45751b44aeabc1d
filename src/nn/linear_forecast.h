// What weights will take once loaded and multiply with, from their shapes and formats alone: what Linear and Embedding would hold.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/compute_context.h"
#include "nn/linear_input.h"
#include "nn/weight_shape.h"

namespace pith {

struct LinearForecast {
  int64_t bytes = 0;                 // Linear::resident_bytes() without biases
  std::vector<InputFormat> formats;  // Linear::formats()
};

// The same as Linear::Load(parts, context) would have, but for the bytes of scales that turn out to fit a narrower type than `scale`.
// Errors: kUnimplemented when no kernel can run a part.
absl::StatusOr<LinearForecast> ForecastLinear(absl::Span<const WeightShape> parts, const ComputeContext& context);

// The same as Embedding::resident_bytes().
absl::StatusOr<int64_t> ForecastEmbeddingBytes(const WeightShape& table, const ComputeContext& context);

}  // namespace pith
