#include "nn/linear_input.h"

#include <algorithm>
#include <cmath>

#include "base/float_types.h"
#include "base/random.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

class LinearInputTest : public testing::Test {
 protected:
  LinearInputTest() {
    RandomStream random(7);
    for (float& x : x_) x = random.Normal();
  }
  static constexpr int64_t kDim = 32, kStride = 35;
  std::vector<float> x_ = std::vector<float>(3 * kStride);
  ThreadPool pool_{1};
  const ComputeContext context_ = MakeComputeContext(&pool_, DetectIsa());
};

TEST_F(LinearInputTest, HoldsEveryFormOfItsRows) {
  const InputFormat wide{GemmActivation::kInt16, 16, 8}, narrow{GemmActivation::kInt8, 32, 32};
  LinearInput input;
  input.Prepare({wide, InputFormat{}, narrow}, 3, kDim);
  input.Store(context_, 0, 1, x_.data(), kStride);
  input.Store(context_, 1, 2, x_.data() + kStride, kStride);
  for (int64_t r = 0; r < 3; ++r) {
    const IntegerActivation w = input.Integers(wide, r), n = input.Integers(narrow, r);
    for (int64_t i = 0; i < kDim; ++i) {
      const float x = x_[r * kStride + i];
      EXPECT_EQ(input.bf16()[r * kDim + i], ToBfloat16(x).bits);
      EXPECT_NEAR(w.scale[i / 16] * static_cast<float>(256 * w.high[i] + w.low[i]), x, w.scale[i / 16] * 0.51f);
      EXPECT_NEAR(n.scale[0] * static_cast<float>(n.high[i]), x, n.scale[0] * 0.51f);
    }
    int32_t sum = 0;
    for (int64_t i = 8; i < 16; ++i) sum += 256 * w.high[i] + w.low[i];
    EXPECT_EQ(w.sum[1], sum);
    EXPECT_EQ(n.low, nullptr);
  }
}

// The listed channels are zeros in the integers and count for no scale, whatever their size; in bf16 they are beside them.
TEST_F(LinearInputTest, OutlierColumnsAreHeldInBf16) {
  const InputFormat plain{GemmActivation::kInt8, kDim, kDim};
  InputFormat format = plain;
  format.outlier_columns = {0, 7, kDim - 1};
  std::vector<float> with = x_, without = x_;
  for (int64_t r = 0; r < 3; ++r) {
    for (const int32_t column : format.outlier_columns) {
      with[r * kStride + column] = static_cast<float>(100 * r) + 0.1f * static_cast<float>(column);
      without[r * kStride + column] = 0;
    }
  }
  LinearInput input, expected;
  input.Prepare({plain, format}, 3, kDim);
  EXPECT_EQ(input.column_unit(), kDim);
  expected.Prepare({plain}, 3, kDim);
  input.Store(context_, 0, 1, with.data(), kStride);
  input.Store(context_, 1, 2, with.data() + kStride, kStride);
  expected.Store(context_, 0, 3, without.data(), kStride);
  for (int64_t r = 0; r < 3; ++r) {
    const IntegerActivation a = input.Integers(format, r), b = expected.Integers(plain, r);
    EXPECT_EQ(*a.scale, *b.scale);
    EXPECT_EQ(*a.sum, *b.sum);
    EXPECT_EQ(std::vector<int8_t>(a.high, a.high + kDim), std::vector<int8_t>(b.high, b.high + kDim));
    for (size_t c = 0; c < 3; ++c) {
      EXPECT_EQ(input.OutlierColumns(format, r)[c], ToBfloat16(with[r * kStride + format.outlier_columns[c]]).bits) << r << " " << c;
    }
  }
  EXPECT_EQ(input.Outliers(format, 0).count, nullptr);
}

