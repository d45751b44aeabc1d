#include "tensor/store_float.h"

#include <gtest/gtest.h>

namespace pith {
namespace {

TEST(StoreFloatTest, RoundsToTheDtypeAndTouchesOneElement) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    Tensor tensor(dtype, {3});
    StoreFloat(1.00390625f, 1, tensor);  // 1 + 2^-8: halfway between two bf16 numbers, of which 1 is even
    float values[3];
    ASSERT_TRUE(ConvertToFloat(tensor.view(), values).ok());
    EXPECT_EQ(values[0], 0.0f);
    EXPECT_EQ(values[1], dtype == DType::kBF16 ? 1.0f : 1.00390625f);
    EXPECT_EQ(values[2], 0.0f);
  }
}

}  // namespace
}  // namespace pith
