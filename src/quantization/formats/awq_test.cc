#include "quantization/formats/awq.h"

#include "gmock/gmock.h"
#include "quantization/formats/format_test_util.h"
#include "quantization/quantization_config.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

QuantizationArgs Args(int group_size) {
  return {.num_bits = 4, .symmetric = false, .strategy = QuantizationStrategy::kGroup, .group_size = group_size};
}

TEST(Awq, MatchesTheGoldenVectors) {
  const std::optional<Json> golden = PackingVectors();
  if (!golden.has_value()) GTEST_SKIP() << "shared golden/packing.json is absent";
  const QuantizedTensor weight = GoldenWeight(*golden, 4);
  const auto stored = EncodeWeight("awq", weight, Args(32));
  ASSERT_TRUE(stored.ok()) << stored.status();
  const ModuleTensors tensors = Views(*stored);
  ExpectSameWords(tensors, "qweight", (*golden)["bits4"]["awq_gemm_qweight"]);
  ExpectSameWords(tensors, "qzeros", (*golden)["bits4"]["awq_gemm_qzeros"]);
  const auto shape = ReadWeightShape("awq", Args(32), tensors);
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(shape->out, 32);
  EXPECT_EQ(shape->in, 64);
  const auto decoded = DecodeWeight("awq", tensors, Args(32), *shape);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->code, weight.code);
  EXPECT_EQ(decoded->zero_point, weight.zero_point);
}

// One row of eight columns with the codes 0 .. 7: nibbles 0 2 4 6 1 3 5 7 from the low end.
TEST(Awq, NibblesAreInterleaved) {
  QuantizedTensor weight{.out = 8, .in = 1, .bits = 4, .group_size = 1, .code = {0, 1, 2, 3, 4, 5, 6, 7}};
  weight.scale.assign(8, 1.0f);
  weight.zero_point = {8, 9, 10, 11, 12, 13, 14, 15};
  const auto stored = EncodeWeight("awq", weight, Args(1));
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->at(0).tensor.as<int32_t>()[0], 0x75316420);
  EXPECT_EQ(static_cast<uint32_t>(stored->at(1).tensor.as<int32_t>()[0]), 0xFDB9ECA8u);
}

TEST(Awq, RefusesWhatItCannotHold) {
  EXPECT_THAT(
      PlanWeight("awq", {.num_bits = 4, .strategy = QuantizationStrategy::kGroup, .group_size = 8}, {8, 8}, DType::kF16).status().message(),
      HasSubstr("weight format awq: expected zero points, found symmetric codes"));
  EXPECT_THAT(PlanWeight("awq", Args(8), {12, 8}, DType::kF16).status().message(), HasSubstr("a multiple of 8 columns"));
  EXPECT_EQ(PlanWeight("awq", {.num_bits = 8, .symmetric = false}, {8, 8}, DType::kF16).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(Awq, ReadsAndWritesItsConfig) {
  const auto config = ParseQuantizationConfig(*ParseJson(R"({"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": true,
      "version": "GEMM", "modules_to_not_convert": ["o_proj"]})"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ((*FindScheme(*config, "model.layers.0.self_attn.q_proj", "Linear"))->weights, Args(64));
  EXPECT_EQ(*FindScheme(*config, "model.layers.0.self_attn.o_proj", "Linear"), nullptr);
  EXPECT_EQ(*FindScheme(*config, "lm_head", "Linear"), nullptr);
  EXPECT_EQ(DumpJson(ToJson(*config)),
            R"({"bits":4,"group_size":64,"modules_to_not_convert":["o_proj","lm_head"],"quant_method":"awq","version":"gemm",)"
            R"("zero_point":true})");
  const auto old = ParseQuantizationConfig(*ParseJson(R"({"quant_method": "awq", "w_bit": 4, "q_group_size": 32, "zero_point": true})"));
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ(old->groups[0].scheme.weights, Args(32));
  for (const char* bad : {R"({"quant_method": "awq", "bits": 8})", R"({"quant_method": "awq", "version": "gemv"})",
                          R"({"quant_method": "awq", "zero_point": false})"}) {
    EXPECT_EQ(ParseQuantizationConfig(*ParseJson(bad)).status().code(), absl::StatusCode::kUnimplemented) << bad;
  }
  EXPECT_EQ(ParseQuantizationConfig(*ParseJson(R"({"quant_method": "awq", "modules_to_not_convert": [1]})")).status().code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace pith
