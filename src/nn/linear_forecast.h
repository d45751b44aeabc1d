// Bytes that weights will take once loaded, from their shapes and formats alone: what Linear and Embedding would hold.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/compute_context.h"
#include "nn/weight_shape.h"

namespace pith {

// The same as Linear::Load(parts, context)->resident_bytes() without biases, but for scales that turn out to fit a narrower type than
// `scale`. Errors: kUnimplemented when no kernel can run a part.
absl::StatusOr<int64_t> ForecastLinearBytes(absl::Span<const WeightShape> parts, const ComputeContext& context);

// The same as Embedding::resident_bytes().
absl::StatusOr<int64_t> ForecastEmbeddingBytes(const WeightShape& table, const ComputeContext& context);

}  // namespace pith
