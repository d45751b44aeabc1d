#include "quantization/formats/fp8_block.h"

#include "gmock/gmock.h"
#include "quantization/formats/format_test_util.h"
#include "quantization/quantization_config.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

// Three rows in blocks of 2 x 2: the last row has a block of its own. 0x38 is 1.0, 0xC0 is -2.0.
TEST(Fp8Block, FactorsMultiply) {
  const QuantizationArgs args{.type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kBlock, .block_rows = 2, .block_cols = 2};
  std::vector<StoredTensor> stored;
  stored.push_back({"weight", Tensor(DType::kF8E4M3, {3, 4})});
  for (int i = 0; i < 12; ++i) stored[0].tensor.data()[i] = i % 2 == 0 ? 0x38 : 0xC0;
  stored.push_back({"weight_scale_inv", Tensor(DType::kF32, {2, 2})});
  for (int i = 0; i < 4; ++i) stored[1].tensor.as<float>()[i] = static_cast<float>(i + 1);
  const auto decoded = DecodeWeight("fp8-block", Views(stored), args, {3, 4});
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  std::vector<float> row(4);
  decoded->DequantizeRow(1, absl::MakeSpan(row));
  EXPECT_EQ(row, (std::vector<float>{1, -2, 2, -4}));
  decoded->DequantizeRow(2, absl::MakeSpan(row));
  EXPECT_EQ(row, (std::vector<float>{3, -6, 4, -8}));
  stored[0].tensor.data()[5] = 0x7F;
  EXPECT_EQ(DecodeWeight("fp8-block", Views(stored), args, {3, 4}).status().message(), "m.weight[1][1]: expected a number, found NaN");
  EXPECT_EQ(CheckWeight("fp8-block", Views(stored), {.type = QuantizationType::kFloat}, {3, 4}).code(), absl::StatusCode::kUnimplemented);
}

TEST(Fp8Block, ReadsAndWritesItsConfig) {
  const auto config = ParseQuantizationConfig(
      *ParseJson(R"({"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]})"));
  ASSERT_TRUE(config.ok()) << config.status();
  const QuantizationScheme* scheme = *FindScheme(*config, "model.layers.0.mlp.up_proj", "Linear");
  EXPECT_EQ(scheme->name, "FP8_BLOCK");
  EXPECT_EQ(scheme->input_activations->group_size, 128);
  EXPECT_EQ(*FindScheme(*config, "lm_head", "Linear"), nullptr);
  EXPECT_EQ(DumpJson(ToJson(*config)), R"({"activation_scheme":"dynamic","fmt":"e4m3","modules_to_not_convert":["lm_head"],)"
                                       R"("quant_method":"fp8","weight_block_size":[128,128]})");
  const auto error = [](absl::string_view text) { return ParseQuantizationConfig(*ParseJson(text)).status(); };
  EXPECT_THAT(error(R"({"quant_method": "fp8"})").message(), HasSubstr("\"weight_block_size\": expected [rows, columns], found none"));
  EXPECT_EQ(error(R"({"quant_method": "fp8", "weight_block_size": [0, 128]})").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(error(R"({"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "static"})").code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace pith
