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

double SecondsOf400Giga(const char* kernel) { return Roofline(Record(kernel, {.operations = 400'000'000'000}), kLimits).multiply_seconds; }

TEST(RooflineTest, TheRowSaysWithWhichInstructionItMultiplies) {
  EXPECT_DOUBLE_EQ(SecondsOf400Giga("gemm_bf16_w4g_f32__avx2"), 4.0);
  EXPECT_DOUBLE_EQ(SecondsOf400Giga("gemm_fp8_f8g_f32__avx512"), 4.0);
  EXPECT_DOUBLE_EQ(SecondsOf400Giga("gemm_bf16_w4g_f32__avx512_vnni"), 2.0);
  EXPECT_DOUBLE_EQ(SecondsOf400Giga("gemm_bf16_bf16_f32__amx"), 2.0);
  EXPECT_DOUBLE_EQ(SecondsOf400Giga("gemm_int8_w4g_f32__avx512_vnni"), 1.0);
  EXPECT_DOUBLE_EQ(SecondsOf400Giga("gemm_int16_w4g_f32__avx512_vnni"), 2.0);  // two planes
  EXPECT_DOUBLE_EQ(SecondsOf400Giga("gemm_int16_w4g_f32__avx2"), 1.0);         // joined
  EXPECT_DOUBLE_EQ(SecondsOf400Giga("rms_norm_f32__avx2"), 0.0);
  EXPECT_DOUBLE_EQ(SecondsOf400Giga("read_row of gemm_bf16_bf16_f32__avx2"), 0.0);
  EXPECT_DOUBLE_EQ(SecondsOf400Giga(""), 0.0);
}

TEST(RooflineTest, AttentionIsMeasuredAgainstItsOwnInstruction) {
  EXPECT_DOUBLE_EQ(SecondsOf400Giga("attention_f32_bf16_bf16__avx512"), 4.0);
  EXPECT_DOUBLE_EQ(SecondsOf400Giga("attention_f32_int8_bf16__avx512"), 4.0);     // codes become f32
  EXPECT_DOUBLE_EQ(SecondsOf400Giga("attention_f32_int8_bf16__avx2_vnni"), 2.0);  // vpdpbusd, two planes
  EXPECT_DOUBLE_EQ(SecondsOf400Giga("attention_f32_int8_bf16__avx512_vnni"), 2.0);
  EXPECT_DOUBLE_EQ(SecondsOf400Giga("attention_f32_int8_bf16__amx"), 2.0);
  EXPECT_DOUBLE_EQ(SecondsOf400Giga("attention_f32_bf16_bf16__amx"), 4.0);  // tdpbf16ps, two parts
  EXPECT_DOUBLE_EQ(SecondsOf400Giga("attention_f32_fp8_bf16__amx"), 4.0);
}

TEST(RooflineTest, OfSeveralRowsTheFastestBounds) {
  EXPECT_DOUBLE_EQ(SecondsOf400Giga("gemm_bf16_w8g_f32__avx2+gemm_int8_w4g_f32__avx2"), 1.0);
  EXPECT_DOUBLE_EQ(SecondsOf400Giga("gemm_int8_w4g_f32__avx2+gemm_bf16_w8g_f32__avx2"), 1.0);
  const std::vector<KernelRow> rows = RowsOf("rotary_f32__avx2+kv_append_f32_bf16__scalar");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].isa, KernelIsa::kScalar);
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
  const std::vector<OperatorRecord> records = {Record("gemm_int8_w8g_f32__avx512_vnni", {.weight_bytes = 20'000'000'000}),
                                               Record("gemm_int8_w8g_f32__avx512_vnni", {.operations = 1'200'000'000'000})};
  const RooflineTime time = Roofline(records, kLimits);
  EXPECT_DOUBLE_EQ(time.read_seconds, 2.0);
  EXPECT_DOUBLE_EQ(time.seconds(), 3.0);
}

}  // namespace
}  // namespace pith
