#include "cli/data_path_report.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/synthetic_artifact.h"

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
  for (TensorDataPath& path : paths) path.refused = {"gemm_int16_w4g_f32__avx512: group_size is odd"};
  const std::string text = DataPathTable(paths, false);
  EXPECT_THAT(text, HasSubstr("layers.*.mlp.up_proj                     2         64x32 pack-quantized  4.500   bf16    32 int16 dynamic"));
  EXPECT_THAT(text, HasSubstr("why no better kernel:\n  gemm_int16_w4g_f32__avx512: group_size is odd (layers.*.mlp.up_proj)\n"));
  EXPECT_THAT(DataPathTable(paths, true), HasSubstr("model.layers.1.mlp.up_proj"));
  EXPECT_THAT(DataPathTable(paths, true), HasSubstr("group_size is odd (model.layers.0.mlp.up_proj, model.layers.1.mlp.up_proj)\n"));
}

TEST(DataPathTableTest, TensorsThatDifferInAnythingShownHaveTheirOwnLines) {
  const std::vector<TensorDataPath> same(2, Path("model.layers.0.mlp.up_proj", 1152));
  const auto num_lines = [](const std::vector<TensorDataPath>& paths) {
    const std::string text = DataPathTable(paths, false), kind = "\nlayers.*.mlp.up_proj";
    int lines = 0;
    for (size_t at = text.find(kind); at != std::string::npos; at = text.find(kind, at + 1)) ++lines;
    return lines;
  };
  EXPECT_EQ(num_lines(same), 1);
  for (std::string TensorDataPath::*field : {&TensorDataPath::packing, &TensorDataPath::scheme, &TensorDataPath::scale_dtype,
                                             &TensorDataPath::activation, &TensorDataPath::accumulator, &TensorDataPath::output,
                                             &TensorDataPath::kernel, &TensorDataPath::emulated, &TensorDataPath::tied_to}) {
    std::vector<TensorDataPath> paths = same;
    paths[1].*field = "another";
    EXPECT_EQ(num_lines(paths), 2);
  }
  for (int64_t TensorDataPath::*field : {&TensorDataPath::out, &TensorDataPath::in, &TensorDataPath::group_size}) {
    std::vector<TensorDataPath> paths = same;
    paths[1].*field = 128;
    EXPECT_EQ(num_lines(paths), 2);
  }
  std::vector<TensorDataPath> paths = same;
  paths[1].refused = {"gemm_int16_w4g_f32__avx512: group_size is odd"};
  EXPECT_EQ(num_lines(paths), 2);
}

TEST(DataPathJsonTest, WhatATensorDoesNotHaveIsNull) {
  TensorDataPath embedding = Path("model.embed_tokens", 4096);
  embedding.scheme = embedding.scale_dtype = embedding.activation = embedding.accumulator = "";
  embedding.group_size = 0;
  const OrderedJson json = ToJson(embedding);
  for (const char* key : {"scheme", "scale_dtype", "group_size", "activation", "accumulator", "emulated", "tied_to"}) {
    EXPECT_TRUE(json[key].is_null()) << key;
  }
  TensorDataPath matrix = Path("model.layers.0.mlp.up_proj", 1152);
  matrix.scheme = "W4A16";
  EXPECT_EQ(ToJson(matrix)["scheme"], "W4A16");
  EXPECT_EQ(ToJson(matrix)["activation"], "int16 dynamic");
  EXPECT_EQ(ToJson(matrix)["accumulator"], "int32");
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

MemoryReport ReportOfTinyModel(bool tied) {
  const Json config = {{"model_type", "llama"},      {"vocab_size", 50},       {"hidden_size", 32},
                       {"intermediate_size", 64},    {"num_hidden_layers", 2}, {"num_attention_heads", 4},
                       {"num_key_value_heads", 2},   {"head_dim", 16},         {"max_position_embeddings", 2048},
                       {"tie_word_embeddings", tied}};
  const std::unique_ptr<SyntheticArtifact> artifact = SyntheticArtifact::Random(config, 1);
  artifact->QuantizeLayers(4, 32);
  ThreadPool pool(1);
  const absl::StatusOr<std::unique_ptr<DecoderModel>> model = DecoderModel::Load(*artifact, {.pool = &pool});
  CHECK(model.ok());
  const absl::StatusOr<MemoryReport> report = MakeMemoryReport(*artifact, **model, {.pool = &pool});
  CHECK(report.ok());
  return *report;
}

TEST(MemoryReportTest, BytesOfATokenInEveryFormat) {
  const MemoryReport report = ReportOfTinyModel(true);
  constexpr int64_t kVectors = 2 * 2 * 2;  // keys and values, layers, KV heads
  EXPECT_THAT(report.kv_bytes_per_token, testing::ElementsAre(kVectors * 16 * 2, kVectors * (16 + 4), kVectors * (16 + 4)));
  const OrderedJson json = ToJson(report)["kv_bytes_per_token"];
  EXPECT_EQ(json, (OrderedJson{{"bf16", 256}, {"int8", 160}, {"fp8", 160}}));
}

TEST(MemoryReportTest, InBf16ATiedHeadTakesNoRoomOfItsOwn) {
  constexpr int64_t kLayer = 2 * 64 * 32 + 2 * 32 * 32 + 3 * 64 * 32, kTable = 50 * 32;  // q and o, k and v, the MLP
  EXPECT_EQ(ReportOfTinyModel(true).bf16_weight_bytes, 2 * (2 * kLayer + kTable));
  EXPECT_EQ(ReportOfTinyModel(false).bf16_weight_bytes, 2 * (2 * kLayer + 2 * kTable));
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