TEST_F(LinearInputTest, OutliersAreLeftOutOfIntegersAndScales) {
  const InputFormat plain{GemmActivation::kInt8, kDim, kDim};
  InputFormat format = plain;
  format.outlier_threshold = 6.0f;
  for (float& x : x_) x = std::min(std::max(x, -3.0f), 3.0f);
  std::vector<float> with = x_, without = x_;  // row 0: none; row 1: 6 and -50; row 2: the last element
  const auto set = [&](int64_t row, int64_t i, float value) {
    with[row * kStride + i] = value;
    without[row * kStride + i] = 0.0f;
  };
  set(1, 3, 6.0f);
  set(1, 30, -50.0f);
  set(2, kDim - 1, 1e9f);
  with[kStride + 4] = without[kStride + 4] = 5.99f;
  LinearInput input, expected;
  input.Prepare({plain, format}, 3, kDim);
  expected.Prepare({plain}, 3, kDim);
  input.Store(context_, 0, 1, with.data(), kStride);
  input.Store(context_, 1, 2, with.data() + kStride, kStride);
  expected.Store(context_, 0, 3, without.data(), kStride);
  for (int64_t r = 0; r < 3; ++r) {
    const IntegerActivation a = input.Integers(format, r), b = expected.Integers(plain, r);
    EXPECT_EQ(*a.scale, *b.scale);
    EXPECT_EQ(*a.sum, *b.sum);
    EXPECT_EQ(std::vector<int8_t>(a.high, a.high + kDim), std::vector<int8_t>(b.high, b.high + kDim));
  }
  EXPECT_EQ(input.Outliers(plain, 0).count, nullptr);
  const OutlierActivation all = input.Outliers(format, 0), second = input.Outliers(format, 1), third = input.Outliers(format, 2);
  EXPECT_EQ(std::vector<int32_t>(all.count, all.count + 3), std::vector<int32_t>({0, 2, 1}));
  EXPECT_EQ(std::vector<int32_t>(second.index, second.index + 2), std::vector<int32_t>({3, 30}));
  EXPECT_EQ(std::vector<float>(second.value, second.value + 2), std::vector<float>({6.0f, -50.0f}));
  EXPECT_EQ(*third.index, kDim - 1);
  EXPECT_EQ(*third.value, 1e9f);
  EXPECT_EQ(second.index + second.stride, third.index);
}

TEST_F(LinearInputTest, Fp8HasAScalePerRowOrAStaticOne) {
  const InputFormat dynamic{.kind = GemmActivation::kFp8}, fixed{.kind = GemmActivation::kFp8, .static_scale = 0.01f};
  LinearInput input;
  input.Prepare({dynamic, fixed}, 3, kDim);
  EXPECT_EQ(input.bf16(), nullptr);
  input.Store(context_, 0, 1, x_.data(), kStride);
  input.Store(context_, 1, 2, x_.data() + kStride, kStride);
  for (int64_t r = 0; r < 3; ++r) {
    const float* x = x_.data() + r * kStride;
    float max = 0;
    for (int64_t i = 0; i < kDim; ++i) max = std::max(max, std::abs(x[i]));
    EXPECT_EQ(*input.Fp8Scales(dynamic, r), max / 448.0f);
    EXPECT_EQ(*input.Fp8Scales(fixed, r), 0.01f);
    for (int64_t i = 0; i < kDim; ++i) {
      EXPECT_EQ(ToFloat(bfloat16{input.Fp8Values(dynamic, r)[i]}), ToFloat(ToFloat8E4M3(x[i] * (448.0f / max))));
      EXPECT_EQ(ToFloat(bfloat16{input.Fp8Values(fixed, r)[i]}), ToFloat(ToFloat8E4M3(x[i] / 0.01f)));
    }
  }
}

// Layers of a calibrated model each have a scale of their own: their forms must not add up.
TEST_F(LinearInputTest, FormsOutOfUseAreReused) {
  const auto with_scale = [](float scale) { return InputFormat{GemmActivation::kInt8, kDim, kDim, scale}; };
  LinearInput input;
  input.Prepare({with_scale(0.5f), InputFormat{}}, 3, kDim);
  const int64_t bytes = input.bytes();
  for (int layer = 1; layer < 20; ++layer) {
    const InputFormat format = with_scale(0.5f + 0.01f * static_cast<float>(layer));
    input.Prepare({format, InputFormat{}}, 3, kDim);
    input.Store(context_, 0, 3, x_.data(), kStride);
    EXPECT_EQ(input.Integers(format, 0).scale[0], format.static_scale);
    EXPECT_EQ(input.bf16()[0], ToBfloat16(x_[0]).bits);
  }
  EXPECT_EQ(input.bytes(), bytes);
}

