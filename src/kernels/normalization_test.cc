#include "kernels/normalization.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/operator_test_fixture.h"

namespace pith {
namespace {

constexpr int64_t kDims[] = {1, 2, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 576, 640, 1001, 4096};

std::vector<double> Reference(const float* x, const float* weight, int64_t dim, float eps) {
  double sum = 0.0;
  for (int64_t i = 0; i < dim; ++i) sum += static_cast<double>(x[i]) * x[i];
  std::vector<double> y(static_cast<size_t>(dim));
  for (int64_t i = 0; i < dim; ++i) y[i] = x[i] * weight[i] / std::sqrt(sum / static_cast<double>(dim) + eps);
  return y;
}

// Chains of at most dim / 32 squares and a tree of 6 additions; the root halves their relative error; then at most 6 roundings.
double RelativeTolerance(int64_t dim) { return (0.5 * (static_cast<double>(dim) / 32 + 7) + 6) * kF32Unit; }

TEST(RmsNormTest, MatchesTheDefinition) {
  constexpr int64_t kRows = 3;
  for (int64_t dim : kDims) {
    const int64_t x_stride = dim + 5, out_stride = dim + 2;
    const PageEndBuffer<float> x(NormalValues((kRows - 1) * x_stride + dim, 1, 3.0f)), weight(NormalValues(dim, 2));
    const std::vector<float> old = NormalValues(kRows * out_stride, 3);
    for (const auto& row : RunnableRows(&OperatorEntry::rms_norm)) {
      GuardedBuffer<uint16_t> bf16(kRows * out_stride, 0xBEEF);
      GuardedBuffer<float> f32(kRows * out_stride, 7.0f), sum(kRows * out_stride);
      std::copy(old.begin(), old.end(), sum.data());
      RmsNormParams p{.x = x.data(),
                      .x_stride = x_stride,
                      .weight = weight.data(),
                      .eps = 1e-5f,
                      .num_rows = kRows,
                      .dim = dim,
                      .out_bf16 = bf16.data(),
                      .out_stride = out_stride};
      row.run(p);
      p.out_bf16 = nullptr;
      p.out_f32 = f32.data();
      row.run(p);
      p.out_f32 = sum.data();
      p.accumulate = true;
      row.run(p);
      EXPECT_TRUE(bf16.Intact() && f32.Intact() && sum.Intact()) << row.name << " dim " << dim;
      for (int64_t r = 0; r < kRows; ++r) {
        const std::vector<double> expected = Reference(x.data() + r * x_stride, weight.data(), dim, 1e-5f);
        for (int64_t i = 0; i < dim; ++i) {
          const int64_t at = r * out_stride + i;
          const double tolerance = std::fabs(expected[i]) * RelativeTolerance(dim);
          ASSERT_NEAR(f32[at], expected[i], tolerance) << row.name << " dim " << dim << " row " << r << " element " << i;
          ASSERT_EQ(bf16[at], ToBits(f32[at])) << row.name << " dim " << dim << " row " << r << " element " << i;
          ASSERT_EQ(sum[at], old[at] + f32[at]) << row.name << " dim " << dim << " row " << r << " element " << i;
        }
        for (int64_t i = dim; i < out_stride; ++i) ASSERT_TRUE(bf16[r * out_stride + i] == 0xBEEF && f32[r * out_stride + i] == 7.0f);
      }
    }
  }
}

TEST(RmsNormTest, BitsOfARowDoNotDependOnTheCallOrTheAddress) {
  constexpr int64_t kRows = 5;
  for (int64_t dim : kDims) {
    const std::vector<float> x = NormalValues(kRows * dim, 4), weight = NormalValues(dim, 5);
    for (const auto& row : RunnableRows(&OperatorEntry::rms_norm)) {
      std::vector<float> all(static_cast<size_t>(kRows * dim));
      row.run({.x = x.data(),
               .x_stride = dim,
               .weight = weight.data(),
               .num_rows = kRows,
               .dim = dim,
               .out_f32 = all.data(),
               .out_stride = dim});
      for (int64_t r = 0; r < kRows; ++r) {
        std::vector<float> in_place(static_cast<size_t>(dim + r));  // each row at another alignment, out over x
        std::copy_n(x.data() + r * dim, dim, in_place.data() + r);
        row.run({.x = in_place.data() + r,
                 .x_stride = dim,
                 .weight = weight.data(),
                 .num_rows = 1,
                 .dim = dim,
                 .out_f32 = in_place.data() + r,
                 .out_stride = dim});
        ASSERT_EQ(std::vector<float>(in_place.begin() + r, in_place.end()),
                  std::vector<float>(all.begin() + r * dim, all.begin() + (r + 1) * dim))
            << row.name << " dim " << dim;
      }
    }
  }
}

TEST(RmsNormTest, ZeroRowGivesZerosAndNaNStaysInItsRow) {
  constexpr int64_t kDim = 40;
  std::vector<float> x(3 * kDim, 0.0f), weight(kDim, 2.0f);
  x[kDim + 17] = std::numeric_limits<float>::quiet_NaN();
  for (int64_t i = 0; i < kDim; ++i) x[2 * kDim + i] = 3.0f;
  for (const auto& row : RunnableRows(&OperatorEntry::rms_norm)) {
    std::vector<float> out(3 * kDim);
    row.run({.x = x.data(),
             .x_stride = kDim,
             .weight = weight.data(),
             .eps = 0x1p-20f,
             .num_rows = 3,
             .dim = kDim,
             .out_f32 = out.data(),
             .out_stride = kDim});
    for (int64_t i = 0; i < kDim; ++i) {
      EXPECT_EQ(out[i], 0.0f) << row.name;
      EXPECT_TRUE(std::isnan(out[kDim + i])) << row.name;
      EXPECT_NEAR(out[2 * kDim + i], 2.0f, 1e-6f) << row.name;  // 3 / sqrt(9 + eps) * 2
    }
  }
}

}  // namespace
}  // namespace pith
