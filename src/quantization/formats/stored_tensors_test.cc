#include "quantization/formats/stored_tensors.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

constexpr QuantizationArgs kGroup{.num_bits = 4, .strategy = QuantizationStrategy::kGroup, .group_size = 2};
constexpr QuantizationArgs kChannel{.num_bits = 4, .strategy = QuantizationStrategy::kChannel};
constexpr QuantizationArgs kTensor{.num_bits = 4, .strategy = QuantizationStrategy::kTensor};

QuantizedTensor TwoByFour(const QuantizationArgs& args) {
  QuantizedTensor weight;
  weight.out = 2;
  weight.in = 4;
  weight.bits = args.num_bits;
  weight.group_size = args.strategy == QuantizationStrategy::kGroup ? args.group_size : 4;
  weight.code.assign(8, 3);
  weight.scale.assign(static_cast<size_t>(2 * weight.num_groups()), 0.5f);
  if (!args.symmetric) weight.zero_point.assign(weight.scale.size(), 5);
  return weight;
}

TEST(ModuleTensors, FindsBySuffix) {
  const Tensor tensor(DType::kI8, {1});
  const ModuleTensors tensors{"a.b", {{"weight", tensor.view()}}};
  EXPECT_EQ(tensors.Find("weight")->data, tensor.data());
  EXPECT_EQ(tensors.Find("weight_scale"), nullptr);
  EXPECT_EQ(tensors.NameOf("weight_scale"), "a.b.weight_scale");
}

