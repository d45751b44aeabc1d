#include "quantization/formats/int_quantized.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "quantization/formats/format_test_util.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

constexpr QuantizationArgs kChannel{.num_bits = 4, .strategy = QuantizationStrategy::kChannel};

QuantizedTensor Weight() {
  QuantizedTensor weight;
  weight.out = 2;
  weight.in = 3;
  weight.bits = 4;
  weight.group_size = 3;
  weight.code = {0, 8, 15, 7, 9, 1};
  weight.scale = {0.5f, 0.25f};
  weight.scale_dtype = DType::kBF16;
  return weight;
}

TEST(IntQuantized, StoresSignedBytes) {
  const std::vector<StoredTensor> stored = *EncodeWeight("int-quantized", Weight(), kChannel);
  ASSERT_EQ(stored.size(), 2);
  EXPECT_EQ(stored[0].suffix, "weight");
  EXPECT_EQ(stored[0].tensor.shape(), (Shape{2, 3}));
  EXPECT_THAT(stored[0].tensor.as<int8_t>(), ::testing::ElementsAre(-8, 0, 7, -1, 1, -7));
  EXPECT_EQ(stored[1].suffix, "weight_scale");
  EXPECT_EQ(stored[1].tensor.shape(), (Shape{2, 1}));
  const absl::StatusOr<MatrixShape> shape = ReadWeightShape("int-quantized", kChannel, Views(stored));
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ(shape->out, 2);
  EXPECT_EQ(shape->in, 3);
}

TEST(IntQuantized, StoresSignedZeroPointsInTheScalesShape) {
  QuantizedTensor weight = Weight();
  weight.zero_point = {0, 15};
  QuantizationArgs args = kChannel;
  args.symmetric = false;
  const std::vector<StoredTensor> stored = *EncodeWeight("naive-quantized", weight, args);
  ASSERT_EQ(stored.size(), 3);
  EXPECT_EQ(stored[2].tensor.shape(), (Shape{2, 1}));
  EXPECT_THAT(stored[2].tensor.as<int8_t>(), ::testing::ElementsAre(-8, 7));
  const absl::StatusOr<QuantizedTensor> decoded = DecodeWeight("naive-quantized", Views(stored), args, {2, 3});
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->zero_point, weight.zero_point);
  EXPECT_EQ(decoded->format, "naive-quantized");
  // 6 bytes of codes, 4 of scales, 2 of zero points for 6 weights.
  EXPECT_DOUBLE_EQ(decoded->stored_bits_per_weight, 16.0);
}

TEST(IntQuantized, RefusesCodesBeyondTheirBits) {
  std::vector<StoredTensor> stored = *EncodeWeight("int-quantized", Weight(), kChannel);
  stored[0].tensor.as<int8_t>()[4] = 8;
  const absl::Status status = DecodeWeight("int-quantized", Views(stored), kChannel, {2, 3}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "m.weight[1][1]: expected a 4-bit code in [-8, 7], found 8");
  stored[0].tensor.as<int8_t>()[4] = -9;
  EXPECT_THAT(DecodeWeight("int-quantized", Views(stored), kChannel, {2, 3}).status().message(), HasSubstr("found -9"));
}

TEST(IntQuantized, NamesTheTensorThatDoesNotFit) {
  const std::vector<StoredTensor> stored = *EncodeWeight("int-quantized", Weight(), kChannel);
  EXPECT_EQ(CheckWeight("int-quantized", Views(stored), kChannel, {3, 2}).message(), "m.weight: expected I8 [3, 2], found I8 [2, 3]");
  QuantizationArgs asymmetric = kChannel;
  asymmetric.symmetric = false;
  EXPECT_EQ(CheckWeight("int-quantized", Views(stored), asymmetric, {2, 3}).message(),
            "m.weight_zero_point: expected I8 [2, 1] (per channel), found no such tensor");
  ModuleTensors wrong = Views(stored);
  wrong.tensors[0].view.dtype = DType::kU8;
  EXPECT_EQ(ReadWeightShape("int-quantized", kChannel, wrong).status().message(), "m.weight: expected I8 [out, in], found U8 [2, 3]");
  EXPECT_FALSE(ReadWeightShape("int-quantized", kChannel, {"m", {}}).ok());
}

TEST(IntQuantized, AcceptsZeroZeroPointsOfASymmetricWeight) {
  const std::vector<StoredTensor> stored = *EncodeWeight("int-quantized", Weight(), kChannel);
  Tensor zero_point(DType::kI8, {2, 1});
  ModuleTensors tensors = Views(stored);
  tensors.tensors.push_back({"weight_zero_point", zero_point.view()});
  const absl::StatusOr<QuantizedTensor> decoded = DecodeWeight("int-quantized", tensors, kChannel, {2, 3});
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(decoded->zero_point.empty());
  zero_point.as<int8_t>()[1] = 1;
  EXPECT_THAT(DecodeWeight("int-quantized", tensors, kChannel, {2, 3}).status().message(),
              HasSubstr("m.weight_zero_point: expected zeros in a symmetric weight, found 1 at index 1"));
}

}  // namespace
}  // namespace pith
