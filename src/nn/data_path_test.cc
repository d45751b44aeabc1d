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

TEST(DescribeStorage, NamesTheSchemeOfQuantizedActivations) {
  const QuantizationArgs int8_token{.strategy = QuantizationStrategy::kToken, .dynamic = true};
  QuantizationArgs fp8_token = int8_token;
  fp8_token.type = QuantizationType::kFloat;
  const QuantizationArgs fp8_groups{
      .type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kGroup, .group_size = 128, .dynamic = true};
  const auto scheme = [](int bits, QuantizationType type, const std::optional<InputQuantization>& input) {
    TestMatrix matrix = RandomQuantized("m", 4, 32, bits, 32, TestOffset::kSymmetric, 1, "int-quantized");
    matrix.quantized->type = type;
    matrix.input = input;
    return DescribeStorage(matrix.Source()).scheme;
  };
  constexpr QuantizationType kInt = QuantizationType::kInt, kFloat = QuantizationType::kFloat;
  EXPECT_EQ(scheme(4, kInt, InputQuantization{int8_token}), "W4A8");
  EXPECT_EQ(scheme(8, kInt, InputQuantization{int8_token}), "W8A8");
  EXPECT_EQ(scheme(8, kInt, InputQuantization{{}, 0.5f}), "W8A8_STATIC");
  EXPECT_EQ(scheme(3, kInt, InputQuantization{int8_token}), "W3A8");
  EXPECT_EQ(scheme(4, kInt, InputQuantization{fp8_token}), "W4AFP8");
  EXPECT_EQ(scheme(8, kFloat, InputQuantization{{.type = kFloat}, 0.5f}), "FP8");
  EXPECT_EQ(scheme(8, kFloat, InputQuantization{fp8_token}), "FP8_DYNAMIC");
  EXPECT_EQ(scheme(8, kFloat, InputQuantization{fp8_groups}), "FP8_BLOCK");
  EXPECT_EQ(scheme(8, kFloat, std::nullopt), "WFP8A16");
}

TEST(DescribeStorage, OutliersMakeLlmInt8WhateverTheContainer) {
  TestMatrix matrix = RandomWithOutlierColumns("m", 4, 32, {3}, 1);
  EXPECT_EQ(DescribeStorage(matrix.Source()).scheme, "LLM_INT8");
  EXPECT_EQ(DescribeStorage(matrix.Source()).packing, "bitsandbytes");
  matrix.input->args = {.strategy = QuantizationStrategy::kToken, .dynamic = true};
  EXPECT_EQ(DescribeStorage(matrix.Source()).scheme, "bitsandbytes");
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
