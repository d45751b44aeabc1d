#include "quantization/reference.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(QuantizeValue, HandComputed) {
  const QuantizationArgs args{.num_bits = 4, .symmetric = false};
  const QParams qparams{.scale = 0.5f, .zero_point = -3};
  EXPECT_EQ(QuantizeValue(0.0f, qparams, args), -3);
  EXPECT_EQ(QuantizeValue(1.0f, qparams, args), -1);
  EXPECT_EQ(QuantizeValue(0.75f, qparams, args), -2);  // 1.5 - 3 = -1.5, to even
  EXPECT_EQ(QuantizeValue(50.0f, qparams, args), 7);
  EXPECT_EQ(QuantizeValue(-50.0f, qparams, args), -8);
  EXPECT_EQ(DequantizeValue(-3, qparams), 0.0f);
  EXPECT_EQ(DequantizeValue(7, qparams), 5.0f);
}

TEST(CompareValues, HandComputed) {
  const ErrorStatistics statistics = CompareValues({3.0f, -4.0f}, {3.3f, -3.6f});
  EXPECT_NEAR(statistics.relative_error, 0.1, 1e-6);  // 0.5 / 5
  EXPECT_NEAR(statistics.sqnr_db, 20.0, 1e-4);
  EXPECT_NEAR(statistics.max_abs_error, 0.4, 1e-6);
}

TEST(CompareValues, ExactAndSilentCases) {
  EXPECT_EQ(CompareValues({1.0f}, {1.0f}).relative_error, 0.0);
  EXPECT_TRUE(std::isinf(CompareValues({1.0f}, {1.0f}).sqnr_db));
  EXPECT_TRUE(std::isinf(CompareValues({0.0f}, {1.0f}).relative_error));
  EXPECT_LT(CompareValues({0.0f}, {1.0f}).sqnr_db, 0.0);
  EXPECT_EQ(CompareValues({}, {}).relative_error, 0.0);
}

TEST(CompareWeights, GoesOverAllRowsWithTheirStride) {
  QuantizedTensor quantized;
  quantized.out = 2;
  quantized.in = 2;
  quantized.group_size = 2;
  quantized.code = {129, 128, 128, 126};
  quantized.scale = {1.0f, 2.0f};
  const std::vector<float> original = {1, 0, 99, 0, -3, 99};  // rows of 2 in a stride of 3; the last differs by 1
  const ErrorStatistics statistics = CompareWeights({original.data(), 2, 2, 3}, quantized);
  EXPECT_NEAR(statistics.relative_error, std::sqrt(1.0 / 10.0), 1e-12);
  EXPECT_EQ(statistics.max_abs_error, 1.0);
}

}  // namespace
}  // namespace pith