TEST_F(LinearInputTest, ColumnsMayBeStoredApart) {
  const InputFormat wide{GemmActivation::kInt16, 8, 4}, narrow{GemmActivation::kInt8, 16, 8}, bf16;
  LinearInput whole, parts;
  whole.Prepare({wide, narrow, bf16}, 3, kDim);
  parts.Prepare({wide, narrow, bf16}, 3, kDim);
  EXPECT_EQ(parts.column_unit(), 16);
  whole.Store(context_, 0, 3, x_.data(), kStride);
  for (const int64_t column : {16, 0}) {
    parts.StoreColumns(context_, 1, 2, column, 16, x_.data() + kStride + column, kStride);
    parts.StoreColumns(context_, 0, 1, column, 16, x_.data() + column, kStride);
  }
  for (const InputFormat& format : {wide, narrow}) {
    const IntegerActivation a = whole.Integers(format, 0), b = parts.Integers(format, 0);
    for (int64_t i = 0; i < 3 * kDim; ++i) EXPECT_EQ(a.high[i], b.high[i]);
    for (int64_t i = 0; a.low != nullptr && i < 3 * kDim; ++i) EXPECT_EQ(a.low[i], b.low[i]);
    for (int64_t i = 0; i < 3 * kDim / format.group_size; ++i) EXPECT_EQ(a.scale[i], b.scale[i]);
    for (int64_t i = 0; i < 3 * kDim / format.sum_group; ++i) EXPECT_EQ(a.sum[i], b.sum[i]);
  }
  for (int64_t i = 0; i < 3 * kDim; ++i) EXPECT_EQ(whole.bf16()[i], parts.bf16()[i]);
}

TEST_F(LinearInputTest, OneScaleForARowWantsItWhole) {
  InputFormat outliers{GemmActivation::kInt8, kDim, kDim};
  LinearInput input;
  const auto unit = [&](const InputFormat& format) {
    input.Prepare({InputFormat{}, format}, 1, kDim);
    return input.column_unit();
  };
  EXPECT_EQ(unit(InputFormat{}), 1);
  EXPECT_EQ(unit({GemmActivation::kInt16, 8, 8}), 8);
  EXPECT_EQ(unit(outliers), kDim);
  EXPECT_EQ(unit({.kind = GemmActivation::kFp8}), kDim);
  outliers = {GemmActivation::kInt8, 8, 8};
  outliers.outlier_threshold = 6.0f;
  EXPECT_EQ(unit(outliers), kDim);
}

TEST_F(LinearInputTest, Bfloat16RowsAreStoredAsTheirExactValues) {
  std::vector<uint16_t> bits;
  std::vector<float> exact;
  for (const float x : x_) {
    bits.push_back(ToBfloat16(x).bits);
    exact.push_back(RoundToBfloat16(x));
  }
  const InputFormat format{GemmActivation::kInt16, 32, 32};
  LinearInput a, b;
  a.Prepare({format}, 2, kDim);
  b.Prepare({format}, 2, kDim);
  a.StoreBf16(context_, 0, 2, bits.data(), kStride);
  b.Store(context_, 0, 2, exact.data(), kStride);
  for (int64_t i = 0; i < 2 * kDim; ++i) {
    EXPECT_EQ(a.Integers(format, 0).high[i], b.Integers(format, 0).high[i]);
    EXPECT_EQ(a.Integers(format, 0).low[i], b.Integers(format, 0).low[i]);
  }
}

TEST_F(LinearInputTest, KeepsBfloat16OnlyWhenSomebodyWantsIt) {
  const InputFormat format{GemmActivation::kInt16, 32, 32};
  LinearInput input;
  input.Prepare({format}, 1, kDim);
  EXPECT_EQ(input.bf16(), nullptr);
  input.Prepare({format}, 1, kDim, /*keep_bf16=*/true);
  ASSERT_NE(input.bf16(), nullptr);
  input.Store(context_, 0, 1, x_.data(), kStride);
  EXPECT_EQ(input.bf16()[5], ToBfloat16(x_[5]).bits);
  input.Prepare({format}, 1, kDim);
  EXPECT_EQ(input.bf16(), nullptr);
}

}  // namespace
}  // namespace pith
