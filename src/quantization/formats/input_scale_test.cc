#include "quantization/formats/input_scale.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

constexpr QuantizationArgs kStatic{};
constexpr QuantizationArgs kDynamic{.strategy = QuantizationStrategy::kToken, .dynamic = true};

Tensor F32Scalar(float value) {
  Tensor tensor(DType::kF32, {1});
  tensor.as<float>()[0] = value;
  return tensor;
}

absl::StatusOr<std::optional<InputQuantization>> Read(const std::vector<std::pair<std::string, const Tensor*>>& tensors,
                                                      const std::optional<QuantizationArgs>& args) {
  ModuleTensors views{"m", {}};
  for (const auto& [suffix, tensor] : tensors) views.tensors.push_back({suffix, tensor->view()});
  return ReadInputQuantization(views, args);
}

TEST(InputScale, StaticActivationsHaveOne) {
  Tensor bf16(DType::kBF16, {1});
  bf16.as<bfloat16>()[0] = ToBfloat16(0.25f);
  const Tensor f32 = F32Scalar(0.1f);
  for (const auto& [scale, value] : {std::pair(&f32, 0.1f), std::pair<const Tensor*, float>(&bf16, 0.25f)}) {
    const auto input = Read({{"input_scale", scale}}, kStatic);
    ASSERT_TRUE(input.ok() && input->has_value()) << input.status();
    EXPECT_EQ(**input, (InputQuantization{kStatic, value}));
  }
  const absl::Status missing = Read({}, kStatic).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(missing.message(), "m.input_scale: expected BF16 or F16 or F32 [1] (static activations), found no such tensor");
}

TEST(InputScale, MustBeFiniteAndPositive) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {0.0f, -1.0f, kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    const Tensor scale = F32Scalar(value);
    const absl::Status status = Read({{"input_scale", &scale}}, kStatic).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr("m.input_scale: expected a finite positive scale, found "));
  }
}

TEST(InputScale, DynamicActivationsHaveNone) {
  const Tensor scale = F32Scalar(1.0f);
  EXPECT_EQ(**Read({}, kDynamic), (InputQuantization{kDynamic, 0}));
  EXPECT_FALSE((*Read({}, std::nullopt)).has_value());
  EXPECT_THAT(Read({{"input_scale", &scale}}, kDynamic).status().message(), HasSubstr("scales of activations made at run time, found one"));
  EXPECT_THAT(Read({{"input_scale", &scale}}, std::nullopt).status().message(), HasSubstr("leaves activations unquantized, found one"));
}

TEST(InputScale, ZeroPointsAreZero) {
  const Tensor scale = F32Scalar(1.0f);
  Tensor zero_point(DType::kI8, {1});
  EXPECT_TRUE(Read({{"input_scale", &scale}, {"input_zero_point", &zero_point}}, kStatic).ok());
  zero_point.as<int8_t>()[0] = -3;
  const absl::Status status = Read({{"input_scale", &scale}, {"input_zero_point", &zero_point}}, kStatic).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(), "m.input_zero_point: expected 0 (symmetric activations), found -3");
}

TEST(InputScale, TensorsOfTheInputAreSplitOff) {
  const Tensor scale = F32Scalar(1.0f);
  const auto [weight,
              input] = SplitInputTensors({"m", {{"weight", scale.view()}, {"input_scale", scale.view()}, {"weight_scale", scale.view()}}});
  EXPECT_EQ(weight.tensors.size(), 2u);
  ASSERT_EQ(input.tensors.size(), 1u);
  EXPECT_EQ(input.tensors[0].suffix, "input_scale");
  EXPECT_EQ(input.module, "m");
}

TEST(InputScale, CoversTheLargestMagnitude) {
  EXPECT_EQ(StaticInputScale(kStatic, 0.0f, DType::kBF16), 1.0f);
  EXPECT_EQ(StaticInputScale(kStatic, 1e-45f, DType::kF16), 1.0f);  // below what the dtype holds
  QuantizationArgs args = kStatic;
  args.type = QuantizationType::kInt;
  EXPECT_EQ(StaticInputScale(args, 254.0f, DType::kF32), 2.0f);
  args.type = QuantizationType::kFloat;
  EXPECT_EQ(StaticInputScale(args, 224.0f, DType::kF32), 0.5f);
}

TEST(InputScale, IsReadBackAsItWasEncoded) {
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    const StoredTensor stored = EncodeInputScale(StaticInputScale(kStatic, 3.0f, dtype), dtype);
    EXPECT_EQ(stored.suffix, kInputScaleSuffix);
    EXPECT_EQ((**Read({{"input_scale", &stored.tensor}}, kStatic)).static_scale, StaticInputScale(kStatic, 3.0f, dtype));
  }
}

}  // namespace
}  // namespace pith
