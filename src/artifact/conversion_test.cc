#include "artifact/conversion.h"

#include <limits>

#include "artifact/manifest.h"
#include "artifact/safetensors.h"
#include "artifact/test_values.h"
#include "artifact/tiny_models.h"
#include "base/python_process.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Every module of the output is the bf16 rounding of the input's, and nothing else is there.
void ExpectSameModel(const ArtifactReader& source, const ArtifactReader& converted) {
  ASSERT_EQ(source.WeightNames(), converted.WeightNames());
  ASSERT_EQ(source.PlainTensorNames(), converted.PlainTensorNames());
  for (const std::string& name : source.WeightNames()) {
    const std::vector<float> expected = WeightValues(source, name), found = WeightValues(converted, name);
    ASSERT_EQ(expected.size(), found.size()) << name;
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(found[i], RoundToBfloat16(expected[i])) << name << " " << i;
    EXPECT_EQ(source.DescribeWeight(name)->shape, converted.DescribeWeight(name)->shape);
    EXPECT_EQ(converted.DescribeWeight(name)->type, "BF16");
  }
}

TEST(Conversion, GgufToHuggingFace) {
  for (const char* architecture : {"llama", "qwen2", "qwen3", "gemma3"}) {
    const ScratchDirectory scratch;
    TinyGguf tiny;
    tiny.architecture = architecture;
    tiny.output = tiny.is("qwen2");
    WriteTestFile(scratch.File("in.gguf"), tiny.Build());
    const auto source = ArtifactReader::Open(scratch.File("in.gguf"));
    ASSERT_TRUE(source.ok()) << source.status();
    ConversionOptions options;
    options.tokenizer_json = "{\"version\":\"1.0\"}";
    options.tokenizer_config_json = "{}";
    options.pith_version = "0.1.0";
    std::vector<std::pair<int64_t, int64_t>> progress;
    options.progress = [&](int64_t done, int64_t total) {
      progress.emplace_back(done, total);
      return absl::OkStatus();
    };
    const auto report = ConvertToHuggingFace(**source, scratch.File("out"), options);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_THAT(*ListDirectory(scratch.File("out")), ElementsAre("README.md", "config.json", "generation_config.json", "model.safetensors",
                                                                 "pith.json", "tokenizer.json", "tokenizer_config.json"));
    const auto converted = ArtifactReader::Open(scratch.File("out"));
    ASSERT_TRUE(converted.ok()) << converted.status();
    ExpectSameModel(**source, **converted);
    EXPECT_EQ((*converted)->config(), (*source)->config());
    EXPECT_EQ((*converted)->generation_config(), (*source)->generation_config());
    EXPECT_EQ((*converted)->tokenizer_files().tokenizer_json, options.tokenizer_json);
    EXPECT_EQ(report->num_tensors, static_cast<int64_t>((*source)->Tensors().size()));
    EXPECT_EQ(progress.size(), (*source)->Tensors().size());
    EXPECT_EQ(progress.back(), std::make_pair(report->num_tensors, report->num_tensors));
    int64_t input_bytes = 0;
    for (const TensorInfo& tensor : (*source)->Tensors()) input_bytes += tensor.stored_bytes;
    EXPECT_EQ(report->input_bytes, input_bytes);
    EXPECT_GT(report->output_bytes, input_bytes / 2);
    EXPECT_TRUE(VerifyManifest(scratch.File("out")).ok());
    const auto manifest = ReadManifest(scratch.File("out"));
    EXPECT_EQ((*manifest)->source_fingerprint, *(*source)->Fingerprint());
    EXPECT_EQ((*manifest)->pith_version, "0.1.0");
  }
}

TEST(Conversion, DirectoryKeepsItsSideFiles) {
  const ScratchDirectory scratch;
  std::filesystem::create_directory(scratch.File("in"));
  TinyDirectory tiny;
  tiny.config["dtype"] = "float32";
  tiny.tensors.push_back(Bf16Tensor("model.layers.0.self_attn.k_scale", {1}));
  tiny.Write(scratch.File("in"));
  WriteTestFile(scratch.File("in/tokenizer.json"), "{ }");
  WriteTestFile(scratch.File("in/generation_config.json"), "{\"top_k\":  5}");
  const auto source = ArtifactReader::Open(scratch.File("in"));
  ASSERT_TRUE(source.ok()) << source.status();
  const auto report = ConvertToHuggingFace(**source, scratch.File("out"), {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(ReadTestFile(scratch.File("out/tokenizer.json")), "{ }");
  EXPECT_EQ(ReadTestFile(scratch.File("out/generation_config.json")), "{\"top_k\":  5}");
  const auto converted = ArtifactReader::Open(scratch.File("out"));
  ASSERT_TRUE(converted.ok()) << converted.status();
  EXPECT_EQ((*converted)->config()["dtype"], "bfloat16");
  EXPECT_EQ((*converted)->config()["torch_dtype"], "bfloat16");
  EXPECT_THAT((*converted)->PlainTensorNames(), ElementsAre("model.layers.0.self_attn.q_proj.bias"));  // the KV scale is gone
}

TEST(Conversion, QuantizedWeightsBecomeDense) {
  const ScratchDirectory scratch;
  std::filesystem::create_directory(scratch.File("in"));
  TinyDirectory tiny;
  tiny.Quantize();
  tiny.Write(scratch.File("in"));
  const auto source = ArtifactReader::Open(scratch.File("in"));
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_TRUE(ConvertToHuggingFace(**source, scratch.File("out"), {}).ok());
  const auto converted = ArtifactReader::Open(scratch.File("out"));
  ASSERT_TRUE(converted.ok()) << converted.status();
  EXPECT_EQ((*converted)->format(), "huggingface");
  EXPECT_FALSE((*converted)->config().contains("quantization_config"));
  ExpectSameModel(**source, **converted);
}

TEST(Conversion, RefusesWeightsThatAreNoNumbers) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf(""), std::numeric_limits<float>::max()}) {
    const ScratchDirectory scratch;
    TinyGguf tiny;
    std::vector<float> values = TinyValues("x", 96);
    values[77] = bad;
    tiny.data["blk.1.ffn_up.weight"] = {0, RawBytes(values)};
    WriteTestFile(scratch.File("in.gguf"), tiny.Build());
    const auto source = ArtifactReader::Open(scratch.File("in.gguf"));
    const auto report = ConvertToHuggingFace(**source, scratch.File("out"), {});
    EXPECT_EQ(report.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(report.status().message(),
                HasSubstr("model.layers.1.mlp.up_proj.weight[77]: expected a finite number within the range of bf16"));
    EXPECT_THAT(*ListDirectory(scratch.path()), ElementsAre("in.gguf"));
  }
}

