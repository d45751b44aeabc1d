#include "cli/roofline.h"

#include "gtest/gtest.h"

namespace pith {
namespace {

const MachineLimits kLimits = {.threads = 2, .read_gb_per_s = 10, .f32_gops = 100, .bf16_gops = 200, .int8_gops = 400};

OperatorRecord Record(const char* kernel, OperatorWork work) {
  OperatorRecord record;
  record.kernel = kernel;
  record.work = work;
  return record;
}

TEST(RooflineTest, TheNameOfAKernelSaysHowItMultiplies) {
  EXPECT_EQ(MultiplyOfKernel("gemm_bf16_w4g_f32__avx512_vnni").limit, ProbeLimit::kBf16);
  EXPECT_EQ(MultiplyOfKernel("gemm_bf16_bf16_f32__amx").limit, ProbeLimit::kBf16);
  EXPECT_FALSE(MultiplyOfKernel("gemm_bf16_bf16_f32__amx").emulated);
  EXPECT_FALSE(MultiplyOfKernel("gemm_bf16_w4g_f32__avx512_vnni").emulated);
  EXPECT_EQ(MultiplyOfKernel("gemm_bf16_w4g_f32__avx2").limit, ProbeLimit::kF32);
  EXPECT_TRUE(MultiplyOfKernel("gemm_bf16_w4g_f32__avx2").emulated);
  EXPECT_TRUE(MultiplyOfKernel("gemm_bf16_f8g_f32__avx512_vnni").emulated);
  EXPECT_TRUE(MultiplyOfKernel("gemm_fp8_f8g_f32__avx512_vnni").emulated);
  EXPECT_EQ(MultiplyOfKernel("gemm_fp8_f8g_f32__avx512_vnni").limit, ProbeLimit::kBf16);
  EXPECT_EQ(MultiplyOfKernel("gemm_int8_w4g_f32__avx512_vnni").limit, ProbeLimit::kInt8);
  EXPECT_EQ(MultiplyOfKernel("gemm_int8_w4g_f32__avx512_vnni").passes, 1);
  EXPECT_EQ(MultiplyOfKernel("gemm_int16_w4g_f32__avx512_vnni").passes, 2);
  EXPECT_EQ(MultiplyOfKernel("gemm_int8_w4g_f32__avx2+gemm_bf16_w8g_f32__avx2").limit, ProbeLimit::kInt8);
  EXPECT_EQ(MultiplyOfKernel("attention_f32_bf16_bf16__avx512").limit, ProbeLimit::kF32);
  EXPECT_FALSE(MultiplyOfKernel("attention_f32_bf16_bf16__avx512").emulated);
  EXPECT_EQ(MultiplyOfKernel("").limit, ProbeLimit::kF32);
}

TEST(RooflineTest, InstructionSetOfAName) {
  EXPECT_EQ(IsaOfKernel("gemm_bf16_w4g_f32__avx512_vnni"), "avx512_vnni");
  EXPECT_EQ(IsaOfKernel("a__avx2+b__scalar"), "scalar");
  EXPECT_EQ(IsaOfKernel("nothing"), "");
}

TEST(RooflineTest, TheLongerOfReadingAndMultiplying) {
  const OperatorWork work = {
      .weight_bytes = 6'000'000'000, .activation_bytes = 900'000'000'000, .kv_bytes = 4'000'000'000, .operations = 100'000'000'000};
  const RooflineTime bf16 = Roofline(Record("gemm_bf16_w4g_f32__avx512_vnni", work), kLimits);
  EXPECT_DOUBLE_EQ(bf16.read_seconds, 1.0);  // activations are not streamed
  EXPECT_DOUBLE_EQ(bf16.multiply_seconds, 0.5);
  EXPECT_DOUBLE_EQ(bf16.seconds(), 1.0);
  EXPECT_DOUBLE_EQ(Roofline(Record("gemm_int16_w4g_f32__avx512_vnni", work), kLimits).multiply_seconds, 0.5);
  EXPECT_DOUBLE_EQ(Roofline(Record("gemm_bf16_w4g_f32__avx2", work), kLimits).multiply_seconds, 1.0);
}

TEST(RooflineTest, APassAddsBothSidesBeforeItTakesTheLonger) {
  const std::vector<OperatorRecord> records = {Record("gemm_int8_a__avx512_vnni", {.weight_bytes = 20'000'000'000}),
                                               Record("gemm_int8_a__avx512_vnni", {.operations = 1'200'000'000'000})};
  const RooflineTime time = Roofline(records, kLimits);
  EXPECT_DOUBLE_EQ(time.read_seconds, 2.0);
  EXPECT_DOUBLE_EQ(time.seconds(), 3.0);
}

}  // namespace
}  // namespace pith
