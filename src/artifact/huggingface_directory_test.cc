#include "artifact/huggingface_directory.h"

#include "artifact/safetensors_shards.h"
#include "artifact/tiny_models.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Writes the model afresh and opens it.
absl::StatusOr<std::unique_ptr<ArtifactReader>> Open(const TinyDirectory& tiny, const ScratchDirectory& scratch) {
  tiny.Write(scratch.path());
  return HuggingFaceDirectory::Open(scratch.path());
}

std::string Error(const TinyDirectory& tiny) {
  const ScratchDirectory scratch;
  const auto reader = Open(tiny, scratch);
  if (reader.ok()) return "accepted";
  EXPECT_EQ(reader.status().code(), absl::StatusCode::kDataLoss) << reader.status();
  return std::string(reader.status().message());
}

std::vector<float> DenseValues(const Weight& weight) {
  std::vector<float> values(static_cast<size_t>(weight.dense->num_elements()));
  EXPECT_TRUE(ConvertToFloat(*weight.dense, absl::MakeSpan(values)).ok());
  return values;
}

constexpr char kUp[] = "model.layers.0.mlp.up_proj";

TEST(HuggingFaceDirectory, ReadsDenseModels) {
  const ScratchDirectory scratch;
  TinyDirectory tiny;
  const std::vector<float> f32 = TinyValues("f32", 96);
  *tiny.Find(absl::StrCat(kUp, ".weight")) = {absl::StrCat(kUp, ".weight"), "F32", {12, 8}, RawBytes(f32)};
  const auto opened = Open(tiny, scratch);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const ArtifactReader& reader = **opened;
  EXPECT_EQ(reader.format(), "huggingface");
  EXPECT_EQ(reader.path(), scratch.path());
  EXPECT_EQ(reader.config()["hidden_size"], 8);
  EXPECT_EQ(reader.generation_config()["eos_token_id"], 2);
  EXPECT_THAT(reader.WeightNames(),
              ElementsAre("model.embed_tokens", "model.layers.0.input_layernorm", "model.layers.0.self_attn.q_proj", kUp, "model.norm"));
  EXPECT_THAT(reader.PlainTensorNames(), ElementsAre("model.layers.0.self_attn.q_proj.bias"));
  EXPECT_TRUE(reader.HasWeight("model.norm"));
  EXPECT_FALSE(reader.HasWeight("lm_head"));
  const auto embedding = reader.ReadWeight("model.embed_tokens");
  ASSERT_TRUE(embedding.ok());
  EXPECT_EQ(embedding->name, "model.embed_tokens");
  EXPECT_EQ(embedding->dense->dtype, DType::kBF16);
  EXPECT_EQ(embedding->dense->shape, Shape({7, 8}));
  EXPECT_EQ(embedding->stored_bytes, 7 * 8 * 2);
  EXPECT_EQ(embedding->storage, nullptr);  // borrowed from the file
  EXPECT_EQ(DenseValues(*embedding), TinyValues("model.embed_tokens.weight", 56));
  EXPECT_EQ(DenseValues(*reader.ReadWeight(kUp)), f32);
  const auto bias = reader.ReadTensor("model.layers.0.self_attn.q_proj.bias");
  ASSERT_TRUE(bias.ok() && bias->has_value());
  EXPECT_EQ(DenseValues(**bias), TinyValues("model.layers.0.self_attn.q_proj.bias", 8));
  EXPECT_FALSE(reader.ReadTensor("absent.bias")->has_value());
  const auto absent = reader.ReadWeight("absent");
  EXPECT_EQ(absent.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(absent.status().message(), HasSubstr("absent: expected a weight, found none"));
  const auto info = reader.DescribeWeight(kUp);
  EXPECT_EQ(info->type, "F32");
  EXPECT_EQ(info->stored_bytes, 96 * 4);
  ASSERT_EQ(reader.Tensors().size(), 6u);
  EXPECT_EQ(reader.Tensors()[0].file, "model.safetensors");
}

TEST(HuggingFaceDirectory, UnalignedDataIsCopied) {
  const ScratchDirectory scratch;
  TinyDirectory tiny;
  tiny.padding = 3;
  const auto reader = Open(tiny, scratch);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto weight = (*reader)->ReadWeight("model.norm");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(weight->dense->data) % 2, 0u);
  EXPECT_NE(weight->storage, nullptr);
  EXPECT_EQ(DenseValues(*weight), TinyValues("model.norm.weight", 8));
}

