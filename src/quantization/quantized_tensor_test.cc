#include "quantization/quantized_tensor.h"

#include <vector>

#include "gtest/gtest.h"

namespace pith {
namespace {

QuantizedTensor TwoRowsOfFour() {
  QuantizedTensor weight;
  weight.out = 2;
  weight.in = 4;
  weight.bits = 4;
  weight.group_size = 2;
  weight.code = {0, 8, 15, 9, 1, 2, 3, 4};
  weight.scale = {0.5f, 2.0f, 1.0f, -1.0f};
  return weight;
}

std::vector<float> Row(const QuantizedTensor& weight, int64_t o) {
  std::vector<float> row(static_cast<size_t>(weight.in));
  weight.DequantizeRow(o, absl::MakeSpan(row));
  return row;
}

TEST(QuantizedTensor, SymmetricCodesAreCentred) {
  EXPECT_EQ(Row(TwoRowsOfFour(), 0), (std::vector<float>{-4.0f, 0.0f, 14.0f, 2.0f}));
  EXPECT_EQ(Row(TwoRowsOfFour(), 1), (std::vector<float>{-7.0f, -6.0f, 5.0f, 4.0f}));
}

TEST(QuantizedTensor, ZeroPointsPerGroup) {
  QuantizedTensor weight = TwoRowsOfFour();
  weight.zero_point = {0, 15, 1, 4};
  EXPECT_EQ(Row(weight, 0), (std::vector<float>{0.0f, 4.0f, 0.0f, -12.0f}));
  EXPECT_EQ(Row(weight, 1), (std::vector<float>{0.0f, 1.0f, 1.0f, 0.0f}));
}

TEST(QuantizedTensor, MinimumsAreSubtracted) {
  QuantizedTensor weight = TwoRowsOfFour();
  weight.min = {1.0f, -0.25f, 0.0f, 10.0f};
  EXPECT_EQ(Row(weight, 0), (std::vector<float>{-1.0f, 3.0f, 30.25f, 18.25f}));
  EXPECT_EQ(Row(weight, 1), (std::vector<float>{1.0f, 2.0f, -13.0f, -14.0f}));
}

}  // namespace
}  // namespace pith
