// A weight in the form its kernel reads, apart from the values it was made of: what a layer gives away to be stored, and what it is made of
// again without reading the weights.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernels/gemm.h"
#include "nn/data_path.h"
#include "nn/weight_shape.h"

namespace pith {

// One prepacked matrix of a Linear.
struct PrepackedMatrix {
  GemmProblem problem;
  std::string kernel;               // name of the row that prepacked it and reads it
  absl::Span<const uint8_t> bytes;  // borrowed from the layer; not read when a layer is made
};

// One part of a Linear, or a table, of which everything is known but the values.
struct PrepackedPart {
  TensorDataPath storage;  // as DescribeStorage gave it
  WeightShape shape;
  std::vector<float> bias;  // [out], or empty

  int64_t out() const { return shape.out; }
};

// Every field of a problem, in the order of its declaration: to compare and to store.
using GemmProblemFields = std::array<int64_t, 10>;
GemmProblemFields FieldsOf(const GemmProblem& problem);

}  // namespace pith
