#include "cli/data_path_report.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;
using testing::Not;

TensorDataPath Path(const std::string& name, int64_t stored_bytes) {
  TensorDataPath path;
  path.name = name;
  path.out = 64;
  path.in = 32;
  path.packing = "pack-quantized";
  path.scale_dtype = "bf16";
  path.group_size = 32;
  path.stored_bits = 4.5;
  path.activation = "int16 dynamic";
  path.accumulator = "int32";
  path.output = "f32";
  path.kernel = "gemm_int16_w4g_f32__avx2";
  path.isa = "avx2";
  path.stored_bytes = stored_bytes;
  return path;
}

TEST(DataPathTableTest, OneLinePerKindAndReasonsBelow) {
  std::vector<TensorDataPath> paths = {Path("model.layers.0.mlp.up_proj", 1152), Path("model.layers.1.mlp.up_proj", 1152)};
  paths[0].refused = {"gemm_int16_w4g_f32__avx512: group_size is odd"};
  const std::string text = DataPathTable(paths, false);
  EXPECT_THAT(text, HasSubstr("layers.*.mlp.up_proj                     2         64x32 pack-quantized  4.500   bf16    32 int16 dynamic"));
  EXPECT_THAT(text, HasSubstr("  layers.*.mlp.up_proj: not gemm_int16_w4g_f32__avx512: group_size is odd\n"));
  EXPECT_THAT(DataPathTable(paths, true), HasSubstr("model.layers.1.mlp.up_proj"));
}

TEST(DataPathTableTest, QuantizedActivationsAreWordsAndEmulationIsFlagged) {
  std::vector<TensorDataPath> paths = {Path("model.layers.0.mlp.up_proj", 1152), Path("model.layers.1.mlp.up_proj", 1152)};
  paths[1].activation = "int8 dynamic per row and group of 128";
  paths[1].emulated = "fp8 as bf16";
  const std::string text = DataPathTable(paths, false);  // two lines: they multiply with something else
  EXPECT_THAT(text, HasSubstr("int16 dynamic                         int32"));
  EXPECT_THAT(text, HasSubstr("int8 dynamic per row and group of 128 int32"));
  EXPECT_THAT(text, HasSubstr("gemm_int16_w4g_f32__avx2 (emulated: fp8 as bf16)\n"));
  EXPECT_EQ(ToJson(paths[1])["emulated"], "fp8 as bf16");
  EXPECT_TRUE(ToJson(paths[0])["emulated"].is_null());
}

TEST(DataPathTableTest, OutlierColumnsAreCounted) {
  std::vector<TensorDataPath> paths = {Path("model.layers.0.mlp.up_proj", 1152), Path("model.layers.1.mlp.up_proj", 1152)};
  EXPECT_THAT(DataPathTable(paths, false), Not(HasSubstr("outlier")));
  paths[1].outlier_columns = {4, 7, 9};
  EXPECT_THAT(DataPathTable(paths, false), HasSubstr("gemm_int16_w4g_f32__avx2, 0 to 3 outlier columns\n"));
  EXPECT_THAT(DataPathTable(paths, true), HasSubstr("gemm_int16_w4g_f32__avx2, 3 outlier columns\n"));
  EXPECT_EQ(ToJson(paths[1])["outlier_columns"], OrderedJson({4, 7, 9}));
  EXPECT_EQ(ToJson(paths[0])["outlier_columns"], OrderedJson::array());
}

TEST(DataPathTableTest, ATiedHeadIsNotZeroBits) {
  TensorDataPath head = Path("lm_head", 0);
  head.tied_to = "model.embed_tokens";
  const std::string text = DataPathTable({&head, 1}, false);
  EXPECT_THAT(text, HasSubstr("  tied "));
  EXPECT_THAT(text, HasSubstr("gemm_int16_w4g_f32__avx2, tied to model.embed_tokens\n"));
  EXPECT_THAT(text, Not(HasSubstr("0.000")));
  EXPECT_EQ(ToJson(head)["tied_to"], "model.embed_tokens");
  EXPECT_TRUE(ToJson(Path("x", 1))["tied_to"].is_null());
}

TEST(MemoryTableTest, PartsSideBySide) {
  MemoryReport report;
  report.stored = {.attention = 1'000'000, .mlp = 2'000'000, .embedding = 3'000'000, .norms = 4'000};
  report.forecast = report.resident = {
      .attention = 1'100'000, .mlp = 2'200'000, .embedding = 3'000'000, .lm_head = 3'300'000, .norms = 8'000};
  report.bf16_weight_bytes = 19'216'000;
  report.process_bytes = 9'700'000;
  report.workspace_rows = 512;
  const std::string text = MemoryTable(report);
  EXPECT_THAT(text, HasSubstr("mlp              2.0 MB       2.2 MB       2.2 MB\n"));
  EXPECT_THAT(text, HasSubstr("lm_head            tied       3.3 MB       3.3 MB\n"));
  EXPECT_THAT(text, HasSubstr("(2.00x smaller than bf16)"));
  const OrderedJson json = ToJson(report);
  EXPECT_EQ(json["actual"]["total"], json["resident_weight_bytes"]);
  EXPECT_EQ(json["forecast"]["lm_head"], 3'300'000);
  EXPECT_EQ(json["stored"]["mlp"], 2'000'000);
  EXPECT_EQ(json["process_bytes"], 9'700'000);
}

}  // namespace
}  // namespace pith
