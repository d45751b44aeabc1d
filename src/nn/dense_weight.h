// Dense weights on their way into memory: conversion to bf16 or f32 with a check that every value is finite.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/thread_pool.h"
#include "tensor/tensor.h"

namespace pith {

// Rounds an F32, F16 or BF16 tensor to bf16 bits (nearest even), split over the pool. `out` has num_elements() values; the tensor's
// bytes need no alignment. `name` is the tensor's full name, for errors: kDataLoss naming tensor and index of the first NaN or
// infinity (also an F32 value that bf16 cannot hold), kUnimplemented for another dtype.
absl::Status ConvertToBfloat16(absl::string_view name, const TensorView& tensor, ThreadPool& pool, absl::Span<uint16_t> out);

// A small tensor (norm weight, bias) as f32. Errors as above, and kDataLoss if the shape is not [expected_size].
absl::StatusOr<std::vector<float>> ReadVector(absl::string_view name, const TensorView& tensor, int64_t expected_size);

// Errors: kDataLoss "<name>: expected finite values, found NaN at [row, column]" for rows of `columns` values.
absl::Status CheckFinite(absl::string_view name, absl::Span<const float> values, int64_t columns);

}  // namespace pith
