// The formulas of the header, by definition, on every instruction set.
#include "kernels/quantize_activation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/cpu_features.h"
#include "base/random.h"
#include "gtest/gtest.h"
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
    if (row->quantize_activation != nullptr && static_cast<int>(row->isa) <= static_cast<int>(DetectIsa())) rows.push_back(row);
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

const Shape kShapes[] = {{1, 8, 8, 8}, {3, 64, 16, 4}, {2, 96, 32, 32}, {2, 576, 576, 64}, {1, 36, 12, 12}, {2, 896, 128, 128}};

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
  }
}

}  // namespace
}  // namespace pith
