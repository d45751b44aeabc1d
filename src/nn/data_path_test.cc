#include "nn/data_path.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/test_matrix.h"

namespace pith {
namespace {

TEST(DescribeStorage, NamesTheScheme) {
  const auto scheme = [](int bits, TestOffset offset, const char* format) {
    return DescribeStorage(RandomQuantized("m", 4, 32, bits, 32, offset, 1, format).Source()).scheme;
  };
  EXPECT_EQ(scheme(4, TestOffset::kSymmetric, "pack-quantized"), "W4A16");
  EXPECT_EQ(scheme(4, TestOffset::kZeroPoint, "pack-quantized"), "W4A16_ASYM");
  EXPECT_EQ(scheme(8, TestOffset::kSymmetric, "int-quantized"), "W8A16");
  EXPECT_EQ(scheme(4, TestOffset::kMin, "Q4_K"), "Q4_K");
}

TEST(DescribeStorage, SaysWhenDenseWeightsAreRounded) {
  EXPECT_EQ(DescribeStorage(RandomDense("m", 2, 4, 1, DType::kBF16).Source()).packing, "bf16");
  const TensorDataPath f16 = DescribeStorage(RandomDense("m", 2, 4, 1, DType::kF16).Source());
  EXPECT_EQ(f16.packing, "f16 rounded to bf16");
  EXPECT_EQ(f16.stored_bits, 16);
  EXPECT_EQ(f16.stored_bytes, 16);
  EXPECT_EQ(f16.scale_dtype, "");
}

}  // namespace
}  // namespace pith
