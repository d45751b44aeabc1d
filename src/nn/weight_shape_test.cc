#include "nn/weight_shape.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/test_matrix.h"

namespace pith {
namespace {

using testing::ElementsAre;

TEST(WeightShape, IsThatOfTheSource) {
  const TestMatrix dense = RandomDense("a", 24, 64, 1), packed = RandomQuantized("b", 16, 64, 6, 32, TestOffset::kMin, 2);
  TestMatrix fixed = packed;
  fixed.input = InputQuantization{{}, 0.5f};
  EXPECT_EQ(ShapeOf(fixed.Source()).input, fixed.input);
  const WeightShape a = ShapeOf(dense.Source(std::vector<float>(24))), b = ShapeOf(packed.Source());
  EXPECT_TRUE(a.dense());
  EXPECT_TRUE(a.has_bias);
  EXPECT_EQ(a.out, 24);
  EXPECT_FALSE(b.dense());
  EXPECT_EQ(b.bits, 6);
  EXPECT_EQ(b.group_size, 32);
  EXPECT_TRUE(b.has_min);
  EXPECT_FALSE(b.has_zero_point);
  EXPECT_FALSE(b.has_bias);
}

TEST(WeightShape, NeighboursOfOneLayoutBecomeOneMatrix) {
  const WeightShape dense{.out = 16, .in = 64};
  WeightShape four{.out = 8, .in = 64, .bits = 4, .group_size = 32};
  WeightShape six = four, zero = four, min = four, wide = four, fp8 = four, per_token = four, fixed = four;
  six.bits = 6;
  zero.has_zero_point = true;
  min.has_min = true;
  wide.group_size = 64;
  fp8.type = QuantizationType::kFloat;
  per_token.input = InputQuantization{{.strategy = QuantizationStrategy::kToken, .dynamic = true}};
  fixed.input = InputQuantization{{}, 0.5f};
  WeightShape other_scale = fixed;
  other_scale.input->static_scale = 0.25f;
  EXPECT_THAT(MatrixEnds({per_token, per_token, fixed, fixed, other_scale}), ElementsAre(2, 4, 5));
  EXPECT_THAT(MatrixEnds({dense}), ElementsAre(1));
  EXPECT_THAT(MatrixEnds({dense, dense, dense}), ElementsAre(3));
  EXPECT_THAT(MatrixEnds({four, four, six}), ElementsAre(2, 3));
  EXPECT_THAT(MatrixEnds({dense, four, four, dense}), ElementsAre(1, 3, 4));
  for (const WeightShape& other : {dense, six, zero, min, wide, fp8, per_token, fixed})
    EXPECT_THAT(MatrixEnds({four, other}), ElementsAre(1, 2));
}

}  // namespace
}  // namespace pith
