// The formulas of the header, by definition, on every instruction set.
#include "kernels/quantize_activation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/cpu_features.h"
#include "base/float_types.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "kernels/operator_test_fixture.h"
#include "kernels/registry.h"

namespace pith {
namespace {

struct Result {
  std::vector<int8_t> high, low;
  std::vector<float> scale;
  std::vector<int32_t> sum;
  friend bool operator==(const Result&, const Result&) = default;
};

struct Shape {
  int64_t rows, dim, group_size, sum_group;
};

std::vector<const OperatorEntry*> Rows() {
  std::vector<const OperatorEntry*> rows;
  for (const OperatorEntry* row : AllOperators()) {
    if (row->quantize_activation != nullptr && RunsHere(row->isa)) rows.push_back(row);
  }
  return rows;
}

Result Quantize(const OperatorEntry& row, const Shape& shape, const std::vector<float>& x, bool two_planes, float static_scale = 0) {
  const int64_t groups = shape.dim / shape.group_size, sums = shape.dim / shape.sum_group;
  Result result{std::vector<int8_t>(shape.rows * shape.dim), std::vector<int8_t>(two_planes ? shape.rows * shape.dim : 0),
                std::vector<float>(shape.rows * groups), std::vector<int32_t>(shape.rows * sums)};
  row.quantize_activation({.x = x.data(),
                           .x_stride = shape.dim,
                           .num_rows = shape.rows,
                           .dim = shape.dim,
                           .group_size = shape.group_size,
                           .sum_group = shape.sum_group,
                           .static_scale = static_scale,
                           .high = result.high.data(),
                           .low = two_planes ? result.low.data() : nullptr,
                           .out_stride = shape.dim,
                           .scale = result.scale.data(),
                           .scale_stride = groups,
                           .sum = result.sum.data(),
                           .sum_stride = sums});
  return result;
}

std::vector<float> Inputs(const Shape& shape, uint64_t seed) {
  RandomStream random(seed);
  std::vector<float> x(shape.rows * shape.dim);
  for (float& value : x) value = random.Normal() * std::exp2(static_cast<float>(random.Below(20)) - 10.0f);
  return x;
}

const Shape kShapes[] = {{1, 8, 8, 8},    {3, 64, 16, 4},     {2, 96, 32, 32},   {2, 576, 576, 64},
                         {1, 36, 12, 12}, {2, 896, 128, 128}, {2, 296, 148, 148}};  // whole vectors of every length, and a rest

TEST(QuantizeActivation, IsTheFormulaOfTheHeader) {
  for (const OperatorEntry* row : Rows()) {
    for (const Shape& shape : kShapes) {
      const std::vector<float> x = Inputs(shape, 1);
      for (const bool two_planes : {false, true}) {
        const float limit = two_planes ? kInt16ActivationLimit : kInt8ActivationLimit;
        const Result result = Quantize(*row, shape, x, two_planes);
        std::vector<int32_t> sums(result.sum.size());
        for (int64_t i = 0; i < shape.rows * shape.dim; ++i) {
          const int64_t g = i / shape.group_size;
          float max = 0;
          for (int64_t j = g * shape.group_size; j < (g + 1) * shape.group_size; ++j) max = std::max(max, std::abs(x[j]));
          EXPECT_EQ(result.scale[g], max / limit);
          const int32_t expected = static_cast<int32_t>(std::nearbyint(x[i] * (limit / max)));
          const int32_t q = two_planes ? 256 * result.high[i] + result.low[i] : result.high[i];
          ASSERT_EQ(q, expected) << row->name << " " << i;
          sums[i / shape.sum_group] += q;
        }
        EXPECT_EQ(result.sum, sums) << row->name;
      }
    }
  }
}

TEST(QuantizeActivation, TheLargestValuesFitTheirPlanes) {
  const Shape shape{1, 16, 16, 16};
  for (const OperatorEntry* row : Rows()) {
    std::vector<float> x(16, 0.0f);
    x[3] = 5.0f;
    x[4] = -5.0f;
    const Result result = Quantize(*row, shape, x, true);
    EXPECT_EQ(256 * result.high[3] + result.low[3], 32639) << row->name;
    EXPECT_EQ(256 * result.high[4] + result.low[4], -32639) << row->name;
    EXPECT_EQ(result.sum[0], 0);
  }
}

TEST(QuantizeActivation, ZerosAndTinyValuesHaveScaleZero) {
  const Shape shape{1, 16, 8, 8};
  for (const OperatorEntry* row : Rows()) {
    std::vector<float> x(16, 0.0f);
    x[9] = 9e-31f;
    const Result result = Quantize(*row, shape, x, true);
    EXPECT_EQ(result.scale, std::vector<float>({0, 0})) << row->name;
    EXPECT_EQ(result.high, std::vector<int8_t>(16, 0));
    EXPECT_EQ(result.low, std::vector<int8_t>(16, 0));
  }
}

TEST(QuantizeActivation, AStaticScaleClamps) {
  const Shape shape{1, 8, 8, 8};
  for (const OperatorEntry* row : Rows()) {
    const Result result = Quantize(*row, shape, {0.25f, 0.75f, -0.75f, 63.4f, 63.6f, 1e9f, -1e9f, -64.2f}, false, 0.5f);
    EXPECT_EQ(result.high, std::vector<int8_t>({0, 2, -2, 127, 127, 127, -128, -128})) << row->name;
    EXPECT_EQ(result.scale[0], 0.5f);
    EXPECT_EQ(result.sum[0], 127 + 127 + 127 - 128 - 128);
  }
}

TEST(QuantizeActivation, EveryIsaGivesTheSameBits) {
  for (const Shape& shape : kShapes) {
    const std::vector<float> x = Inputs(shape, 2);
    for (const bool two_planes : {false, true}) {
      const Result first = Quantize(*Rows().front(), shape, x, two_planes);
      for (const OperatorEntry* row : Rows()) EXPECT_TRUE(Quantize(*row, shape, x, two_planes) == first) << row->name;
    }
    const Result first = Quantize(*Rows().front(), shape, x, false, 0.02f);
    for (const OperatorEntry* row : Rows()) EXPECT_TRUE(Quantize(*row, shape, x, false, 0.02f) == first) << row->name;
  }
}

// Rows of `dim` with `gap` elements behind each that must not be written; scales behind the values.
std::vector<float> QuantizeFp8(void (*run)(const QuantizeActivationFp8Params&), const std::vector<float>& x, int64_t rows,
                               float static_scale = 0) {
  constexpr int64_t kGap = 3;
  const int64_t dim = static_cast<int64_t>(x.size()) / rows;
  const PageEndBuffer<float> readable(x);
  GuardedBuffer<uint16_t> out(rows * (dim + kGap), 0xBEEF);
  GuardedBuffer<float> scale(rows);
  run({.x = readable.data(),
       .x_stride = dim,
       .num_rows = rows,
       .dim = dim,
       .static_scale = static_scale,
       .out = out.data(),
       .out_stride = dim + kGap,
       .scale = scale.data()});
  EXPECT_TRUE(out.Intact() && scale.Intact());
  std::vector<float> values;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < dim; ++i) values.push_back(FromBits(out[r * (dim + kGap) + i]));
    for (int64_t i = dim; i < dim + kGap; ++i) EXPECT_EQ(out[r * (dim + kGap) + i], 0xBEEF);
  }
  for (int64_t r = 0; r < rows; ++r) values.push_back(scale[r]);
  return values;
}

