// Through DecoderModel::Load.
#include "model/prepack_binding.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/decoder_model.h"
#include "model/synthetic_artifact.h"
#include "model/test_sequence.h"

namespace pith {
namespace {

using testing::HasSubstr;

Json TinyConfig(const std::string& model_type, bool tied = true) {
  Json config = {{"model_type", model_type},       {"vocab_size", 50},           {"hidden_size", 32},        {"intermediate_size", 64},
                 {"num_hidden_layers", 2},         {"num_attention_heads", 4},   {"num_key_value_heads", 2}, {"head_dim", 16},
                 {"max_position_embeddings", 128}, {"tie_word_embeddings", tied}};
  if (model_type == "gemma3_text") config.update({{"query_pre_attn_scalar", 16}, {"sliding_window", 4}, {"sliding_window_pattern", 2}});
  return config;
}

// As a reader that describes weights without decoding them would: what a quantized embedding is made of.
QuantizedTensor Quantized(int64_t out, int64_t in, bool units) {
  QuantizedTensor q{
      .out = out, .in = in, .bits = 6, .group_size = 16, .format = "Q6_K", .scale_dtype = DType::kF16, .stored_bits_per_weight = 6.5625};
  for (int64_t i = 0; i < out * in; ++i) q.code.push_back(static_cast<uint8_t>(i * 7 % 64));
  for (int64_t i = 0; i < out * in / 16; ++i) q.scale.push_back(static_cast<float>(1 + i % 3) / 64);
  if (units) {
    q.unit_size = 32;
    for (int64_t i = 0; i < out * in / 32; ++i) q.scale_unit.push_back(1.0f / 64);
  }
  return q;
}

class PrepackBinding : public testing::Test {
 protected:
  struct Loaded {
    std::unique_ptr<DecoderModel> model;
    PrepackCacheReport report;
  };
  Loaded Load(SyntheticArtifact& artifact, const std::string& directory, WeightOnlyActivation activation = {}, uint64_t inode = 1,
              Isa isa = DetectIsa(), const std::string& build = "1") {
    artifact.SetWeightFiles({{"model.safetensors", {.inode = inode, .size = 100}}});
    Loaded loaded;
    auto model = DecoderModel::Load(artifact, {.pool = &pool_,
                                               .isa = isa,
                                               .weight_only_activation = activation,
                                               .prepack_cache = {directory, build},
                                               .prepack_report = &loaded.report});
    EXPECT_TRUE(model.ok()) << model.status();
    if (model.ok()) loaded.model = *std::move(model);
    return loaded;
  }
  static std::vector<float> Logits(DecoderModel& model) {
    TestCache cache(model, 8);
    BlockTable table;
    return AppendTokens(model, cache, table, {7, 3, 49, 0, 12, 12, 31, 8, 20});
  }
  static void ExpectSamePath(const TensorDataPath& a, const TensorDataPath& b) {
    const auto fields = [](const TensorDataPath& p) {
      return std::tuple(p.name, p.out, p.in, p.packing, p.scheme, p.stored_bits, p.scale_dtype, p.group_size, p.activation, p.accumulator,
                        p.output, p.kernel, p.isa, p.emulated, p.refused, p.stored_bytes, p.resident_bytes, p.tied_to);
    };
    EXPECT_EQ(fields(a), fields(b)) << a.name;
  }
  // Without a cache, writing one, and from it: the same logits, data path and bytes.
  void ExpectSameModel(SyntheticArtifact& artifact, WeightOnlyActivation activation, const std::string& directory) {
    const Loaded plain = Load(artifact, "", activation), first = Load(artifact, directory, activation),
                 second = Load(artifact, directory, activation);
    EXPECT_TRUE(plain.report.path.empty());
    EXPECT_FALSE(first.report.used);
    EXPECT_EQ(first.report.warning, "");
    EXPECT_EQ(first.report.bytes_written, *FileSize(first.report.path));
    EXPECT_TRUE(second.report.used);
    EXPECT_EQ(second.report.bytes_written, 0u);
    EXPECT_EQ(second.report.warning, "");
    const std::vector<float> expected = Logits(*plain.model);
    for (const Loaded* loaded : {&first, &second}) {
      EXPECT_EQ(Logits(*loaded->model), expected);
      EXPECT_EQ(loaded->model->resident_weight_bytes(), plain.model->resident_weight_bytes());
      EXPECT_EQ(loaded->model->DataPathName(), plain.model->DataPathName());
      ASSERT_EQ(loaded->model->data_path().size(), plain.model->data_path().size());
      for (size_t i = 0; i < plain.model->data_path().size(); ++i) {
        ExpectSamePath(loaded->model->data_path()[i], plain.model->data_path()[i]);
      }
    }
  }

