#include "quantization/formats/input_major.h"

#include "gmock/gmock.h"
#include "quantization/formats/format_test_util.h"

namespace pith {
namespace {

TEST(InputMajor, ScalesAreTransposed) {
  QuantizedTensor weight{.out = 3, .in = 4, .group_size = 2, .scale = {1, 2, 3, 4, 5, 6}};
  const auto stored = EncodeInputMajorScales(weight, "f");
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->tensor.shape(), Shape({2, 3}));
  std::vector<float> values(6);
  ASSERT_TRUE(ConvertToFloat(stored->tensor.view(), absl::MakeSpan(values)).ok());
  EXPECT_EQ(values, (std::vector<float>{1, 3, 5, 2, 4, 6}));
  const QuantizationArgs args{.num_bits = 8, .strategy = QuantizationStrategy::kGroup, .group_size = 2};
  const ModuleTensors tensors{"m", {{"scales", stored->tensor.view()}}};
  EXPECT_TRUE(CheckInputMajorScales(tensors, args, {3, 4}).ok());
  EXPECT_EQ(DecodeInputMajorScales(tensors, args, {3, 4})->scale, weight.scale);
  EXPECT_EQ(CheckInputMajorScales(tensors, args, {3, 6}).code(), absl::StatusCode::kDataLoss);
  weight.scale[4] = 1e-9f;
  EXPECT_EQ(EncodeInputMajorScales(weight, "f").status().message(),
            "weight format f: expected scales that F16 holds exactly, found 1e-09 in row 2, group 0");
}

TEST(InputMajor, HoldsScalesPerGroupOrChannel) {
  EXPECT_EQ(RefuseInputMajorStrategy({.strategy = QuantizationStrategy::kChannel}), nullptr);
  EXPECT_NE(RefuseInputMajorStrategy({.strategy = QuantizationStrategy::kTensor}), nullptr);
}

}  // namespace
}  // namespace pith