TEST(HuggingFaceDirectory, ReadsCompressedTensors) {
  const ScratchDirectory scratch;
  TinyDirectory tiny;
  tiny.Quantize();
  const auto opened = Open(tiny, scratch);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const ArtifactReader& reader = **opened;
  EXPECT_EQ(reader.format(), "compressed-tensors");
  const auto weight = reader.ReadWeight(kUp);
  ASSERT_TRUE(weight.ok()) << weight.status();
  ASSERT_TRUE(weight->quantized.has_value());
  EXPECT_FALSE(weight->dense.has_value());
  EXPECT_EQ(weight->stored_bytes, 2 * 8 * 4 + 4 * 2 + 2 * 8);
  std::vector<float> row(64);
  const float scales[2][2] = {{0.5f, 0.25f}, {1.0f, 2.0f}};
  for (int o = 0; o < 2; ++o) {
    weight->quantized->DequantizeRow(o, absl::MakeSpan(row));
    for (int i = 0; i < 64; ++i)
      ASSERT_EQ(row[static_cast<size_t>(i)], scales[o][i / 32] * static_cast<float>((o * 7 + i) % 16 - 8)) << o << "," << i;
  }
  const auto info = reader.DescribeWeight(kUp);
  EXPECT_EQ(info->type, "pack-quantized");
  EXPECT_EQ(info->shape, Shape({2, 64}));
  EXPECT_EQ(info->stored_bytes, weight->stored_bytes);
  ASSERT_TRUE(info->quantized.has_value());
  EXPECT_EQ(info->quantized->bits, 4);
  EXPECT_EQ(info->quantized->group_size, 32);
  EXPECT_EQ(info->quantized->scale, weight->quantized->scale_dtype);
  EXPECT_FALSE(info->quantized->has_zero_point);
  EXPECT_TRUE(reader.ReadWeight("model.layers.0.self_attn.q_proj")->dense.has_value());
  EXPECT_EQ(reader.ReadTensor(absl::StrCat(kUp, ".weight_packed")).status().code(), absl::StatusCode::kDataLoss);
}

TEST(HuggingFaceDirectory, ReadsQuantizedActivations) {
  const ScratchDirectory scratch;
  TinyDirectory tiny;
  tiny.QuantizeStatically();
  const InputQuantization fixed{{}, 0.5f};
  auto reader = Open(tiny, scratch);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto weight = (*reader)->ReadWeight(kUp);
  ASSERT_TRUE(weight.ok()) << weight.status();
  EXPECT_EQ(weight->input, fixed);
  EXPECT_EQ(weight->quantized->code, (std::vector<uint8_t>{129, 130, 131, 132, 133, 134, 135, 136}));
  EXPECT_EQ(weight->stored_bytes, 8 + 4 + 2);
  EXPECT_EQ((*reader)->DescribeWeight(kUp)->quantized->input, fixed);
  EXPECT_EQ((*reader)->DescribeWeight(kUp)->quantized->group_size, 4);
  EXPECT_FALSE((*reader)->ReadWeight("model.layers.0.self_attn.q_proj")->input.has_value());

  tiny.Remove(absl::StrCat(kUp, ".input_scale"));
  EXPECT_THAT(Error(tiny), HasSubstr("up_proj.input_scale: expected BF16 or F16 or F32 [1] (static activations), found no such tensor"));
  Json& activations = tiny.config["quantization_config"]["config_groups"]["group_0"]["input_activations"];
  activations = {{"num_bits", 8}, {"strategy", "token"}, {"dynamic", true}};
  const ScratchDirectory other;
  reader = Open(tiny, other);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->ReadWeight(kUp)->input, (InputQuantization{{.strategy = QuantizationStrategy::kToken, .dynamic = true}, 0}));
  tiny.tensors.push_back({absl::StrCat(kUp, ".input_scale"), "BF16", {1}, Bf16Bytes({0.5f})});
  EXPECT_THAT(Error(tiny), HasSubstr("up_proj.input_scale: expected none, since config.json has scales of activations made at run time"));
}

