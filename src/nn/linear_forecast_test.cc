#include "nn/linear_forecast.h"

#include "gtest/gtest.h"

namespace pith {
namespace {

class LinearForecastTest : public testing::Test {
 protected:
  int64_t Bytes(absl::Span<const WeightShape> parts) {
    const auto forecast = ForecastLinear(parts, MakeComputeContext(&pool_, DetectIsa()));
    EXPECT_TRUE(forecast.ok()) << forecast.status();
    return forecast.ok() ? forecast->bytes : -1;
  }
  ThreadPool pool_{1};
};

TEST_F(LinearForecastTest, DenseMatricesTakeTwoBytesAWeight) {
  EXPECT_EQ(Bytes({{{.out = 64, .in = 128}}}), 2 * 64 * 128);
  EXPECT_EQ(Bytes({{{.out = 64, .in = 128}, {.out = 32, .in = 128}}}), 2 * 96 * 128);
}

TEST_F(LinearForecastTest, QuantizedMatricesTakeTheirCodesAndScales) {
  const WeightShape w4 = {.out = 64, .in = 128, .bits = 4, .group_size = 32, .scale = GemmScale::kBf16};
  const int64_t weights = 64 * 128, groups = weights / 32;
  EXPECT_NEAR(static_cast<double>(Bytes({&w4, 1})), static_cast<double>(weights / 2 + 2 * groups), 0.02 * weights);
  WeightShape w8 = w4;
  w8.bits = 8;
  w8.scale = GemmScale::kF32;
  EXPECT_NEAR(static_cast<double>(Bytes({&w8, 1})), static_cast<double>(weights + 4 * groups), 0.02 * weights);
}

TEST_F(LinearForecastTest, OutlierColumnsTakeTwoBytesAWeight) {
  WeightShape w8 = {.out = 64, .in = 128, .bits = 8, .group_size = 128};
  w8.input = InputQuantization{
      .args = {.strategy = QuantizationStrategy::kToken, .dynamic = true, .outlier_threshold = 6, .fixed_outliers = true}};
  const int64_t without = Bytes({&w8, 1});
  w8.input->outlier_columns = {0, 5, 8, 99};
  EXPECT_EQ(Bytes({&w8, 1}), without + 2 * 4 * 64);
}

TEST_F(LinearForecastTest, NeighboursOfOneLayoutShareOnePadding) {
  const WeightShape half = {.out = 8, .in = 128};  // half a panel of 16 columns
  const WeightShape halves[] = {half, half};
  EXPECT_EQ(Bytes(halves), Bytes({&half, 1}));
  const WeightShape mixed[] = {half, {.out = 8, .in = 128, .bits = 8, .group_size = 32}};
  EXPECT_EQ(Bytes(mixed), Bytes({&mixed[0], 1}) + Bytes({&mixed[1], 1}));
}

TEST_F(LinearForecastTest, EmbeddingsAreBf16OrAsAMatrix) {
  const ComputeContext context = MakeComputeContext(&pool_, DetectIsa());
  EXPECT_EQ(*ForecastEmbeddingBytes({.out = 10, .in = 64}, context), 2 * 640);
  const WeightShape w4 = {.out = 10, .in = 64, .bits = 4, .group_size = 32, .has_min = true};
  EXPECT_EQ(*ForecastEmbeddingBytes(w4, context), Bytes({&w4, 1}));
}

TEST_F(LinearForecastTest, MatricesOfALayerSayEachFormOfInputOnce) {
  const WeightShape dense = {.out = 16, .in = 128}, w4 = {.out = 16, .in = 128, .bits = 4, .group_size = 32};
  WeightShape w8 = {.out = 16, .in = 128, .bits = 8, .group_size = 32};
  const WeightShape parts[] = {w4, dense, w8, {.out = 16, .in = 128, .bits = 8, .group_size = 64}};
  const auto forecast = ForecastLinear(parts, MakeComputeContext(&pool_, DetectIsa()));
  ASSERT_TRUE(forecast.ok()) << forecast.status();
  const InputFormat int16 = {.kind = GemmActivation::kInt16, .group_size = 32, .sum_group = 32};
  InputFormat longer = int16;
  longer.group_size = longer.sum_group = 64;
  EXPECT_EQ(forecast->formats, (std::vector<InputFormat>{int16, InputFormat{}, longer}));
}

TEST_F(LinearForecastTest, WhatNoKernelRunsIsAnError) {
  const WeightShape odd = {.out = 16, .in = 10, .bits = 9, .group_size = 3};
  EXPECT_FALSE(ForecastLinear({&odd, 1}, MakeComputeContext(&pool_, DetectIsa())).ok());
}

}  // namespace
}  // namespace pith