  const ScratchDirectory scratch_;
  ThreadPool pool_{2};
};

TEST_F(PrepackBinding, EveryArchitectureIsTheSameFromTheCache) {
  for (const char* model_type : {"llama", "qwen2", "qwen3", "gemma3_text"}) {
    for (const bool tied : {true, false}) {
      SCOPED_TRACE(absl::StrCat(model_type, tied ? " tied" : ""));
      const auto artifact = SyntheticArtifact::Random(TinyConfig(model_type, tied), 1);
      ExpectSameModel(*artifact, {}, scratch_.File(absl::StrCat(model_type, tied)));
    }
  }
}

TEST_F(PrepackBinding, EverySchemeIsTheSameFromTheCache) {
  const struct {
    int bits;
    int64_t group_size;
    QuantizationType type;
  } kSchemes[] = {{4, 16, QuantizationType::kInt}, {8, 0, QuantizationType::kInt}, {8, 0, QuantizationType::kFloat}};
  for (const auto& scheme : kSchemes) {
    for (const WeightOnlyActivation activation :
         {WeightOnlyActivation(GemmActivation::kInt16), WeightOnlyActivation(GemmActivation::kInt8, 6.0f),
          WeightOnlyActivation(GemmActivation::kBf16)}) {
      const auto artifact = SyntheticArtifact::Random(TinyConfig("qwen2"), 1);
      artifact->QuantizeLayers(scheme.bits, scheme.group_size, scheme.type);
      // Parts of one layer in formats of their own: several matrices.
      artifact->SetQuantized("model.layers.1.self_attn.v_proj", Quantized(32, 32, true));
      ExpectSameModel(*artifact, activation, scratch_.File(absl::StrCat(scheme.bits, static_cast<int>(scheme.type))));
    }
  }
}

TEST_F(PrepackBinding, QuantizedEmbeddingsToo) {
  for (const bool tied : {true, false}) {
    for (const bool units : {true, false}) {
      const auto artifact = SyntheticArtifact::Random(TinyConfig("llama", tied), 1);
      artifact->QuantizeLayers(4, 16);
      artifact->Erase("model.embed_tokens.weight");
      artifact->SetQuantized("model.embed_tokens", Quantized(50, 32, units));
      ExpectSameModel(*artifact, {}, scratch_.File(absl::StrCat("e", tied, units)));
    }
  }
}

TEST_F(PrepackBinding, DeclaredInputsToo) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  artifact->QuantizeLayers(8, 0);
  artifact->SetInput({{.strategy = QuantizationStrategy::kTensor}, 0.25f});
  ExpectSameModel(*artifact, {}, scratch_.File("static"));
}

TEST_F(PrepackBinding, AChangedModelOrBuildTakesThePlaceOfItsFile) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  const auto other = SyntheticArtifact::Random(TinyConfig("llama"), 2);
  const std::string directory = scratch_.File("d");
  const Loaded first = Load(*artifact, directory);
  const Loaded changed = Load(*other, directory, {}, /*inode=*/2);
  EXPECT_FALSE(changed.report.used);
  EXPECT_THAT(changed.report.warning, HasSubstr("ignored: "));
  EXPECT_EQ(changed.report.path, first.report.path);
  EXPECT_GT(changed.report.bytes_written, 0u);
  EXPECT_EQ(Logits(*changed.model), Logits(*Load(*other, "").model));
  EXPECT_TRUE(Load(*other, directory, {}, 2).report.used);
  EXPECT_FALSE(Load(*other, directory, {}, 2, DetectIsa(), "2").report.used);
  EXPECT_EQ(ListDirectory(directory)->size(), 1u);
}

