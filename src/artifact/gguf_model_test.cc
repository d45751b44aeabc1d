#include "artifact/gguf_model.h"

#include <chrono>

#include "artifact/tiny_models.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kF16 = 1, kQ8_0 = 8;

// Owns the bytes of a model parsed from memory.
struct Model {
  std::string bytes;
  absl::StatusOr<std::unique_ptr<GgufModel>> reader = absl::UnknownError("");

  explicit Model(std::string content) : bytes(std::move(content)) {
    absl::StatusOr<GgufFile> file = GgufFile::Parse(bytes);
    reader = file.ok() ? GgufModel::Make(*std::move(file)) : absl::StatusOr<std::unique_ptr<GgufModel>>(file.status());
  }
  GgufModel* operator->() const { return reader->get(); }
  std::string error() const { return reader.ok() ? "accepted" : std::string(reader.status().message()); }
};

std::vector<float> Values(const Weight& weight) {
  std::vector<float> values(
      static_cast<size_t>(weight.dense.has_value() ? weight.dense->num_elements() : weight.quantized->out * weight.quantized->in));
  if (weight.dense.has_value()) {
    EXPECT_TRUE(ConvertToFloat(*weight.dense, absl::MakeSpan(values)).ok());
  } else {
    for (int64_t o = 0; o < weight.quantized->out; ++o) {
      weight.quantized->DequantizeRow(
          o, absl::MakeSpan(values).subspan(static_cast<size_t>(o * weight.quantized->in), static_cast<size_t>(weight.quantized->in)));
    }
  }
  return values;
}

// The converters' own formula: reshape(heads, 2, d / 2, in).swap(1, 2). `rows` [heads * d, in] in Hugging Face order.
std::vector<float> Interleave(const std::vector<float>& rows, int64_t heads, int64_t d, int64_t in) {
  std::vector<float> out;
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t j = 0; j < d / 2; ++j) {
      for (int64_t half = 0; half < 2; ++half) {
        for (int64_t i = 0; i < in; ++i) out.push_back(rows[static_cast<size_t>(((h * 2 + half) * (d / 2) + j) * in + i)]);
      }
    }
  }
  return out;
}

// A Q8_0 row of 32 columns: scale 2^-(row % 5), codes that depend on row and column.
std::string Q8Row(int64_t row) {
  std::string block = RawBytes(ToFloat16(1.0f / static_cast<float>(1 << (row % 5))));
  for (int i = 0; i < 32; ++i) block += static_cast<char>((row * 7 + i * 3) % 251 - 125);
  return block;
}

