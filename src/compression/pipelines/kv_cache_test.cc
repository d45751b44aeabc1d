// Artifacts that declare a quantized KV cache, from a recipe to a model that runs with it.
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/random.h"
#include "base/test_util.h"
#include "compression/kv_cache_scales.h"
#include "compression/session.h"
#include "compression/test_golden_models.h"
#include "model/declared_kv_cache.h"
#include "model/decoder_model.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

class KvCachePipelineTest : public testing::Test {
 protected:
  KvCachePipelineTest() {
    RandomStream random(9);
    for (int i = 0; i < 6; ++i) {
      std::vector<int32_t> tokens(static_cast<size_t>(20 + i));
      for (int32_t& token : tokens) token = static_cast<int32_t>(random.Below(100));
      data_.sequences.push_back(std::move(tokens));
    }
    data_.domain_tokens["test"] = data_.num_tokens();
  }

  static Recipe MakeTestRecipe(const std::string& scheme, const std::string& method, const std::string& kv_cache) {
    Recipe recipe = MakeDenseRecipe(0);
    if (scheme != "BF16") recipe = *MakeRecipe(scheme, method, "auto", {}, true, 0);
    if (!kv_cache.empty()) {
      EXPECT_TRUE(SetKvCache(kv_cache, recipe).ok());
    }
    return recipe;
  }

  absl::StatusOr<CompressionReport> Run(const ArtifactReader& reader, const Recipe& recipe, const std::string& name, int threads = 2,
                                        bool resume = false, int64_t stop_after = -1) {
    ThreadPool pool(threads);
    CompressionOptions options{.pith_version = "test", .resume = resume};
    if (NeedsCalibration(recipe)) options.calibration = &data_;
    options.progress = [stop_after](absl::string_view phase, int64_t done, int64_t) {
      return phase == "quantizing" && done == stop_after ? absl::CancelledError("stopped") : absl::OkStatus();
    };
    return Compress(reader, recipe, scratch_.File(name), pool, options);
  }

  std::unique_ptr<ArtifactReader> Open(const std::string& name) {
    auto artifact = ArtifactReader::Open(scratch_.File(name));
    EXPECT_TRUE(artifact.ok()) << artifact.status();
    return artifact.ok() ? *std::move(artifact) : nullptr;
  }

  static DeclaredKvCache Declared(const ArtifactReader& artifact) {
    const auto declared = ReadDeclaredKvCache(artifact, *ParseDecoderConfig(artifact.config()));
    EXPECT_TRUE(declared.ok()) << declared.status();
    return declared.value_or(DeclaredKvCache());
  }

  std::string SchemeOf(const std::string& name) { return DumpJson(Open(name)->config()["quantization_config"]["kv_cache_scheme"]); }

  // Contents by file name.
  std::map<std::string, std::string> FilesOf(const std::string& name) {
    std::map<std::string, std::string> files;
    const std::vector<std::string> names = *ListDirectory(scratch_.File(name));
    for (const std::string& file : names) files[file] = *ReadFile(JoinPath(scratch_.File(name), file));
    return files;
  }

  ScratchDirectory scratch_;
  CalibrationData data_{.files = {"test"}};
};

// Runs the artifact over the calibration data and keeps the largest magnitudes of all layers.
class WholeRange : public LayerObserver {
 public:
  explicit WholeRange(const DecoderConfig& config) : layers(static_cast<size_t>(config.num_layers), KvRange(config)) {}
  void OnLinearInput(absl::string_view, const uint16_t*, int64_t, int64_t) override {}
  void OnKeysValues(const float* keys, const float* values, int64_t stride, int64_t num_rows) override {
    layers[next++ % layers.size()].OnKeysValues(keys, values, stride, num_rows);
  }
  std::vector<KvRange> layers;
  size_t next = 0;
};

// The scales are those of the quantized model as it is loaded, run on the same data: keys after RoPE, values after folded scales or
// rotations.
TEST_F(KvCachePipelineTest, ScalesAreThoseOfTheQuantizedModel) {
  for (const char* golden : {"qwen2_window", "llama_llama3"}) {
    const auto reader = OpenGolden(golden);
    for (const auto& [scheme, method] :
         {std::pair{"W4A16", "awq+gptq"}, {"BF16", "rtn"}, {"W8A8", "smoothquant"}, {"W8A8", "rotation"}, {"W4A16", "rotation+gptq"}}) {
      const std::string name = absl::StrCat(golden, scheme, method);
      const auto report = Run(*reader, MakeTestRecipe(scheme, method, "fp8-head"), name);
      ASSERT_TRUE(report.ok()) << name << ": " << report.status();
      const auto artifact = Open(name);
      const DeclaredKvCache declared = Declared(*artifact);
      EXPECT_EQ(declared.dtype, KvDtype::kFp8);
      ThreadPool pool(2);
      const auto model = DecoderModel::Load(*artifact, {.pool = &pool, .isa = *SelectIsa()});
      ASSERT_TRUE(model.ok()) << model.status();
      const DecoderConfig& config = (*model)->config();
      ASSERT_EQ(declared.scales.size(), static_cast<size_t>(config.num_layers));
      ASSERT_EQ(report->kv_scales.size(), declared.scales.size());
      WholeRange range(config);
      (*model)->SetObserver(&range);
      BlockPool blocks(2);
      BlockTable table;
      ASSERT_TRUE(blocks.Grow(table, 64).ok());
      auto storage = KvStorage::Create((*model)->KvSpecAs(KvDtype::kBf16, 2));
      for (const std::vector<int32_t>& tokens : data_.sequences) {
        const auto rows = static_cast<int64_t>(tokens.size());
        const ForwardBatch batch{.token_ids = tokens, .sequences = {{.num_rows = rows, .blocks = &table}}};
        ASSERT_TRUE((*model)->Forward(batch, *storage, {}).ok());
      }
      for (size_t i = 0; i < declared.scales.size(); ++i) {
        const auto expected = MakeKvScales("", FindKvCacheScheme("fp8-head")->args, range.layers[i], DType::kBF16);
        EXPECT_EQ(declared.scales[i].key, expected->key_scales) << name << " layer " << i;
        EXPECT_EQ(declared.scales[i].value, expected->value_scales) << name << " layer " << i;
        EXPECT_EQ(report->kv_scales[i].key_max_abs, expected->key_max_abs) << name << " layer " << i;
        EXPECT_EQ(report->kv_scales[i].value_scales, expected->value_scales) << name << " layer " << i;
      }
    }
  }
}