TEST(CheckTensor, NamesExpectationAndFinding) {
  const Tensor tensor(DType::kI32, {2, 3});
  const ModuleTensors tensors{"a.b", {{"weight_packed", tensor.view()}}};
  EXPECT_TRUE(CheckTensor(tensors, "weight_packed", {DType::kI32}, {2, 3}, "").ok());
  EXPECT_EQ(CheckTensor(tensors, "weight_packed", {DType::kI32}, {2, 4}, "(4-bit, in=32)").message(),
            "a.b.weight_packed: expected I32 [2, 4] (4-bit, in=32), found I32 [2, 3]");
  EXPECT_EQ(CheckTensor(tensors, "weight_packed", {DType::kI8, DType::kU8}, {2, 3}, "").message(),
            "a.b.weight_packed: expected I8 or U8 [2, 3], found I32 [2, 3]");
  EXPECT_EQ(CheckTensor(tensors, "weight_packed", {DType::kI32}, {6}, "").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(CheckTensor(tensors, "weight_scale", {DType::kF32}, {1}, "").message(),
            "a.b.weight_scale: expected F32 [1], found no such tensor");
}

TEST(CheckOnlyTensors, NamesTheUnexpectedOne) {
  const ModuleTensors tensors{"a.b", {{"weight", {}}, {"weight_scale_2", {}}}};
  EXPECT_TRUE(CheckOnlyTensors(tensors, {"weight", "weight_scale_2"}).ok());
  EXPECT_EQ(CheckOnlyTensors(tensors, {"weight", "weight_scale"}).message(),
            "a.b.weight_scale_2: expected only weight, weight_scale of this module, found this tensor too");
}

TEST(CheckMatrixShape, BoundsSidesAndGroups) {
  EXPECT_TRUE(CheckMatrixShape("w", kGroup, {2, 4}).ok());
  EXPECT_EQ(CheckMatrixShape("w", kGroup, {2, 5}).message(), "w: expected rows that the group size 2 divides, found in=5");
  EXPECT_TRUE(CheckMatrixShape("w", kChannel, {2, 5}).ok());
  EXPECT_FALSE(CheckMatrixShape("w", kChannel, {0, 5}).ok());
  EXPECT_FALSE(CheckMatrixShape("w", kChannel, {2, -5}).ok());
  EXPECT_FALSE(CheckMatrixShape("w", kChannel, {2, int64_t{1} << 62}).ok());
}

TEST(ScaleShape, PerStrategy) {
  EXPECT_EQ(ScaleShape(kGroup, {6, 8}), (Shape{6, 4}));
  EXPECT_EQ(ScaleShape(kChannel, {6, 8}), (Shape{6, 1}));
  EXPECT_EQ(ScaleShape(kTensor, {6, 8}), (Shape{1}));
}

TEST(DecodeScales, RepeatsAPerTensorScale) {
  Tensor scale(DType::kBF16, {1});
  scale.as<bfloat16>()[0] = ToBfloat16(0.25f);
  const absl::StatusOr<QuantizedTensor> weight = DecodeScales({"m", {{"weight_scale", scale.view()}}}, kTensor, {3, 8});
  ASSERT_TRUE(weight.ok());
  EXPECT_EQ(weight->scale, (std::vector<float>{0.25f, 0.25f, 0.25f}));
  EXPECT_EQ(weight->group_size, 8);
  EXPECT_EQ(weight->scale_dtype, DType::kBF16);
}

TEST(DecodeScales, RefusesScalesThatAreNotFinite) {
  Tensor scale(DType::kF32, {2, 2});
  scale.as<float>()[3] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(DecodeScales({"m", {{"weight_scale", scale.view()}}}, kGroup, {2, 4}).status().message(),
            "m.weight_scale: expected finite scales, found inf at index 3");
}

TEST(DecodeZeroPoints, ChecksTheRange) {
  QuantizationArgs asymmetric = kGroup;
  asymmetric.symmetric = false;
  QuantizedTensor weight = TwoByFour(kGroup);
  ASSERT_TRUE(DecodeZeroPoints(
                  {"m", {}}, asymmetric, [](int64_t i) { return static_cast<int>(i) * 5; }, weight)
                  .ok());
  EXPECT_EQ(weight.zero_point, (std::vector<uint8_t>{0, 5, 10, 15}));
  EXPECT_EQ(DecodeZeroPoints(
                {"m", {}}, asymmetric, [](int64_t i) { return i == 2 ? 16 : 0; }, weight)
                .message(),
            "m.weight_zero_point: expected values in [-8, 7], found 8 at index 2");
  QuantizedTensor symmetric = TwoByFour(kGroup);
  EXPECT_TRUE(DecodeZeroPoints(
                  {"m", {}}, kGroup, [](int64_t) { return 8; }, symmetric)
                  .ok());
  EXPECT_TRUE(symmetric.zero_point.empty());
  EXPECT_THAT(DecodeZeroPoints(
                  {"m", {}}, kGroup, [](int64_t) { return 9; }, symmetric)
                  .message(),
              HasSubstr("expected zeros in a symmetric weight, found 1 at index 0"));
}

TEST(CheckEncodable, NamesWhatDiffers) {
  EXPECT_TRUE(CheckEncodable(TwoByFour(kGroup), kGroup).ok());
  EXPECT_TRUE(CheckEncodable(TwoByFour(kTensor), kTensor).ok());
  QuantizationArgs args = kGroup;
  args.num_bits = 8;
  EXPECT_EQ(CheckEncodable(TwoByFour(kGroup), args).message(), "weight: expected 8-bit codes, found 4-bit codes");
  EXPECT_EQ(CheckEncodable(TwoByFour(kGroup), kChannel).message(), "weight: expected groups of 4 (per channel), found 2");
  args = kGroup;
  args.symmetric = false;
  EXPECT_EQ(CheckEncodable(TwoByFour(kGroup), args).message(), "weight: expected zero points (asymmetric), found none");
  EXPECT_EQ(CheckEncodable(TwoByFour(args), kGroup).message(), "weight: expected no zero points (symmetric), found some");
  QuantizedTensor weight = TwoByFour(kTensor);
  weight.scale[1] = 0.75f;
  EXPECT_THAT(CheckEncodable(weight, kTensor).message(), HasSubstr("expected one scale and zero point (per tensor)"));
  weight = TwoByFour(kGroup);
  weight.min.assign(4, 0.0f);
  weight.format = "Q4_K";
  EXPECT_THAT(CheckEncodable(weight, kGroup).message(), HasSubstr("found minimums (Q4_K)"));
  EXPECT_FALSE(CheckEncodable(TwoByFour(kGroup), {.num_bits = 4, .strategy = QuantizationStrategy::kToken, .dynamic = true}).ok());
}

TEST(CheckGroupIndexValues, AcceptsOnlyNeighbouringColumns) {
  Tensor index(DType::kI32, {4});
  const ModuleTensors tensors{"m", {{"weight_g_idx", index.view()}}};
  index.as<int32_t>()[2] = index.as<int32_t>()[3] = 1;
  EXPECT_TRUE(CheckGroupIndex(tensors, kGroup, {2, 4}).ok());
  EXPECT_TRUE(CheckGroupIndexValues(tensors, kGroup).ok());
  index.as<int32_t>()[1] = 1;
  const absl::Status permuted = CheckGroupIndexValues(tensors, kGroup);
  EXPECT_EQ(permuted.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(permuted.message(), HasSubstr("m.weight_g_idx[1]: expected 0 (groups of neighbouring columns), found 1"));
  index.as<int32_t>()[1] = index.as<int32_t>()[3] = 0;
  EXPECT_THAT(CheckGroupIndexValues(tensors, kGroup).message(), HasSubstr("m.weight_g_idx[3]: expected 1"));
  EXPECT_EQ(CheckGroupIndex(tensors, kChannel, {2, 4}).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(CheckGroupIndex(tensors, kGroup, {2, 6}).code(), absl::StatusCode::kDataLoss);
}

TEST(EncodeScales, KeepsTheStoredType) {
  QuantizedTensor weight = TwoByFour(kGroup);
  weight.scale = {0.5f, 1.5f, -2.0f, 0.0078125f};
  weight.scale_dtype = DType::kF16;
  const StoredTensor stored = EncodeScales(weight, kGroup);
  EXPECT_EQ(stored.suffix, "weight_scale");
  EXPECT_EQ(stored.tensor.dtype(), DType::kF16);
  EXPECT_EQ(stored.tensor.shape(), (Shape{2, 2}));
  EXPECT_EQ(ToFloat(stored.tensor.as<float16>()[2]), -2.0f);
  weight.scale_dtype = DType::kF32;
  EXPECT_EQ(EncodeScales(weight, kGroup).tensor.as<float>()[1], 1.5f);
}

}  // namespace
}  // namespace pith
