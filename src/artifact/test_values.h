// For tests only: the numbers of a model's weights, however they are stored.
#pragma once

#include <string>
#include <vector>

#include "artifact/artifact_reader.h"
#include "gtest/gtest.h"

namespace pith {

// All elements of a module's weight, row by row.
inline std::vector<float> WeightValues(const ArtifactReader& reader, const std::string& name) {
  const auto weight = reader.ReadWeight(name);
  EXPECT_TRUE(weight.ok()) << weight.status();
  std::vector<float> values;
  if (weight->dense.has_value()) {
    values.resize(static_cast<size_t>(weight->dense->num_elements()));
    EXPECT_TRUE(ConvertToFloat(*weight->dense, absl::MakeSpan(values)).ok());
    return values;
  }
  const QuantizedTensor& q = *weight->quantized;
  values.resize(static_cast<size_t>(q.out * q.in));
  for (int64_t o = 0; o < q.out; ++o) {
    q.DequantizeRow(o, absl::MakeSpan(values).subspan(static_cast<size_t>(o * q.in), static_cast<size_t>(q.in)));
  }
  return values;
}

}  // namespace pith