TEST(Conversion, StopsWhenAskedAndLeavesNothing) {
  const ScratchDirectory scratch;
  WriteTestFile(scratch.File("in.gguf"), TinyGguf().Build());
  const auto source = ArtifactReader::Open(scratch.File("in.gguf"));
  ConversionOptions options;
  options.progress = [](int64_t done, int64_t) { return done == 3 ? CancelledError("interrupted") : absl::OkStatus(); };
  const auto report = ConvertToHuggingFace(**source, scratch.File("out"), options);
  EXPECT_EQ(report.status().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(*ListDirectory(scratch.path()), ElementsAre("in.gguf"));
  EXPECT_EQ(ToExitCode(ConvertToHuggingFace(**source, scratch.File("in.gguf"), {}).status()), kExitCannotCreate);
}

TEST(Conversion, LargeTensorsAreWrittenInParts) {
  const ScratchDirectory scratch;
  TinyGguf tiny;
  tiny.vocab = 300'000;  // 2.4 M elements: more than two chunks
  tiny.tokenizer = false;
  WriteTestFile(scratch.File("in.gguf"), tiny.Build());
  const auto source = ArtifactReader::Open(scratch.File("in.gguf"));
  ASSERT_TRUE(ConvertToHuggingFace(**source, scratch.File("out"), {.max_shard_bytes = 1'000'000}).ok());
  const auto converted = ArtifactReader::Open(scratch.File("out"));
  ASSERT_TRUE(converted.ok()) << converted.status();
  EXPECT_EQ(WeightValues(**converted, "model.embed_tokens"), TinyValues("token_embd.weight", 300'000 * 8));
  EXPECT_TRUE(FileExists(scratch.File("out/model-00002-of-00002.safetensors")));
}

// A real model, checked by an independent reading of both files: ggml's Python decoder and the safetensors package.
TEST(Conversion, RealModelAgreesWithPython) {
  const std::string model = ModelPath("smollm2-135m-instruct/SmolLM2-135M-Instruct.Q4_1.gguf");
  if (!FileExists(model)) GTEST_SKIP() << "needs " << model << " (scripts/get_models)";
  if (!PythonHas("numpy, safetensors.numpy, gguf")) GTEST_SKIP() << "needs Python with numpy, safetensors and gguf (set PITH_TEST_PYTHON)";
  const ScratchDirectory scratch;
  const auto source = ArtifactReader::Open(model);
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_TRUE(ConvertToHuggingFace(**source, scratch.File("out"), {}).ok());
  const PythonResult result = RunPython(R"(
import sys, json, struct, numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize
f = open(sys.argv[2] + "/model.safetensors", "rb")
n = struct.unpack("<Q", f.read(8))[0]
header = json.loads(f.read(n))
raw = np.memmap(sys.argv[2] + "/model.safetensors", np.uint8, "r", 8 + n)
sub = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
       "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
seen = 0
for t in GGUFReader(sys.argv[1]).tensors:
    seen += 1
    if t.name.startswith("blk.") and t.name.split(".")[1] not in ("0", "17") or t.name == "token_embd.weight": continue  # enough, and quick
    x = dequantize(t.data, t.tensor_type).reshape(tuple(int(d) for d in t.shape[::-1])).astype(np.float32)
    p = t.name.split(".")
    if p[0] == "blk":
        name = f"model.layers.{p[1]}.{sub[p[2]]}.weight"
        if p[2] in ("attn_q", "attn_k"):
            heads = 9 if p[2] == "attn_q" else 3
            x = x.reshape(heads, 32, 2, 576).swapaxes(1, 2).reshape(heads * 64, 576)
    else:
        name = {"output_norm": "model.norm.weight"}[p[0]]
    u = x.view(np.uint32).astype(np.uint64)
    want = ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16)
    h = header[name]
    assert h["dtype"] == "BF16" and h["shape"] == list(x.shape), (name, h)
    b, e = h["data_offsets"]
    assert np.array_equal(raw[b:e].view(np.uint16).reshape(x.shape), want), name
assert seen == len(header) - 1 == 272
)",
                                        absl::StrCat("'", model, "' '", scratch.File("out"), "'"));
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

}  // namespace
}  // namespace pith