TEST(GgufModel, LlamaNamesAndOrder) {
  TinyGguf tiny;
  tiny.layers = 11;
  const Model model(tiny.Build());
  ASSERT_TRUE(model.reader.ok()) << model.error();
  const std::vector<std::string> names = model->WeightNames();
  ASSERT_EQ(names.size(), 2u + 11u * 9u);
  EXPECT_EQ(names.front(), "model.embed_tokens");
  EXPECT_EQ(names.back(), "model.norm");
  EXPECT_THAT(std::vector<std::string>(names.begin() + 1, names.begin() + 11),
              ElementsAre("model.layers.0.input_layernorm", "model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.k_proj",
                          "model.layers.0.self_attn.v_proj", "model.layers.0.self_attn.o_proj", "model.layers.0.post_attention_layernorm",
                          "model.layers.0.mlp.gate_proj", "model.layers.0.mlp.up_proj", "model.layers.0.mlp.down_proj",
                          "model.layers.1.input_layernorm"));
  EXPECT_TRUE(model->HasWeight("model.layers.10.mlp.down_proj"));
  EXPECT_FALSE(model->HasWeight("model.layers.11.mlp.down_proj"));
  EXPECT_FALSE(model->HasWeight("lm_head"));
  EXPECT_EQ(model->format(), "gguf");
  EXPECT_EQ(Values(*model->ReadWeight("model.layers.3.mlp.down_proj")), TinyValues("blk.3.ffn_down.weight", 8 * 12));
  EXPECT_EQ(model->ReadWeight("model.layers.3.mlp.down_proj")->dense->shape, Shape({8, 12}));
  EXPECT_EQ(Values(*model->ReadWeight("model.embed_tokens")), TinyValues("token_embd.weight", 7 * 8));
  const auto info = model->DescribeWeight("model.layers.3.mlp.down_proj");
  EXPECT_EQ(info->type, "F32");
  EXPECT_EQ(info->shape, Shape({8, 12}));
  EXPECT_EQ(info->stored_bytes, 8 * 12 * 4);
  EXPECT_FALSE(info->quantized.has_value());
  EXPECT_EQ(model->ReadWeight("model.layers.3.mlp").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(model->ReadTensor("model.layers.3.mlp.down_proj.bias")->has_value());
  EXPECT_EQ(model->Tensors().size(), names.size());
  EXPECT_EQ(model->Tensors()[0].name, "token_embd.weight");
}

TEST(GgufModel, LlamaQueryAndKeyRowsAreRestored) {
  TinyGguf tiny;
  tiny.hidden = 32;
  tiny.heads = 4;
  tiny.kv_heads = 2;
  tiny.head_dim = 8;
  const std::vector<float> q = TinyValues("the q projection", 32 * 32), bias = TinyValues("its bias", 32);
  tiny.data["blk.0.attn_q.weight"] = {0, RawBytes(Interleave(q, 4, 8, 32))};
  std::vector<float> narrow = Interleave(q, 4, 8, 32);
  std::vector<float16> half;
  for (const float value : narrow) half.push_back(ToFloat16(value));
  tiny.data["blk.1.attn_q.weight"] = {kF16, RawBytes(half)};
  // k: quantized; row r of Hugging Face's order is Q8Row(r).
  std::string stored_k;
  for (int64_t h = 0; h < 2; ++h) {
    for (int64_t j = 0; j < 4; ++j) stored_k += Q8Row(h * 8 + j) + Q8Row(h * 8 + 4 + j);
  }
  tiny.data["blk.0.attn_k.weight"] = {kQ8_0, stored_k};
  tiny.more = [&](GgufBuilder& b) { b.Tensor("blk.0.attn_q.bias", {32}, 0, RawBytes(Interleave(bias, 4, 8, 1))); };
  const Model model(tiny.Build());
  ASSERT_TRUE(model.reader.ok()) << model.error();
  EXPECT_EQ(Values(*model->ReadWeight("model.layers.0.self_attn.q_proj")), q);
  const auto as_half = model->ReadWeight("model.layers.1.self_attn.q_proj");
  EXPECT_EQ(as_half->dense->dtype, DType::kF16);
  EXPECT_EQ(Values(*as_half), q);
  EXPECT_EQ(Values(**model->ReadTensor("model.layers.0.self_attn.q_proj.bias")), bias);
  EXPECT_THAT(model->PlainTensorNames(), ElementsAre("model.layers.0.self_attn.q_proj.bias"));
  EXPECT_EQ(model->config()["attention_bias"], true);
  const auto k = model->ReadWeight("model.layers.0.self_attn.k_proj");
  ASSERT_TRUE(k.ok() && k->quantized.has_value());
  const std::vector<float> values = Values(*k);
  for (int64_t row = 0; row < 16; ++row) {
    for (int i = 0; i < 32; ++i) {
      const float expected = static_cast<float>((row * 7 + i * 3) % 251 - 125) / static_cast<float>(1 << (row % 5));
      ASSERT_EQ(values[static_cast<size_t>(row * 32 + i)], expected) << row << "," << i;
    }
  }
  // v is not rotated, so its rows lie as they are.
  EXPECT_EQ(Values(*model->ReadWeight("model.layers.0.self_attn.v_proj")), TinyValues("blk.0.attn_v.weight", 16 * 32));
}

TEST(GgufModel, QwenRowsStayAndBiasesAreRead) {
  TinyGguf tiny;
  tiny.architecture = "qwen2";
  tiny.output = true;
  const Model model(tiny.Build());
  ASSERT_TRUE(model.reader.ok()) << model.error();
  EXPECT_EQ(Values(*model->ReadWeight("model.layers.1.self_attn.q_proj")), TinyValues("blk.1.attn_q.weight", 64));
  EXPECT_EQ(Values(**model->ReadTensor("model.layers.1.self_attn.k_proj.bias")), TinyValues("blk.1.attn_k.bias", 4));
  EXPECT_EQ(model->PlainTensorNames().size(), 6u);
  EXPECT_EQ(Values(*model->ReadWeight("lm_head")), TinyValues("output.weight", 56));
  EXPECT_EQ(model->config()["tie_word_embeddings"], false);
  tiny.omit_tensors = {"blk.1.attn_v.bias"};
  EXPECT_THAT(Model(tiny.Build()).error(), HasSubstr("blk.1.attn_v.bias: expected a tensor [4], found none"));
}

TEST(GgufModel, Qwen3HasQueryAndKeyNorms) {
  TinyGguf tiny;
  tiny.architecture = "qwen3";
  tiny.head_dim = 6;
  const Model model(tiny.Build());
  ASSERT_TRUE(model.reader.ok()) << model.error();
  EXPECT_EQ(Values(*model->ReadWeight("model.layers.0.self_attn.q_norm")), TinyValues("blk.0.attn_q_norm.weight", 6));
  EXPECT_EQ(Values(*model->ReadWeight("model.layers.0.self_attn.k_norm")), TinyValues("blk.0.attn_k_norm.weight", 6));
  EXPECT_EQ(model->config()["head_dim"], 6);
}

TEST(GgufModel, GemmaNormsAreHuggingFaces) {
  TinyGguf tiny;
  tiny.architecture = "gemma3";
  const Model model(tiny.Build());
  ASSERT_TRUE(model.reader.ok()) << model.error();
  const std::map<std::string, std::string> norms = {{"model.norm", "output_norm.weight"},
                                                    {"model.layers.1.input_layernorm", "blk.1.attn_norm.weight"},
                                                    {"model.layers.1.post_attention_layernorm", "blk.1.post_attention_norm.weight"},
                                                    {"model.layers.1.pre_feedforward_layernorm", "blk.1.ffn_norm.weight"},
                                                    {"model.layers.1.post_feedforward_layernorm", "blk.1.post_ffw_norm.weight"},
                                                    {"model.layers.1.self_attn.q_norm", "blk.1.attn_q_norm.weight"},
                                                    {"model.layers.1.self_attn.k_norm", "blk.1.attn_k_norm.weight"}};
  for (const auto& [name, gguf] : norms) {
    const auto weight = model->ReadWeight(name);
    ASSERT_TRUE(weight.ok()) << weight.status();
    std::vector<float> expected = TinyValues(gguf, weight->dense->num_elements());
    for (float& value : expected) value -= 1.0f;
    EXPECT_EQ(Values(*weight), expected) << name;
    EXPECT_EQ(weight->dense->dtype, DType::kF32);
    EXPECT_EQ(weight->dense->data, weight->storage->data());
  }
  // Matrices are left alone.
  EXPECT_EQ(Values(*model->ReadWeight("model.layers.1.self_attn.q_proj")), TinyValues("blk.1.attn_q.weight", 64));
}

TEST(GgufModel, EveryMissingOrMisshapenTensorIsNamed) {
  for (const char* architecture : {"llama", "qwen2", "qwen3", "gemma3"}) {
    TinyGguf tiny;
    tiny.architecture = architecture;
    const std::string good = tiny.Build();
    const auto file = GgufFile::Parse(good);
    ASSERT_TRUE(file.ok());
    for (const GgufTensor& tensor : file->tensors()) {
      TinyGguf missing = tiny, misshapen = tiny;
      missing.omit_tensors = {tensor.name};
      EXPECT_THAT(Model(missing.Build()).error(), HasSubstr(tensor.name + ": expected")) << architecture;
      std::vector<int64_t> dims(tensor.shape.rbegin(), tensor.shape.rend());
      dims[0] += 1;
      misshapen.dims = {{tensor.name, dims}};
      EXPECT_THAT(Model(misshapen.Build()).error(), HasSubstr(tensor.name + ": expected [")) << architecture;
    }
  }
}

TEST(GgufModel, LeftoversAreNamed) {
  TinyGguf tiny;
  tiny.more = [](GgufBuilder& b) { b.Tensor("blk.0.ffn_gate_inp.weight", {1}, 0, RawBytes(1.0f)).Tensor("x", {1}, 0, RawBytes(1.0f)); };
  EXPECT_THAT(Model(tiny.Build()).error(),
              HasSubstr("tensor \"blk.0.ffn_gate_inp.weight\": expected only tensors of the architecture, found this one and 1 more"));
  tiny.more = [](GgufBuilder& b) { b.Tensor("blk.2.attn_norm.weight", {8}, 0, RawBytes(std::vector<float>(8))); };
  EXPECT_THAT(Model(tiny.Build()).error(), HasSubstr("blk.2.attn_norm.weight"));
}

TEST(GgufModel, QuantizedVectorsAreRefused) {
  TinyGguf tiny;
  tiny.hidden = 32;
  tiny.head_dim = 8;
  tiny.data["output_norm.weight"] = {kQ8_0, Q8Row(0)};
  EXPECT_THAT(Model(tiny.Build()).error(), HasSubstr("output_norm.weight: expected a vector of F32, F16 or BF16, found Q8_0"));
}

TEST(GgufModel, BadScalesAreNamedWhenRead) {
  TinyGguf tiny;
  tiny.hidden = 32;
  tiny.head_dim = 8;
  tiny.kv_heads = 1;
  std::string rows;
  for (int64_t row = 0; row < 8; ++row) rows += Q8Row(row);
  rows.replace(34 * 3, 2, RawBytes<uint16_t>(0x7C00));  // infinity
  tiny.data["blk.1.attn_v.weight"] = {kQ8_0, rows};
  const Model model(tiny.Build());
  ASSERT_TRUE(model.reader.ok()) << model.error();
  const auto weight = model->ReadWeight("model.layers.1.self_attn.v_proj");
  EXPECT_EQ(weight.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(weight.status().message(), HasSubstr("blk.1.attn_v.weight: Q8_0 row 3"));
}

TEST(GgufModel, ArchitectureAndSplitFiles) {
  TinyGguf tiny;
  tiny.architecture = "mamba";
  Model unknown(tiny.Build());
  EXPECT_EQ(unknown.reader.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(unknown.error(), HasSubstr("expected one of llama, qwen2, qwen3, gemma3; found \"mamba\""));
  TinyGguf no_name;
  no_name.omit_keys = {"general.architecture"};
  EXPECT_THAT(Model(no_name.Build()).error(), HasSubstr("general.architecture: expected a string, found nothing"));
  EXPECT_THAT(Model(GgufBuilder().U32("general.architecture", 7).Build()).error(),
              HasSubstr("general.architecture: expected a string, found u32 7"));
  TinyGguf split;
  split.more = [](GgufBuilder& b) { b.Raw("split.count", 2, RawBytes<uint16_t>(3)); };
  Model parts(split.Build());
  EXPECT_EQ(parts.reader.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(parts.error(), HasSubstr("split into 3"));
}

TEST(GgufModel, UnalignedDataIsCopied) {
  TinyGguf tiny;
  const std::string aligned = tiny.Build();
  // With an alignment of 1 the data may lie anywhere; every key length shifts it.
  for (int shift = 0; shift < 4; ++shift) {
    GgufBuilder b;
    b.alignment = 1;
    tiny.AddMetadata(b);
    b.U32("general.alignment", 1).Str("pad", std::string(static_cast<size_t>(shift), 'x'));
    const auto file = GgufFile::Parse(aligned);
    for (const GgufTensor& tensor : file->tensors()) {
      const auto bytes = file->Bytes(tensor);
      b.Tensor(tensor.name, {tensor.shape.rbegin(), tensor.shape.rend()}, 0, std::string(bytes.begin(), bytes.end()));
    }
    const Model model(b.Build());
    ASSERT_TRUE(model.reader.ok()) << model.error();
    const auto weight = model->ReadWeight("model.layers.0.mlp.up_proj");
    EXPECT_EQ(reinterpret_cast<uintptr_t>(weight->dense->data) % 4, 0u);
    EXPECT_EQ(Values(*weight), TinyValues("blk.0.ffn_up.weight", 96));
  }
}

TEST(GgufModel, FingerprintDependsOnMetadataAndBytesOnly) {
  TinyGguf tiny;
  const std::string base = *Model(tiny.Build())->Fingerprint();
  EXPECT_EQ(base.size(), 64u);
  EXPECT_EQ(base, *Model(tiny.Build())->Fingerprint());
  TinyGguf other = tiny;
  std::vector<float> values = TinyValues("output_norm.weight", 8);
  values[7] += 1.0f / 64;
  other.data["output_norm.weight"] = {0, RawBytes(values)};
  EXPECT_NE(base, *Model(other.Build())->Fingerprint());
  other = tiny;
  other.more = [](GgufBuilder& b) { b.Str("general.name", "x"); };
  EXPECT_NE(base, *Model(other.Build())->Fingerprint());
}

// ggml's own blocks of every type, through a file: the embedding of a one-token vocabulary.
TEST(GgufModel, GoldenBlocks) {
  const auto text = ReadFile(SharedPath("golden/gguf_blocks.json"));
  if (!text.ok()) GTEST_SKIP() << "needs the shared golden vectors (set PITH_SHARED_DIR)";
  const Json golden = *ParseJson(*text);
  int checked = 0;
  const std::map<std::string, uint32_t> ids = {{"Q4_0", 2}, {"Q4_1", 3},  {"Q5_0", 6},  {"Q5_1", 7},
                                               {"Q8_0", 8}, {"Q4_K", 12}, {"Q5_K", 13}, {"Q6_K", 14}};
  const auto unhex = [](const std::string& hex) {
    std::string bytes;
    for (size_t i = 0; i + 1 < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    return bytes;
  };
  for (const Json& entry : golden["cases"]) {
    const std::string type = entry["type"];
    ASSERT_TRUE(ids.contains(type)) << type;
    TinyGguf tiny;
    tiny.hidden = 256;
    tiny.vocab = 1;
    tiny.head_dim = 64;
    tiny.tokenizer = false;
    tiny.data["token_embd.weight"] = {ids.at(type), unhex(entry["bytes"])};
    const Model model(tiny.Build());
    ASSERT_TRUE(model.reader.ok()) << model.error();
    const auto weight = model->ReadWeight("model.embed_tokens");
    ASSERT_TRUE(weight.ok()) << weight.status();
    const std::vector<float> values = Values(*weight);
    const std::string dequant = entry["dequant_f32"];
    ASSERT_EQ(dequant.size(), 256u * 8);
    for (size_t i = 0; i < 256; ++i) {
      const uint32_t bits = static_cast<uint32_t>(std::stoul(dequant.substr(i * 8, 8), nullptr, 16));
      ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), bits) << type << " element " << i;
    }
    ++checked;
  }
  EXPECT_GE(checked, 7);
}

struct RealModel {
  const char* name;  // of the test
  const char* path;
  size_t weights, plain;
  int64_t vocab;
};

void PrintTo(const RealModel& model, std::ostream* out) { *out << model.path; }

class RealGguf : public testing::TestWithParam<RealModel> {};

// Opens, names everything the architecture has, and decodes every weight, one at a time.
TEST_P(RealGguf, OpensAndDecodes) {
  const std::string path = ModelPath(GetParam().path);
  if (!FileExists(path)) GTEST_SKIP() << "needs " << path << " (scripts/get_models)";
  const auto start = std::chrono::steady_clock::now();
  const auto reader = ArtifactReader::Open(path);
  const double open_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_LT(open_ms, 2000.0);
  RecordProperty("open_ms", static_cast<int>(open_ms));
  EXPECT_EQ((*reader)->WeightNames().size(), GetParam().weights);
  EXPECT_EQ((*reader)->PlainTensorNames().size(), GetParam().plain);
  EXPECT_EQ((*reader)->tokenizer_files().tokens.size(), static_cast<size_t>(GetParam().vocab));
  EXPECT_EQ((*reader)->config()["vocab_size"], GetParam().vocab);
  EXPECT_EQ((*reader)->Tensors().size(), GetParam().weights + GetParam().plain);
  for (const std::string& name : (*reader)->WeightNames()) {
    const auto weight = (*reader)->ReadWeight(name);
    ASSERT_TRUE(weight.ok()) << weight.status();
    ASSERT_NE(weight->dense.has_value(), weight->quantized.has_value());
    const auto info = (*reader)->DescribeWeight(name);
    EXPECT_EQ(weight->stored_bytes, info->stored_bytes);
    ASSERT_EQ(weight->quantized.has_value(), info->quantized.has_value()) << name;
    if (!info->quantized.has_value()) continue;
    EXPECT_EQ(info->quantized->bits, weight->quantized->bits) << name;
    EXPECT_EQ(info->quantized->group_size, weight->quantized->group_size) << name;
    EXPECT_EQ(info->quantized->has_min, !weight->quantized->min.empty()) << name;
    EXPECT_EQ(info->quantized->has_zero_point, !weight->quantized->zero_point.empty()) << name;
  }
  for (const std::string& name : (*reader)->PlainTensorNames()) EXPECT_TRUE((*reader)->ReadTensor(name)->has_value()) << name;
}

INSTANTIATE_TEST_SUITE_P(
    Models, RealGguf,
    testing::Values(RealModel{"SmolLm2", "smollm2-135m-instruct/SmolLM2-135M-Instruct.Q4_1.gguf", 272, 0, 49152},
                    RealModel{"Gemma3", "gemma-3-270m/gemma-3-270m-q4_k_m.gguf", 236, 0, 262144},
                    RealModel{"Qwen05", "qwen2.5-coder-0.5b-instruct/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", 219, 72, 151936},
                    RealModel{"Qwen15", "qwen2.5-coder-1.5b-instruct/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 255, 84, 151936}),
    [](const testing::TestParamInfo<RealModel>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace pith