TEST_F(PrepackBinding, ActivationsAndInstructionSetsHaveFilesOfTheirOwn) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  artifact->QuantizeLayers(8, 16);
  const std::string directory = scratch_.File("d");
  for (const bool used : {false, true}) {
    EXPECT_EQ(Load(*artifact, directory).report.used, used);
    EXPECT_EQ(Load(*artifact, directory, GemmActivation::kInt8).report.used, used);
    EXPECT_EQ(Load(*artifact, directory, {GemmActivation::kInt8, 6.0f}).report.used, used);
    EXPECT_EQ(Load(*artifact, directory, {}, 1, Isa::kScalar).report.used, used || DetectIsa() == Isa::kScalar);
  }
}

// What lies under the name of the file is not what it should be: the model loads and computes the same, the file is written anew.
TEST_F(PrepackBinding, ADamagedFileIsReplaced) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("qwen2"), 1);
  artifact->QuantizeLayers(4, 16);
  const std::string directory = scratch_.File("d");
  const std::vector<float> expected = Logits(*Load(*artifact, "").model);
  const std::string path = Load(*artifact, directory).report.path;
  const std::string good = *ReadFile(path);
  std::string flipped = good;
  flipped[good.size() - 100] = static_cast<char>(flipped[good.size() - 100] ^ 64);
  for (const std::string& bad : {flipped, good.substr(0, good.size() / 2), std::string("no safetensors"), std::string()}) {
    ASSERT_TRUE(WriteFileAtomically(path, bad).ok());
    const Loaded loaded = Load(*artifact, directory);
    EXPECT_FALSE(loaded.report.used);
    EXPECT_THAT(loaded.report.warning, HasSubstr("ignored: "));
    EXPECT_EQ(Logits(*loaded.model), expected);
    EXPECT_EQ(*ReadFile(path), good);
    EXPECT_TRUE(Load(*artifact, directory).report.used);
  }
}

// A file with the right key whose description is of another model: nothing of it fits, and nothing of it is believed.
TEST_F(PrepackBinding, ADescriptionThatDoesNotFitIsRefused) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  const auto quantized = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  quantized->QuantizeLayers(4, 16);
  const std::string directory = scratch_.File("d");
  const std::string path = Load(*artifact, directory).report.path;  // the same config and files, so the same key
  const Loaded loaded = Load(*quantized, directory);
  EXPECT_EQ(loaded.report.path, path);
  EXPECT_FALSE(loaded.report.used);
  EXPECT_THAT(loaded.report.warning, HasSubstr("model.layers.0.self_attn.q_proj: expected a matrix prepacked for gemm_int16_w4g_f32"));
  EXPECT_EQ(Logits(*loaded.model), Logits(*Load(*quantized, "").model));
}

TEST_F(PrepackBinding, AModelLoadsWhereNothingCanBeWritten) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  ASSERT_TRUE(WriteFileAtomically(scratch_.File("file"), "x").ok());
  for (const std::string& directory : {scratch_.File("file"), scratch_.File("file/below"), std::string("/proc/self/none")}) {
    const Loaded loaded = Load(*artifact, directory);
    EXPECT_NE(loaded.model, nullptr);
    EXPECT_FALSE(loaded.report.used);
    EXPECT_EQ(loaded.report.bytes_written, 0u);
    EXPECT_THAT(loaded.report.warning, HasSubstr("not written: "));
  }
}

TEST_F(PrepackBinding, WeightsThatComeFromNoFileAreNotKept) {
  const auto artifact = SyntheticArtifact::Random(TinyConfig("llama"), 1);
  PrepackCacheReport report;
  ASSERT_TRUE(DecoderModel::Load(*artifact, {.pool = &pool_, .prepack_cache = {scratch_.path(), "1"}, .prepack_report = &report}).ok());
  EXPECT_EQ(report.path, "");
  EXPECT_TRUE(ListDirectory(scratch_.path())->empty());
}

}  // namespace
}  // namespace pith
