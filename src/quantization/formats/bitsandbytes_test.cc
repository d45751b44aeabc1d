#include "quantization/formats/bitsandbytes.h"

#include "gmock/gmock.h"
#include "quantization/formats/format_test_util.h"
#include "quantization/formats/outlier_columns.h"
#include "quantization/quantization_config.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

constexpr QuantizationArgs kArgs{.num_bits = 8, .strategy = QuantizationStrategy::kChannel};

// Two rows whose largest magnitudes are 2 and 254: the weights are code * SCB / 127.
std::vector<StoredTensor> Stored() {
  std::vector<StoredTensor> stored;
  stored.push_back({"weight", Tensor(DType::kI8, {2, 3})});
  const int8_t codes[] = {127, -64, 0, -127, 1, -128};
  for (int i = 0; i < 6; ++i) stored[0].tensor.as<int8_t>()[i] = codes[i];
  stored.push_back({"SCB", Tensor(DType::kF32, {2})});
  stored[1].tensor.as<float>()[0] = 2.0f;
  stored[1].tensor.as<float>()[1] = 254.0f;
  stored.push_back({"weight_format", Tensor(DType::kU8, {})});
  stored[2].tensor.data()[0] = 0;
  return stored;
}

TEST(Bitsandbytes, WeightsAreCodesTimesTheLargestMagnitude) {
  const auto decoded = DecodeWeight("bitsandbytes", Views(Stored()), kArgs, {2, 3});
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  std::vector<float> row(3);
  decoded->DequantizeRow(0, absl::MakeSpan(row));
  EXPECT_EQ(row, (std::vector<float>{127 * (2.0f / 127), -64 * (2.0f / 127), 0}));
  decoded->DequantizeRow(1, absl::MakeSpan(row));
  EXPECT_EQ(row, (std::vector<float>{-254, 2, -256}));
  EXPECT_EQ(decoded->scale_dtype, DType::kF32);
}

TEST(Bitsandbytes, RefusesOtherOrdersAndScales) {
  std::vector<StoredTensor> stored = Stored();
  stored[2].tensor.data()[0] = 2;
  const absl::Status order = DecodeWeight("bitsandbytes", Views(stored), kArgs, {2, 3}).status();
  EXPECT_EQ(order.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(order.message(), "m.weight_format: expected 0 (codes row by row), found 2");
  stored = Stored();
  stored[1].tensor.as<float>()[1] = INFINITY;
  EXPECT_THAT(DecodeWeight("bitsandbytes", Views(stored), kArgs, {2, 3}).status().message(), HasSubstr("m.SCB: expected finite"));
  QuantizedTensor weight{.out = 1, .in = 2, .group_size = 2, .code = {1, 2}, .scale = {0.1f}};
  while (weight.scale[0] * 127.0f / 127.0f == weight.scale[0]) weight.scale[0] = std::nextafter(weight.scale[0], 1.0f);
  const absl::Status scale = EncodeWeight("bitsandbytes", weight, kArgs).status();
  EXPECT_EQ(scale.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(scale.message(), HasSubstr("expected scales that are an F32 number over 127"));
  EXPECT_THAT(PlanWeight("bitsandbytes", {.num_bits = 8, .strategy = QuantizationStrategy::kGroup, .group_size = 2}, {2, 2}, DType::kF32)
                  .status()
                  .message(),
              HasSubstr("expected one scale per channel"));
}

TEST(Bitsandbytes, HoldsOutlierColumnsBesideTheCodes) {
  QuantizedTensor weight = *DecodeWeight("bitsandbytes", Views(Stored()), kArgs, {2, 3});
  const std::vector<uint8_t> codes = weight.code;
  const float values[] = {0.5f, 1, 2, 3, 4, 5};
  KeepOutlierColumns({values, 2, 3}, {1}, weight);
  const auto stored = EncodeWeight("bitsandbytes", weight, kArgs);
  ASSERT_TRUE(stored.ok()) << stored.status();
  ASSERT_EQ(stored->size(), 5u);
  const auto read = DecodeWeight("bitsandbytes", Views(*stored), kArgs, {2, 3});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->code, codes);
  std::vector<float> row(3);
  read->DequantizeRow(1, absl::MakeSpan(row));
  EXPECT_EQ(row, (std::vector<float>{-254, 4, -256}));
  EXPECT_DOUBLE_EQ(read->stored_bits_per_weight, (6 + 8 + 1 + 4 + 4) * 8 / 6.0);  // codes, SCB, weight_format, index, columns
}

TEST(Bitsandbytes, TheThresholdDeclaresTheActivations) {
  const auto input = [](const char* keys) {
    const auto config = ParseQuantizationConfig(
        *ParseJson(absl::StrCat(R"({"quant_method": "bitsandbytes", "load_in_8bit": true)", keys, "}")));
    EXPECT_TRUE(config.ok()) << config.status();
    return config->groups[0].scheme.input_activations;
  };
  QuantizationArgs expected{.strategy = QuantizationStrategy::kToken, .dynamic = true};
  EXPECT_EQ(input(""), std::nullopt);
  EXPECT_EQ(input(R"(, "llm_int8_threshold": 0)"), expected);
  expected.outlier_threshold = 4.5f;
  EXPECT_EQ(input(R"(, "llm_int8_threshold": 4.5)"), expected);
  expected.fixed_outliers = true;
  const char* stored = R"(, "llm_int8_threshold": 4.5, "llm_int8_outlier_columns": "stored")";
  EXPECT_EQ(input(stored), expected);
  const auto config = ParseQuantizationConfig(
      *ParseJson(absl::StrCat(R"({"quant_method": "bitsandbytes", "load_in_8bit": true)", stored, "}")));
  EXPECT_EQ(config->groups[0].scheme.name, "LLM_INT8");
  EXPECT_EQ(DumpJson(ToJson(*config)), R"({"llm_int8_outlier_columns":"stored","llm_int8_skip_modules":["lm_head"],)"
                                       R"("llm_int8_threshold":4.5,"load_in_8bit":true,"quant_method":"bitsandbytes"})");
  for (const char* bad : {R"("llm_int8_threshold": -1)", R"("llm_int8_threshold": "6")", R"("llm_int8_outlier_columns": "stored")",
                          R"("llm_int8_threshold": 6, "llm_int8_outlier_columns": "some")"}) {
    const absl::Status status =
        ParseQuantizationConfig(*ParseJson(absl::StrCat(R"({"quant_method": "bitsandbytes", "load_in_8bit": true, )", bad, "}"))).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << bad;
    EXPECT_THAT(status.message(), HasSubstr("llm_int8_")) << bad;
  }
}

TEST(Bitsandbytes, ReadsAndWritesItsConfig) {
  const auto config = ParseQuantizationConfig(*ParseJson(R"({"quant_method": "bitsandbytes", "load_in_8bit": true, "load_in_4bit": false,
      "llm_int8_threshold": 6.0, "llm_int8_skip_modules": null})"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ((*FindScheme(*config, "model.layers.0.mlp.up_proj", "Linear"))->weights, kArgs);
  EXPECT_EQ(*FindScheme(*config, "lm_head", "Linear"), nullptr);
  EXPECT_EQ(DumpJson(ToJson(*config)),
            R"({"llm_int8_skip_modules":["lm_head"],"llm_int8_threshold":6.0,"load_in_8bit":true,"quant_method":"bitsandbytes"})");
  EXPECT_EQ(ParseQuantizationConfig(*ParseJson(R"({"quant_method": "bitsandbytes", "load_in_4bit": true})")).status().code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace pith