TEST(HuggingFaceDirectory, ReadsOutlierColumns) {
  const ScratchDirectory scratch;
  TinyDirectory tiny;
  tiny.QuantizeWithOutlierColumns();
  const auto reader = Open(tiny, scratch);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->format(), "bitsandbytes");
  const auto weight = (*reader)->ReadWeight(kUp);
  ASSERT_TRUE(weight.ok()) << weight.status();
  ASSERT_TRUE(weight->input.has_value());
  EXPECT_TRUE(weight->input->args.fixed_outliers);
  EXPECT_EQ(weight->input->outlier_columns, (std::vector<int32_t>{1, 3}));
  EXPECT_EQ((*reader)->DescribeWeight(kUp)->quantized->input, weight->input);
  std::vector<float> row(4);
  weight->quantized->DequantizeRow(1, absl::MakeSpan(row));
  EXPECT_EQ(row, (std::vector<float>{10, 30, 14, 40}));
  EXPECT_EQ(weight->stored_bytes, 8 + 8 + 8 + 8);

  TinyDirectory undeclared = tiny;
  undeclared.config["quantization_config"].erase("llm_int8_outlier_columns");
  EXPECT_THAT(Error(undeclared), HasSubstr("up_proj.outlier_index: expected none, since config.json does not say that columns are stored"));
  TinyDirectory half = tiny;
  half.Remove(absl::StrCat(kUp, ".outlier_weight"));
  EXPECT_THAT(Error(half), HasSubstr("up_proj.outlier_weight: expected BF16 [2, 2] (outlier columns), found no such tensor"));
  half.Remove(absl::StrCat(kUp, ".outlier_index"));
  EXPECT_EQ(Error(half), "accepted");  // a module without outliers
}