TEST(QuantizeActivationFp8, IsTheFormulaOfTheHeader) {
  for (const auto& row : RunnableRows(&OperatorEntry::quantize_activation_fp8)) {
    for (const int64_t dim : {1, 7, 8, 16, 17, 31, 64, 577, 896}) {
      const std::vector<float> x = Inputs({3, dim, 1, 1}, static_cast<uint64_t>(dim));
      const std::vector<float> got = QuantizeFp8(row.run, x, 3);
      for (int64_t r = 0; r < 3; ++r) {
        float max = 0;
        for (int64_t i = 0; i < dim; ++i) max = std::max(max, std::abs(x[r * dim + i]));
        EXPECT_EQ(got[3 * dim + r], max / 448.0f) << row.name;
        for (int64_t i = r * dim; i < (r + 1) * dim; ++i) {
          ASSERT_EQ(got[i], ToFloat(ToFloat8E4M3(x[i] * (448.0f / max)))) << row.name << " dim " << dim << " element " << i;
        }
      }
    }
  }
}

TEST(QuantizeActivationFp8, TiesSubnormalsZerosAndAStaticScale) {
  for (const auto& row : RunnableRows(&OperatorEntry::quantize_activation_fp8)) {
    EXPECT_EQ(QuantizeFp8(row.run, {0.0f, 9e-31f, -9e-31f, 0.0f}, 2), std::vector<float>({0, 0, 0, 0, 0, 0})) << row.name;
    // 448 makes the scale 1: ties to even at 3 bits of mantissa, and below 2^-6 at steps of 2^-9.
    EXPECT_EQ(QuantizeFp8(row.run, {448.0f, 17.0f, 19.0f, -17.0f, 0x1p-10f, 0x3p-10f, -0x1.8p-7f, 0x1p-11f, 0x1.ffp-7f}, 1),
              std::vector<float>({448.0f, 16.0f, 20.0f, -16.0f, 0.0f, 0x1p-8f, -0x1.8p-7f, 0.0f, 0x1p-6f, 1.0f}))
        << row.name;
    EXPECT_EQ(QuantizeFp8(row.run, {0.5f, -8.5f, 223.0f, 1e9f, -1e30f}, 1, 0.5f),
              std::vector<float>({1.0f, -16.0f, 448.0f, 448.0f, -448.0f, 0.5f}))
        << row.name;
  }
}

TEST(QuantizeActivationFp8, EveryIsaGivesTheSameBits) {
  const auto rows = RunnableRows(&OperatorEntry::quantize_activation_fp8);
  for (const int64_t dim : {5, 96, 576}) {
    const std::vector<float> x = Inputs({4, dim, 1, 1}, 9);
    for (const float static_scale : {0.0f, 0.013f}) {
      const std::vector<float> first = QuantizeFp8(rows.front().run, x, 4, static_scale);
      for (const auto& row : rows) EXPECT_EQ(QuantizeFp8(row.run, x, 4, static_scale), first) << row.name;
    }
  }
}

}  // namespace
}  // namespace pith
