// Bytes that weights will take once loaded, from their shapes and formats alone: what Linear and Embedding would hold.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/gemm.h"
#include "nn/compute_context.h"

namespace pith {

// One weight matrix that has not been read.
struct WeightShape {
  int64_t out = 0, in = 0;
  int bits = 16;           // 16: dense, rounded to bf16
  int64_t group_size = 0;  // quantized: divides `in`
  bool has_zero_point = false, has_min = false;
  GemmScale scale = GemmScale::kF32;

  bool dense() const { return bits == 16; }
};

// The same as Linear::Load(parts, context)->resident_bytes() without biases, but for scales that turn out to fit a narrower type than
// `scale`. Errors: kUnimplemented when no kernel can run a part.
absl::StatusOr<int64_t> ForecastLinearBytes(absl::Span<const WeightShape> parts, const ComputeContext& context);

// The same as Embedding::resident_bytes().
int64_t ForecastEmbeddingBytes(const WeightShape& table);

}  // namespace pith