TEST(HuggingFaceDirectory, ReadsFp8Weights) {
  const ScratchDirectory scratch;
  TinyDirectory tiny;
  tiny.QuantizeStatically();
  Json& group = tiny.config["quantization_config"]["config_groups"]["group_0"];
  tiny.config["quantization_config"]["format"] = "float-quantized";
  group["weights"] = {{"num_bits", 8}, {"type", "float"}, {"strategy", "channel"}};
  group["input_activations"] = {{"num_bits", 8}, {"type", "float"}, {"strategy", "tensor"}};
  tiny.Find(absl::StrCat(kUp, ".weight"))->dtype = "F8_E4M3";
  auto reader = Open(tiny, scratch);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto weight = (*reader)->ReadWeight(kUp);
  ASSERT_TRUE(weight.ok()) << weight.status();
  EXPECT_EQ(weight->quantized->type, QuantizationType::kFloat);
  EXPECT_EQ(weight->quantized->code, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(weight->input->static_scale, 0.5f);
  EXPECT_EQ((*reader)->DescribeWeight(kUp)->quantized->type, QuantizationType::kFloat);
}

TEST(HuggingFaceDirectory, QuantizedSetsMustBeComplete) {
  TinyDirectory good;
  good.Quantize();
  EXPECT_EQ(Error(good), "accepted");
  for (const char* suffix : {".weight_packed", ".weight_scale", ".weight_shape"}) {
    TinyDirectory missing = good;
    missing.Remove(absl::StrCat(kUp, suffix));
    EXPECT_THAT(Error(missing), HasSubstr(absl::StrCat(kUp, suffix))) << suffix;
    EXPECT_THAT(Error(missing), HasSubstr("model.safetensors: ")) << suffix;
  }
  TinyDirectory misshapen = good;
  misshapen.Find(absl::StrCat(kUp, ".weight_packed"))->shape = {1, 16};
  EXPECT_THAT(Error(misshapen), HasSubstr("expected I32 [2, 8]"));
  misshapen = good;
  misshapen.Find(absl::StrCat(kUp, ".weight_shape"))->data = RawBytes(std::vector<int64_t>{2, int64_t{1} << 62});
  EXPECT_NE(Error(misshapen), "accepted");
  TinyDirectory extra = good;
  extra.tensors.push_back({absl::StrCat(kUp, ".qzeros"), "I32", {1}, RawBytes<int32_t>(0)});
  EXPECT_THAT(Error(extra), HasSubstr("qzeros"));
  TinyDirectory both = good;
  both.tensors.push_back(Bf16Tensor(absl::StrCat(kUp, ".weight"), {2, 64}));
  EXPECT_THAT(Error(both), HasSubstr(absl::StrCat(kUp, ".weight: expected only")));
}

TEST(HuggingFaceDirectory, QuantizationConfigExplainsEveryModule) {
  TinyDirectory tiny;
  tiny.Quantize();
  tiny.config["quantization_config"]["ignore"] = Json::array();
  EXPECT_THAT(Error(tiny), HasSubstr("model.layers.0.self_attn.q_proj (Linear): stored unquantized, but a target matches it"));
  tiny.config["quantization_config"]["ignore"] = {"re:.*"};
  EXPECT_THAT(Error(tiny), HasSubstr("stored quantized, but \"ignore\" matches it"));
  tiny.config.erase("quantization_config");
  EXPECT_THAT(
      Error(tiny),
      HasSubstr(".weight_packed: expected only a weight, found a part of a quantized one, but config.json has no quantization_config"));
}

TEST(HuggingFaceDirectory, OtherQuantizersAreNamed) {
  const ScratchDirectory scratch;
  TinyDirectory tiny;
  tiny.config["quantization_config"] = {{"quant_method", "aqlm"}, {"bits", 4}};
  const auto reader = Open(tiny, scratch);
  EXPECT_EQ(reader.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(reader.status().message(), HasSubstr("config.json: quantization_config: \"quant_method\": expected one of compressed-tensors "
                                                   "gptq awq bitsandbytes fp8, found \"aqlm\""));
}

TEST(HuggingFaceDirectory, LeftoversAndWrongTypesAreNamed) {
  TinyDirectory tiny;
  tiny.tensors.push_back({"model.layers.0.mlp.up_proj.weight_scale", "BF16", {1}, Bf16Bytes({1})});
  EXPECT_THAT(Error(tiny), HasSubstr("up_proj.weight_scale: expected only a weight, found a part of a quantized one"));
  tiny = TinyDirectory();
  tiny.tensors.push_back({"model.rotary.table", "I64", {1}, RawBytes<int64_t>(1)});
  EXPECT_THAT(Error(tiny), HasSubstr("model.rotary.table: expected F32, F16 or BF16, found I64 [1], which belongs to no weight"));
  tiny = TinyDirectory();
  *tiny.Find("model.norm.weight") = {"model.norm.weight", "F64", {1}, RawBytes(1.0)};
  EXPECT_THAT(Error(tiny), HasSubstr("model.norm.weight: expected F32, F16 or BF16, found F64 [1]"));
  tiny = TinyDirectory();
  tiny.tensors.push_back(Bf16Tensor("alone", {1}));
  EXPECT_THAT(Error(tiny), HasSubstr("alone: expected a name of the form <module>.<tensor>"));
  tiny = TinyDirectory();
  tiny.tensors.push_back(Bf16Tensor("a\x1b.weight", {1}));
  EXPECT_THAT(Error(tiny), HasSubstr("a\\x1B.weight: expected a printable name"));
}

TEST(HuggingFaceDirectory, BiasesFitTheirWeights) {
  TinyDirectory tiny;
  *tiny.Find("model.layers.0.self_attn.q_proj.bias") = Bf16Tensor("model.layers.0.self_attn.q_proj.bias", {7});
  EXPECT_THAT(Error(tiny), HasSubstr("q_proj.bias: expected [8], found [7]"));
  tiny = TinyDirectory();
  tiny.tensors.push_back(Bf16Tensor("model.layers.0.mlp.gate_proj.bias", {12}));
  EXPECT_THAT(Error(tiny), HasSubstr("gate_proj.bias: expected a weight beside this bias, found none"));
  tiny = TinyDirectory();
  tiny.Quantize();
  tiny.tensors.push_back(Bf16Tensor(absl::StrCat(kUp, ".bias"), {2}));
  EXPECT_EQ(Error(tiny), "accepted");
  tiny.Find(absl::StrCat(kUp, ".bias"))->shape = {1, 2};
  EXPECT_THAT(Error(tiny), HasSubstr("up_proj.bias: expected [2], found [1, 2]"));
}

TEST(HuggingFaceDirectory, HeadIsStoredOrTied) {
  TinyDirectory tiny;
  tiny.config["tie_word_embeddings"] = false;
  EXPECT_THAT(Error(tiny), HasSubstr("config.json: \"tie_word_embeddings\": expected true since no lm_head.weight is stored, found false"));
  tiny.config["tie_word_embeddings"] = 1;
  EXPECT_THAT(Error(tiny), HasSubstr("expected true or false"));
  tiny.config.erase("tie_word_embeddings");
  const ScratchDirectory scratch;
  EXPECT_EQ((*Open(tiny, scratch))->config()["tie_word_embeddings"], true);
  tiny.tensors.push_back(Bf16Tensor("lm_head.weight", {7, 8}));
  EXPECT_EQ((*Open(tiny, scratch))->config()["tie_word_embeddings"], false);
  tiny.config["tie_word_embeddings"] = true;
  EXPECT_EQ((*Open(tiny, scratch))->config()["tie_word_embeddings"], true);
}

TEST(HuggingFaceDirectory, FingerprintIgnoresSharding) {
  const ScratchDirectory one, two, three;
  TinyDirectory tiny;
  const auto single = Open(tiny, one);
  ASSERT_TRUE(single.ok()) << single.status();
  // The same tensors in two shards, in another order, and a config with other white space.
  const std::vector<TinyTensor> first(tiny.tensors.begin(), tiny.tensors.begin() + 2), rest(tiny.tensors.begin() + 2, tiny.tensors.end());
  std::map<std::string, std::string> map;
  for (const TinyTensor& tensor : first) map[tensor.name] = "b.safetensors";
  for (const TinyTensor& tensor : rest) map[tensor.name] = "a.safetensors";
  WriteTestFile(two.File("config.json"), DumpJson(tiny.config));
  WriteTestFile(two.File("a.safetensors"), TinySafetensors(rest, 5));
  WriteTestFile(two.File("b.safetensors"), TinySafetensors(first));
  WriteTestFile(two.File(kSafetensorsIndexName), MakeSafetensorsIndex(map, 0));
  const auto sharded = HuggingFaceDirectory::Open(two.path());
  ASSERT_TRUE(sharded.ok()) << sharded.status();
  EXPECT_EQ(*(*single)->Fingerprint(), *(*sharded)->Fingerprint());
  EXPECT_EQ((*sharded)->DescribeWeight("model.norm")->file, "b.safetensors");
  tiny.config["hidden_size"] = 9;
  EXPECT_NE(*(*single)->Fingerprint(), *(*Open(tiny, three))->Fingerprint());
}

}  // namespace
}  // namespace pith
