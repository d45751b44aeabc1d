#include "artifact/stored_conversion.h"

#include "artifact/manifest.h"
#include "artifact/tiny_models.h"
#include "base/random.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "quantization/formats/format_table.h"
#include "quantization/quantization_config.h"

namespace pith {
namespace {

using testing::HasSubstr;

constexpr char kQ[] = "model.layers.0.self_attn.q_proj", kUp[] = "model.layers.0.mlp.up_proj";

QuantizationArgs Grouped(int bits, bool symmetric) {
  return {.num_bits = bits, .symmetric = symmetric, .strategy = QuantizationStrategy::kGroup, .group_size = 32};
}

QuantizationArgs Channel(int bits) { return {.num_bits = bits, .strategy = QuantizationStrategy::kChannel}; }

// A llama whose q_proj [32, 64] and up_proj [64, 64] are quantized by compressed-tensors, with scales that every format holds.
TinyDirectory Quantized(const std::string& format, const QuantizationArgs& args, const std::optional<QuantizationArgs>& input = {}) {
  TinyDirectory tiny;
  RandomStream random(3);
  tiny.tensors = {Bf16Tensor("model.embed_tokens.weight", {7, 64}), Bf16Tensor("model.norm.weight", {64}),
                  Bf16Tensor("model.layers.0.input_layernorm.weight", {64}), Bf16Tensor(absl::StrCat(kQ, ".bias"), {32})};
  for (const auto& [name, out] : {std::pair(kQ, 32), std::pair(kUp, 64)}) {
    QuantizedTensor weight{.out = out, .in = 64, .bits = args.num_bits, .type = args.type, .scale_dtype = DType::kBF16};
    weight.group_size = args.columns_per_scale(64);
    for (int i = 0; i < out * 64; ++i) weight.code.push_back(static_cast<uint8_t>(random.Below(1 << args.num_bits) & 0x7E));
    const int64_t groups = weight.num_groups();
    for (int64_t i = 0; i < out * groups; ++i) {
      const bool repeats = args.strategy == QuantizationStrategy::kBlock && i / groups % args.block_rows != 0;
      weight.scale.push_back(repeats ? weight.scale[i - groups] : static_cast<float>(1 + random.Below(127)) / 32.0f);
    }
    if (!args.symmetric) {
      for (size_t i = 0; i < weight.scale.size(); ++i) weight.zero_point.push_back(static_cast<uint8_t>(random.Below(1 << args.num_bits)));
    }
    const auto stored = EncodeWeight(format, weight, args);
    EXPECT_TRUE(stored.ok()) << stored.status();
    for (const StoredTensor& part : *stored) {
      const absl::Span<const uint8_t> bytes = part.tensor.view().bytes();
      tiny.tensors.push_back({absl::StrCat(name, ".", part.suffix),
                              std::string(DTypeName(part.tensor.dtype())),
                              {part.tensor.shape().begin(), part.tensor.shape().end()},
                              std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())});
    }
  }
  QuantizationScheme scheme{.name = "", .format = format, .weights = args, .input_activations = input};
  tiny.config["quantization_config"] = ToJson(*MakeQuantizationConfig(scheme, {"lm_head"}));
  return tiny;
}

struct Source {
  explicit Source(const TinyDirectory& tiny) {
    std::filesystem::create_directory(scratch.File("in"));
    tiny.Write(scratch.File("in"));
    WriteTestFile(scratch.File("in/tokenizer.json"), "{ }\n");
    auto opened = ArtifactReader::Open(scratch.File("in"));
    EXPECT_TRUE(opened.ok()) << opened.status();
    reader = *std::move(opened);
  }
  absl::Status Convert(const char* target, const std::string& output) const {
    return ConvertStored(*reader, **FindStoredTarget(target), output, {.pith_version = "0.1.0"}).status();
  }
  ScratchDirectory scratch;
  std::unique_ptr<ArtifactReader> reader;
};

void ExpectSameWeights(const ArtifactReader& a, const ArtifactReader& b) {
  ASSERT_EQ(a.WeightNames(), b.WeightNames());
  ASSERT_EQ(a.PlainTensorNames(), b.PlainTensorNames());
  for (const std::string& name : a.WeightNames()) {
    const auto left = a.ReadWeight(name), right = b.ReadWeight(name);
    ASSERT_TRUE(left.ok() && right.ok()) << left.status() << right.status();
    ASSERT_EQ(left->quantized.has_value(), right->quantized.has_value()) << name;
    if (left->dense.has_value()) {
      EXPECT_EQ(left->dense->dtype, right->dense->dtype);
      EXPECT_EQ(left->dense->bytes(), right->dense->bytes()) << name;
      continue;
    }
    EXPECT_EQ(left->quantized->code, right->quantized->code);
    std::vector<float> x(static_cast<size_t>(left->quantized->in)), y(x.size());
    for (int64_t o = 0; o < left->quantized->out; ++o) {
      left->quantized->DequantizeRow(o, absl::MakeSpan(x));
      right->quantized->DequantizeRow(o, absl::MakeSpan(y));
      ASSERT_EQ(x, y) << name << " row " << o;
    }
  }
}

// Every scheme through every target that holds it and back: the same codes and the same weights.
TEST(StoredConversion, TheSameWeightsInEveryFormat) {
  struct Case {
    const char* format;
    QuantizationArgs args;
    std::optional<QuantizationArgs> input;
    std::vector<const char*> targets;
  };
  const QuantizationArgs per_token{.strategy = QuantizationStrategy::kToken, .dynamic = true};
  const QuantizationArgs fp8{.type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kChannel};
  const QuantizationArgs block{
      .type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kBlock, .block_rows = 32, .block_cols = 32};
  const QuantizationArgs fp8_groups{
      .type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kGroup, .group_size = 32, .dynamic = true};
  const Case cases[] = {{"pack-quantized", Grouped(4, true), {}, {"compressed-tensors", "gptq", "gptq_v2", "awq"}},
                        {"pack-quantized", Grouped(4, false), {}, {"compressed-tensors", "gptq_v2", "awq"}},
                        {"pack-quantized", Grouped(8, true), {}, {"compressed-tensors", "gptq", "gptq_v2"}},
                        {"pack-quantized", Channel(8), {}, {"compressed-tensors", "gptq", "gptq_v2", "bnb-int8"}},
                        {"int-quantized", Channel(8), per_token, {"compressed-tensors", "bnb-int8"}},
                        {"naive-quantized", fp8, {}, {"compressed-tensors"}}};
  for (const Case& c : cases) {
    const Source source(Quantized(c.format, c.args, c.input));
    for (const StoredTarget& target : StoredTargets()) {
      SCOPED_TRACE(absl::StrCat(c.format, " ", c.args.num_bits, c.args.symmetric ? "" : " asymmetric", " to ", target.name));
      const std::string out = source.scratch.File(std::string(target.name)), back = out + "-back";
      const absl::Status status = source.Convert(std::string(target.name).c_str(), out);
      const bool held = std::any_of(c.targets.begin(), c.targets.end(), [&](const char* name) { return target.name == name; });
      ASSERT_EQ(status.ok(), held) << status;
      if (!held) {
        EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
        EXPECT_FALSE(FileExists(out));
        continue;
      }
      EXPECT_TRUE(VerifyManifest(out).ok()) << VerifyManifest(out);
      EXPECT_EQ(ReadTestFile(out + "/tokenizer.json"), "{ }\n");
      const auto converted = ArtifactReader::Open(out);
      ASSERT_TRUE(converted.ok()) << converted.status();
      EXPECT_TRUE((*converted)->notes().empty());
      ExpectSameWeights(*source.reader, **converted);
      ASSERT_TRUE(ConvertStored(**converted, **FindStoredTarget("compressed-tensors"), back, {}).ok());
      ExpectSameWeights(*source.reader, **ArtifactReader::Open(back));
    }
  }
  // fp8 blocks lie in the two containers under other names.
  const Source source(Quantized("float-quantized", block, fp8_groups));
  ASSERT_TRUE(source.Convert("fp8-block", source.scratch.File("fp8")).ok());
  const auto converted = ArtifactReader::Open(source.scratch.File("fp8"));
  ASSERT_TRUE(converted.ok()) << converted.status();
  EXPECT_EQ((*converted)->format(), "fp8");
  ExpectSameWeights(*source.reader, **converted);
}

TEST(StoredConversion, WritesTheSmallestConfig) {
  const Source source(Quantized("pack-quantized", Grouped(4, true)));
  const auto config_of = [&](const char* target) {
    EXPECT_TRUE(source.Convert(target, source.scratch.File(target)).ok());
    return DumpJson((*ParseJson(ReadTestFile(source.scratch.File(target) + "/config.json")))["quantization_config"]);
  };
  EXPECT_EQ(config_of("gptq"), R"({"bits":4,"checkpoint_format":"gptq","desc_act":false,"group_size":32,"lm_head":false,)"
                               R"("quant_method":"gptq","sym":true})");
  EXPECT_EQ(config_of("awq"), R"({"bits":4,"group_size":32,"modules_to_not_convert":["lm_head"],"quant_method":"awq","version":"gemm",)"
                              R"("zero_point":true})");
  EXPECT_EQ(config_of("compressed-tensors"), DumpJson(source.reader->config()["quantization_config"]));
}

// Codes stand in for the columns, so that loaders of bitsandbytes find outliers at run time; other formats would lose them in silence.
TEST(StoredConversion, OutlierColumnsAreLeftOutForBitsandbytesAlone) {
  TinyDirectory tiny;
  tiny.QuantizeWithOutlierColumns();
  const Source source(tiny);
  const std::string plain = source.scratch.File("plain");
  const absl::Status converted = source.Convert("bnb-int8", plain);
  ASSERT_TRUE(converted.ok()) << converted;
  const auto reader = ArtifactReader::Open(plain);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto weight = (*reader)->ReadWeight(kUp);
  EXPECT_TRUE(weight->quantized->outlier_column.empty());
  EXPECT_EQ(weight->input->args.outlier_threshold, 6.0f);
  EXPECT_FALSE(weight->input->args.fixed_outliers);
  EXPECT_EQ(weight->quantized->code, source.reader->ReadWeight(kUp)->quantized->code);
  for (const char* target : {"compressed-tensors", "gptq"}) {
    EXPECT_THAT(source.Convert(target, source.scratch.File(target)).message(), HasSubstr("up_proj: expected no outlier columns for"));
  }
  EXPECT_TRUE(ConvertStored(**reader, **FindStoredTarget("compressed-tensors"), source.scratch.File("ct"), {}).ok());
  EXPECT_FALSE((*ArtifactReader::Open(source.scratch.File("ct")))->ReadWeight(kUp)->input.has_value());
}

TEST(StoredConversion, SaysWhyNot) {
  const Source dense((TinyDirectory()));
  EXPECT_THAT(dense.Convert("gptq", dense.scratch.File("out")).message(), HasSubstr("found a dense model; quantize it first"));
  const Source int8(Quantized("int-quantized", Channel(8), QuantizationArgs{.strategy = QuantizationStrategy::kToken, .dynamic = true}));
  EXPECT_EQ(int8.Convert("gptq", int8.scratch.File("out")).message(),
            absl::StrCat(kQ, ": expected unquantized activations for gptq, found int8 dynamic per token"));
  const Source asymmetric(Quantized("pack-quantized", Grouped(4, false)));
  EXPECT_THAT(asymmetric.Convert("gptq", asymmetric.scratch.File("out")).message(), HasSubstr("expected symmetric codes"));
  TinyDirectory fine = Quantized("pack-quantized", Grouped(4, true));
  fine.Find(absl::StrCat(kUp, ".weight_scale"))->data = Bf16Bytes(std::vector<float>(128, 1.0f / (1 << 30)));
  const Source tiny_scales(fine);
  EXPECT_THAT(tiny_scales.Convert("awq", tiny_scales.scratch.File("out")).message(),
              HasSubstr(absl::StrCat(kUp, ": weight format awq: expected scales that F16 holds exactly")));
  EXPECT_FALSE(FileExists(tiny_scales.scratch.File("out")));
  EXPECT_THAT(FindStoredTarget("exl2").status().message(), HasSubstr("known are compressed-tensors gptq gptq_v2 awq bnb-int8 fp8-block"));
}

// Q8_0 blocks are 8-bit codes in groups of 32 with F16 scales: compressed-tensors holds them. Q4_1 has minimums.
TEST(StoredConversion, GgufBlocksThatAreCodesAndScales) {
  TinyGguf tiny;
  tiny.hidden = 32;
  tiny.heads = 4;
  tiny.head_dim = 8;
  std::string blocks;
  for (int row = 0; row < 12; ++row) {
    blocks += RawBytes<uint16_t>(0x3800);  // 0.5
    for (int i = 0; i < 32; ++i) blocks.push_back(static_cast<char>(row * 32 + i));
  }
  tiny.data["blk.0.ffn_up.weight"] = {8, blocks};
  const ScratchDirectory scratch;
  WriteTestFile(scratch.File("in.gguf"), tiny.Build());
  const auto source = ArtifactReader::Open(scratch.File("in.gguf"));
  ASSERT_TRUE(source.ok()) << source.status();
  const auto report = ConvertStored(**source, **FindStoredTarget("compressed-tensors"), scratch.File("out"), {});
  ASSERT_TRUE(report.ok()) << report.status();
  const auto converted = ArtifactReader::Open(scratch.File("out"));
  ASSERT_TRUE(converted.ok()) << converted.status();
  EXPECT_EQ((*converted)->ReadWeight(kUp)->quantized->code, (*source)->ReadWeight(kUp)->quantized->code);
  EXPECT_EQ((*converted)->ReadWeight(kUp)->quantized->scale_dtype, DType::kF16);
  EXPECT_EQ((*converted)->DescribeWeight("model.norm")->type, "BF16");
  tiny.data["blk.0.ffn_up.weight"] = {3, std::string(12 * 20, '\0')};
  WriteTestFile(scratch.File("q4_1.gguf"), tiny.Build());
  const auto minimums = ConvertStored(**ArtifactReader::Open(scratch.File("q4_1.gguf")), **FindStoredTarget("compressed-tensors"),
                                      scratch.File("other"), {});
  EXPECT_EQ(minimums.status().message(),
            absl::StrCat(kUp,
                         ": expected codes with a scale and a zero point per group, found minimums (Q4_1); convert to bf16 and "
                         "quantize that"));
}

// As published files are: wrong labels, side files with the config, errors of shape with the tensor's name.
TEST(StoredConversion, ReadsFilesOfOtherQuantizers) {
  const Source source(Quantized("pack-quantized", Grouped(4, true)));
  const std::string out = source.scratch.File("gptq");
  ASSERT_TRUE(source.Convert("gptq_v2", out).ok());
  Json config = *ParseJson(ReadTestFile(out + "/config.json"));
  config["quantization_config"]["checkpoint_format"] = "gptq";  // a wrong label
  WriteTestFile(out + "/quantize_config.json", DumpJson(config["quantization_config"]));
  config.erase("quantization_config");
  WriteTestFile(out + "/config.json", DumpJson(config));
  const auto reader = ArtifactReader::Open(out);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->format(), "gptq");
  ASSERT_EQ((*reader)->notes().size(), 1u);
  EXPECT_THAT((*reader)->notes()[0], HasSubstr("labelled gptq, but the zero points are those of gptq_v2"));
  ExpectSameWeights(*source.reader, **reader);
  Json quantize = *ParseJson(ReadTestFile(out + "/quantize_config.json"));
  quantize["group_size"] = 16;
  WriteTestFile(out + "/quantize_config.json", DumpJson(quantize));
  const absl::Status shape = ArtifactReader::Open(out).status();
  EXPECT_EQ(shape.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(shape.message(), HasSubstr("qzeros: expected I32 [4, "));
}

}  // namespace
}  // namespace pith