// What else is in the artifact does not change.
TEST_F(KvCachePipelineTest, WeightsAreThoseWithoutACache) {
  const auto reader = OpenGolden("llama_llama3");
  for (const char* kv_cache : {"", "fp8", "fp8-head", "int8"}) {
    Recipe recipe = MakeTestRecipe("W4A16", "awq+gptq", kv_cache);
    const auto plan = PlanCompression(*reader, recipe);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const auto report = Run(*reader, recipe, absl::StrCat("w", kv_cache));
    ASSERT_TRUE(report.ok()) << report.status();
    const auto artifact = Open(absl::StrCat("w", kv_cache));
    int64_t bytes = 0;
    for (const TensorInfo& tensor : artifact->Tensors()) bytes += tensor.stored_bytes;
    EXPECT_EQ(bytes, plan->output_bytes);
    const auto plain = Open("w");
    for (const std::string& name : plain->WeightNames()) {
      const Weight a = *plain->ReadWeight(name), b = *artifact->ReadWeight(name);
      if (a.quantized.has_value()) {
        EXPECT_EQ(a.quantized->code, b.quantized->code) << name;
        EXPECT_EQ(a.quantized->scale, b.quantized->scale) << name;
      } else {
        EXPECT_EQ(a.dense->bytes(), b.dense->bytes()) << name;
      }
    }
    const DeclaredKvCache declared = Declared(*artifact);
    EXPECT_EQ(declared.scheme.has_value(), recipe.kv_cache.has_value());
    EXPECT_EQ(declared.scales.empty(), !recipe.kv_cache.has_value() || !recipe.kv_cache->NeedsCalibration()) << kv_cache;
  }
  EXPECT_EQ(SchemeOf("wint8"), R"({"dynamic":true,"num_bits":8,"strategy":"token","symmetric":true,"type":"int"})");
  EXPECT_EQ(SchemeOf("wfp8"), R"({"num_bits":8,"strategy":"tensor","symmetric":true,"type":"float"})");
  EXPECT_EQ(SchemeOf("wfp8-head"), R"({"num_bits":8,"strategy":"attn_head","symmetric":true,"type":"float"})");
}

// A cache and nothing else: every tensor as it was, and a config without groups.
TEST_F(KvCachePipelineTest, WeightsMayStayAsTheyAre) {
  const auto reader = OpenGolden("qwen2_window");
  for (const char* kv_cache : {"fp8", "int8"}) {
    const auto report = Run(*reader, MakeTestRecipe("BF16", "rtn", kv_cache), kv_cache);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->quantized_weights, 0);
    const auto artifact = Open(kv_cache);
    EXPECT_EQ(artifact->config()["quantization_config"]["config_groups"], Json::object());
    EXPECT_EQ(artifact->config()["quantization_config"]["format"], "dense");
    ASSERT_EQ(artifact->WeightNames(), reader->WeightNames());
    for (const std::string& name : reader->WeightNames()) {
      EXPECT_EQ(artifact->ReadWeight(name)->dense->bytes(), reader->ReadWeight(name)->dense->bytes()) << name;
    }
  }
  // Without weights to quantize there is nothing to override, and without data there are no scales.
  Recipe recipe = MakeTestRecipe("BF16", "rtn", "fp8");
  EXPECT_THAT(QuantizeEmbeddings("W8A16", "auto", recipe).message(), HasSubstr("expected a recipe that quantizes weights"));
  ThreadPool pool(1);
  EXPECT_THAT(Compress(*reader, recipe, scratch_.File("none"), pool, {}).status().message(),
              HasSubstr("KV cache fp8: expected calibration data, found none"));
}

TEST_F(KvCachePipelineTest, ThreadsAndStopsDoNotChangeTheBytes) {
  const auto reader = OpenGolden("llama_llama3");
  const Recipe recipe = MakeTestRecipe("W4A16", "gptq", "fp8-head");
  ASSERT_TRUE(Run(*reader, recipe, "one", 1).ok());
  ASSERT_TRUE(Run(*reader, recipe, "three", 3).ok());
  EXPECT_EQ(FilesOf("one"), FilesOf("three"));
  EXPECT_TRUE(absl::IsCancelled(Run(*reader, recipe, "stopped", 2, true, 10).status()));
  EXPECT_THAT(Run(*reader, MakeTestRecipe("W4A16", "gptq", "fp8"), "stopped", 2, true).status().message(),
              HasSubstr("recipe.kv_cache was \"fp8-head\" and is \"fp8\""));
  const auto resumed = Run(*reader, recipe, "stopped", 2, true);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_GT(resumed->resumed_layers, 0);
  EXPECT_EQ(FilesOf("stopped"), FilesOf("one"));
}

}  // namespace
}  // namespace pith
