#include "quantization/formats/float_quantized.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "quantization/formats/format_test_util.h"

namespace pith {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr QuantizationArgs kBlock{
    .type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kBlock, .block_rows = 2, .block_cols = 2};

// Three rows of two blocks; the last row is a block row of its own.
QuantizedTensor Weight() {
  QuantizedTensor weight;
  weight.out = 3;
  weight.in = 4;
  weight.type = QuantizationType::kFloat;
  weight.group_size = 2;
  weight.code = {0x38, 0xB8, 0x7E, 0xFE, 0x00, 0x80, 0x01, 0x81, 0x40, 0x3C, 0x08, 0x30};
  weight.scale = {0.5f, 2.0f, 0.5f, 2.0f, 1.0f, 4.0f};
  weight.scale_dtype = DType::kBF16;
  return weight;
}

TEST(FloatQuantized, StoresTheBitsAndOneScalePerBlock) {
  for (const char* format : {"float-quantized", "naive-quantized"}) {
    const std::vector<StoredTensor> stored = *EncodeWeight(format, Weight(), kBlock);
    ASSERT_EQ(stored.size(), 2);
    EXPECT_EQ(stored[0].suffix, "weight");
    EXPECT_EQ(stored[0].tensor.dtype(), DType::kF8E4M3);
    EXPECT_EQ(stored[0].tensor.shape(), (Shape{3, 4}));
    EXPECT_EQ(stored[0].tensor.data()[2], 0x7E);
    EXPECT_EQ(stored[1].suffix, "weight_scale");
    EXPECT_EQ(stored[1].tensor.shape(), (Shape{2, 2}));
    EXPECT_THAT(stored[1].tensor.as<bfloat16>(), ElementsAre(ToBfloat16(0.5f), ToBfloat16(2.0f), ToBfloat16(1.0f), ToBfloat16(4.0f)));
    const absl::StatusOr<QuantizedTensor> decoded = DecodeWeight(format, Views(stored), kBlock, {3, 4});
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->code, Weight().code);
    EXPECT_EQ(decoded->scale, Weight().scale);
    EXPECT_EQ(decoded->format, format);
    EXPECT_DOUBLE_EQ(decoded->stored_bits_per_weight, (12 + 8) * 8.0 / 12);
    std::vector<float> row(4);
    decoded->DequantizeRow(0, absl::MakeSpan(row));
    EXPECT_THAT(row, ElementsAre(0.5f, -0.5f, 896.0f, -896.0f));
    decoded->DequantizeRow(1, absl::MakeSpan(row));
    EXPECT_THAT(row, ElementsAre(0.0f, 0.0f, 0x1p-8f, -0x1p-8f));
  }
}

TEST(FloatQuantized, NamesACodeThatIsNoNumber) {
  for (const uint8_t nan : {uint8_t{0x7F}, uint8_t{0xFF}}) {
    std::vector<StoredTensor> stored = *EncodeWeight("float-quantized", Weight(), kBlock);
    stored[0].tensor.data()[6] = nan;
    const absl::Status status = DecodeWeight("float-quantized", Views(stored), kBlock, {3, 4}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(status.message(), "m.weight[1][2]: expected a number, found NaN");
  }
}

TEST(FloatQuantized, RowsMustBeOfWholeBlocks) {
  Tensor codes(DType::kF8E4M3, {2, 3}), scales(DType::kBF16, {1, 2});
  const ModuleTensors tensors{"m", {{"weight", codes.view()}, {"weight_scale", scales.view()}}};
  const absl::Status status = CheckWeight("float-quantized", tensors, kBlock, {2, 3});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(), "m.weight: expected rows of whole blocks of 2, found in=3");
  EXPECT_EQ(PlanWeight("float-quantized", kBlock, {2, 3}, DType::kBF16).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(FloatQuantized, RefusesWhatItCannotStore) {
  QuantizedTensor weight = Weight();
  weight.scale[2] = 1.0f;  // row 1 in the block of row 0
  EXPECT_THAT(EncodeWeight("float-quantized", weight, kBlock).status().message(), HasSubstr("one scale and zero point (per block)"));
  weight = Weight();
  weight.type = QuantizationType::kInt;
  EXPECT_THAT(EncodeWeight("float-quantized", weight, kBlock).status().message(), HasSubstr("expected float codes, found integer codes"));
  const std::vector<StoredTensor> stored = *EncodeWeight("float-quantized", Weight(), kBlock);
  ModuleTensors wrong = Views(stored);
  wrong.tensors[0].view.dtype = DType::kI8;
  EXPECT_EQ(ReadWeightShape("float-quantized", kBlock, wrong).status().message(), "m.weight: expected F8_E4M3 [out, in], found I8 [3, 4]");
}

}  // namespace
}  // namespace pith
