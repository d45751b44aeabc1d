// The shape and form of a weight matrix, known without its values, and which neighbours of a layer become one matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "kernels/gemm.h"
#include "nn/data_path.h"

namespace pith {

struct WeightShape {
  int64_t out = 0, in = 0;
  int bits = 16;  // 16: dense, rounded to bf16
  QuantizationType type = QuantizationType::kInt;
  int64_t group_size = 0;  // quantized: divides `in`
  bool has_zero_point = false, has_min = false;
  GemmScale scale = GemmScale::kF32;  // of a forecast; a loaded matrix takes the narrowest that holds its values
  int64_t unit_size = 0;              // of kI8 scales
  bool has_bias = false;
  std::optional<InputQuantization> input;

  bool dense() const { return bits == 16; }
};

WeightShape ShapeOf(const LinearSource& source);

// Neighbours that one kernel consumes with one layout become one matrix. Where each matrix ends: "q, k, v" as two matrices {q, k}, {v} is
// [2, 3].
std::vector<size_t> MatrixEnds(absl::Span<const WeightShape> parts);

// The GEMM problem of parts that become one matrix, the scale of the first; what they are multiplied with is chosen later.
GemmProblem StackedProblem(absl::Span<const WeightShape> parts);

}  // namespace pith
