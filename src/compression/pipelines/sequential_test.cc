#include "compression/pipelines/sequential.h"

#include <filesystem>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "artifact/manifest.h"
#include "base/file.h"
#include "base/float_types.h"
#include "base/random.h"
#include "base/test_util.h"
#include "compression/checkpoint.h"
#include "compression/session.h"
#include "compression/test_difference.h"
#include "compression/test_golden_models.h"
#include "model/layerwise_model.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

class InputRecorder : public LayerObserver {
 public:
  void OnLinearInput(absl::string_view, const uint16_t* input, int64_t num_rows, int64_t dim) override {
    for (int64_t i = 0; i < num_rows * dim; ++i) rows.push_back(ToFloat(bfloat16{input[i]}));
  }
  std::vector<float> rows;
};

class SequentialTest : public testing::Test {
 protected:
  SequentialTest() {
    RandomStream random(9);
    for (int i = 0; i < 12; ++i) {
      std::vector<int32_t> tokens(static_cast<size_t>(20 + i));
      for (int32_t& token : tokens) token = static_cast<int32_t>(random.Below(100));
      data_.sequences.push_back(std::move(tokens));
    }
    data_.domain_tokens["test"] = data_.num_tokens();
  }

  Recipe MakeTestRecipe(const std::string& scheme, const std::string& method, const std::string& group_size = "auto") {
    auto recipe = MakeRecipe(scheme, method, group_size, {}, true, 0);
    EXPECT_TRUE(recipe.ok()) << recipe.status();
    return *std::move(recipe);
  }

  absl::StatusOr<CompressionReport> Run(const ArtifactReader& reader, const Recipe& recipe, const std::string& name, int threads = 2,
                                        bool resume = false, int64_t stop_after = -1) {
    ThreadPool pool(threads);
    CompressionOptions options{.pith_version = "test", .calibration = &data_, .resume = resume};
    options.progress = [stop_after](absl::string_view phase, int64_t done, int64_t) {
      return phase == "quantizing" && done == stop_after ? absl::CancelledError("stopped") : absl::OkStatus();
    };
    return Compress(reader, recipe, scratch_.File(name), pool, options);
  }

  // Contents by file name.
  std::map<std::string, std::string> FilesOf(const std::string& name) {
    std::map<std::string, std::string> files;
    const auto names = ListDirectory(scratch_.File(name));
    EXPECT_TRUE(names.ok()) << names.status();
    for (const std::string& file : names.value_or(std::vector<std::string>())) {
      const auto content = ReadFile(JoinPath(scratch_.File(name), file));
      EXPECT_TRUE(content.ok()) << content.status();
      files[file] = content.value_or("");
    }
    return files;
  }

  // What a model makes of the data, layer by layer: the hidden states behind its last layer.
  std::vector<float> HiddenStates(const ArtifactReader& reader, LayerwiseModel& model) {
    std::vector<float> all;
    for (const std::vector<int32_t>& tokens : data_.sequences) {
      std::vector<float> hidden(tokens.size() * static_cast<size_t>(model.config().hidden_size));
      EXPECT_TRUE(model.Embed(tokens, absl::MakeSpan(hidden)).ok());
      for (int64_t i = 0; i < model.config().num_layers; ++i) {
        const auto layer = model.LoadLayer(reader, i);
        EXPECT_TRUE(layer.ok()) << layer.status();
        EXPECT_TRUE(model.RunLayer(*layer, static_cast<int64_t>(tokens.size()), absl::MakeSpan(hidden), nullptr).ok());
      }
      all.insert(all.end(), hidden.begin(), hidden.end());
    }
    return all;
  }
  std::unique_ptr<LayerwiseModel> OpenLayerwise(const ArtifactReader& reader) {
    auto model = LayerwiseModel::Create(reader, {.pool = &model_pool_, .isa = *SelectIsa(), .max_tokens = 1024, .with_head = true});
    EXPECT_TRUE(model.ok()) << model.status();
    return *std::move(model);
  }
  std::vector<float> Logits(const ArtifactReader& reader) {
    const auto model = OpenLayerwise(reader);
    const std::vector<float> hidden = HiddenStates(reader, *model);
    std::vector<float> logits(hidden.size() / static_cast<size_t>(model->config().hidden_size) * 128);
    model->Logits(hidden, absl::MakeSpan(logits));
    return logits;
  }
  // || X (W - found)^T ||^2 over the rows X that reach the head of `artifact`.
  double HeadError(const ArtifactReader& dense, const ArtifactReader& artifact) {
    const auto model = OpenLayerwise(artifact);
    InputRecorder recorder;
    model->ObserveHead(HiddenStates(artifact, *model), recorder);
    const auto weight = dense.ReadWeight("lm_head"), found = artifact.ReadWeight("lm_head");
    EXPECT_TRUE(weight.ok() && found.ok() && found->quantized.has_value());
    const size_t in = 32, out = 128;
    std::vector<float> expected(out * in), row(in);
    EXPECT_TRUE(ConvertToFloat(*weight->dense, absl::MakeSpan(expected)).ok());
    double sum = 0;
    for (size_t o = 0; o < out; ++o) {
      found->quantized->DequantizeRow(static_cast<int64_t>(o), absl::MakeSpan(row));
      for (size_t r = 0; r < recorder.rows.size(); r += in) {
        double difference = 0;
        for (size_t i = 0; i < in; ++i) difference += static_cast<double>(recorder.rows[r + i]) * (expected[o * in + i] - row[i]);
        sum += difference * difference;
      }
    }
    return sum;
  }

  ScratchDirectory scratch_;
  ThreadPool model_pool_{1};
  CalibrationData data_{.files = {"test"}};
};

TEST_F(SequentialTest, EveryMethodAndSchemeGivesAnArtifact) {
  const std::pair<const char*, const char*> kCases[] = {
      {"W4A16", "rtn"},       {"W4A16", "gptq"},        {"W4A16_ASYM", "awq"},        {"W4A16", "awq+gptq"},   {"W4A8", "auto"},
      {"W8A16", "auto"},      {"W8A8", "smoothquant"},  {"W8A8", "smoothquant+gptq"}, {"W8A8_STATIC", "auto"}, {"FP8", "auto"},
      {"FP8_DYNAMIC", "rtn"}, {"LLM_INT8", "llm_int8"}, {"W4A16", "rotation"},        {"W8A8", "rotation"},    {"W4A16", "rotation+gptq"}};
  for (const char* model : {"qwen2_window", "llama_llama3"}) {
    const auto reader = OpenGolden(model);
    for (const auto& [scheme, method] : kCases) {
      const std::string name = absl::StrCat(model, "-", scheme, "-", method);
      const Recipe recipe = MakeTestRecipe(scheme, method);
      const auto report = Run(*reader, recipe, name);
      ASSERT_TRUE(report.ok()) << name << ": " << report.status();
      EXPECT_FALSE(report->blocks.empty());
      for (const BlockReport& block : report->blocks) {
        EXPECT_GT(block.local.relative, 0) << name;
        EXPECT_LT(block.local.relative, 0.5) << name;
        EXPECT_LT(block.accumulated.relative, 0.7) << name;
        EXPECT_GT(block.accumulated.cosine, 0.7) << name;
      }
      const auto artifact = ArtifactReader::Open(scratch_.File(name));
      ASSERT_TRUE(artifact.ok()) << name << ": " << artifact.status();
      const auto weight = (*artifact)->ReadWeight("model.layers.0.mlp.down_proj");
      ASSERT_TRUE(weight.ok()) << weight.status();
      EXPECT_TRUE(weight->quantized.has_value());
      if (recipe.scheme.NeedsCalibration()) {
        EXPECT_GT(weight->input->static_scale, 0) << name;
      }
      EXPECT_TRUE(VerifyManifest(scratch_.File(name)).ok());
      EXPECT_EQ((*ReadManifest(scratch_.File(name)))->calibration_sha256, data_.Hash());
      EXPECT_FALSE(FileExists(Checkpoint::PathOf(scratch_.File(name))));
    }
  }
}

class LlmInt8Test : public SequentialTest {
 protected:
  // With a threshold that the inputs of a tiny model reach.
  Recipe MakeOutlierRecipe() {
    Recipe recipe = MakeTestRecipe("LLM_INT8", "auto");
    recipe.scheme.input_activations->outlier_threshold = 2.5f;
    return recipe;
  }
};

// Columns are those whose input reached the threshold, in bf16, the same for all readers of an input, and listed in the report.
TEST_F(LlmInt8Test, CalibrationFixesTheOutlierColumns) {
  const auto reader = OpenGolden("qwen2_window");
  const auto report = Run(*reader, MakeOutlierRecipe(), "out");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(VerifyManifest(scratch_.File("out")).ok()) << VerifyManifest(scratch_.File("out"));
  const auto artifact = ArtifactReader::Open(scratch_.File("out"));
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  EXPECT_EQ((*artifact)->config()["quantization_config"]["llm_int8_outlier_columns"], "stored");
  EXPECT_EQ((*artifact)->config()["quantization_config"]["llm_int8_threshold"], 2.5);
  std::set<std::vector<int32_t>> distinct;
  int64_t bytes = 0;
  for (const LayerReport& layer : report->layers) {
    const auto weight = (*artifact)->ReadWeight(layer.name);
    ASSERT_TRUE(weight.ok()) << weight.status();
    EXPECT_EQ(weight->input->outlier_columns, layer.outlier_columns);
    distinct.insert(layer.outlier_columns);
    EXPECT_LT(layer.outlier_columns.size(), static_cast<size_t>(layer.in)) << layer.name;
    const auto original = reader->ReadWeight(layer.name);
    std::vector<float> values(static_cast<size_t>(layer.out * layer.in)), row(static_cast<size_t>(layer.in));
    ASSERT_TRUE(ConvertToFloat(*original->dense, absl::MakeSpan(values)).ok());
    for (int64_t o = 0; o < layer.out; ++o) {
      weight->quantized->DequantizeRow(o, absl::MakeSpan(row));
      for (const int32_t column : layer.outlier_columns)
        EXPECT_EQ(row[column], RoundToBfloat16(values[o * layer.in + column])) << layer.name;
    }
    if (absl::string_view(layer.name).find("q_proj") == absl::string_view::npos) continue;
    const std::string v = absl::StrCat(layer.name.substr(0, layer.name.size() - 6), "v_proj");
    EXPECT_EQ((*artifact)->DescribeWeight(v)->quantized->input->outlier_columns, layer.outlier_columns);
  }
  EXPECT_GT(distinct.size(), 1u);  // columns are per input
  for (const TensorInfo& tensor : (*artifact)->Tensors()) bytes += tensor.stored_bytes;
  EXPECT_EQ(bytes, report->output_bytes);
  const auto manifest = ReadManifest(scratch_.File("out"));
  for (const OrderedJson& stored : (*manifest)->data_path) {
    EXPECT_EQ(stored["stored_bits"], (*artifact)->ReadWeight(stored["name"].get<std::string>())->quantized->stored_bits_per_weight);
  }
}

TEST_F(LlmInt8Test, AResumedRunGivesTheSameBytes) {
  const auto reader = OpenGolden("llama_llama3");
  const Recipe recipe = MakeOutlierRecipe();
  ASSERT_TRUE(Run(*reader, recipe, "whole", 1).ok());
  int64_t stops = 0;
  for (int64_t stop = 3;; stop += 7) {
    const auto report = Run(*reader, recipe, "stopped", 2, /*resume=*/true, stop);
    if (report.ok()) break;
    ASSERT_TRUE(absl::IsCancelled(report.status())) << report.status();
    EXPECT_FALSE(FileExists(scratch_.File("stopped")));
    ++stops;
  }
  EXPECT_GT(stops, 1);
  EXPECT_EQ(FilesOf("stopped"), FilesOf("whole"));
  EXPECT_FALSE(FileExists(Checkpoint::PathOf(scratch_.File("stopped"))));
}

// What each method is for: less error than the one it builds on, on the data it was given.
TEST_F(SequentialTest, MethodsLowerTheErrorOfLayers) {
  const auto reader = OpenGolden("llama_llama3");
  std::map<std::string, double> error;
  for (const char* method : {"rtn", "gptq", "awq", "awq+gptq"}) {
    const auto report = Run(*reader, MakeTestRecipe("W4A16", method, "16"), method);
    ASSERT_TRUE(report.ok()) << report.status();
    error[method] = report->blocks.back().accumulated.relative;
  }
  EXPECT_LT(error["gptq"], error["rtn"]);
  EXPECT_LT(error["awq+gptq"], error["rtn"]);
}

TEST_F(SequentialTest, ThreadsDoNotChangeTheBytes) {
  const auto reader = OpenGolden("qwen2_window");
  for (const char* method : {"awq+gptq", "rtn", "rotation+gptq"}) {
    Recipe recipe = MakeTestRecipe("W4A16", method);
    ASSERT_TRUE(QuantizeHead("W4A16", "auto", recipe).ok());
    ASSERT_TRUE(Run(*reader, recipe, absl::StrCat(method, 1), 1).ok());
    ASSERT_TRUE(Run(*reader, recipe, absl::StrCat(method, 3), 3).ok());
    EXPECT_EQ(FilesOf(absl::StrCat(method, 1)), FilesOf(absl::StrCat(method, 3))) << method;
  }
}

// Stopped after any number of modules, again and again, and resumed: the bytes of a run that was left alone.
TEST_F(SequentialTest, AResumedRunGivesTheSameBytes) {
  for (const auto& [model, method] : {std::pair{"llama_llama3", "awq+gptq"}, {"llama_yarn_bias", "rotation+gptq"}}) {
    const auto reader = OpenGolden(model);
    Recipe recipe = MakeTestRecipe("W4A16", method);
    ASSERT_TRUE(QuantizeHead("W4A16", "auto", recipe).ok());
    const std::string whole = absl::StrCat(method, "-whole"), stopped = absl::StrCat(method, "-stopped");
    const auto complete = Run(*reader, recipe, whole);
    ASSERT_TRUE(complete.ok()) << complete.status();
    const std::map<std::string, std::string> expected = FilesOf(whole);
    int64_t stops = 0;
    for (int64_t stop = 1;; stop += 2) {
      const auto report = Run(*reader, recipe, stopped, 2, /*resume=*/true, stop);
      EXPECT_EQ(FileExists(scratch_.File(stopped)), report.ok());
      if (report.ok()) {
        EXPECT_GT(report->resumed_layers, 0);
        break;
      }
      ASSERT_TRUE(absl::IsCancelled(report.status())) << report.status();
      ++stops;
    }
    EXPECT_GT(stops, 3);
    EXPECT_EQ(FilesOf(stopped), expected) << method;
  }
}

// Where only what is outside the layers is left, the head still sees what the layers gave.
TEST_F(SequentialTest, ARunWithAllLayersDoneIsResumedToTheSameBytes) {
  for (const auto& [model, method] : {std::pair{"llama_llama3", "gptq"}, {"llama_yarn_bias", "rotation+gptq"}, {"qwen2_window", "rtn"}}) {
    const auto reader = OpenGolden(model);
    Recipe recipe = MakeTestRecipe("W4A16", method);
    ASSERT_TRUE(QuantizeHead("W4A16", "auto", recipe).ok());
    ASSERT_TRUE(QuantizeEmbeddings("W8A16", "auto", recipe).ok());
    const std::string whole = absl::StrCat(method, "-whole"), stopped = absl::StrCat(method, "-stopped");
    ASSERT_TRUE(Run(*reader, recipe, whole).ok());
    const auto modules = static_cast<int64_t>(PlanCompression(*reader, recipe)->modules.size());
    EXPECT_TRUE(absl::IsCancelled(Run(*reader, recipe, stopped, 2, false, modules - 2).status()));  // the head is done
    const auto report = Run(*reader, recipe, stopped, 1, /*resume=*/true);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->resumed_layers, ParseDecoderConfig(reader->config())->num_layers);
    EXPECT_EQ(FilesOf(stopped), FilesOf(whole)) << method;
  }
}

TEST_F(SequentialTest, OtherDataOrRecipesDoNotResume) {
  const auto reader = OpenGolden("llama_llama3");
  EXPECT_TRUE(absl::IsCancelled(Run(*reader, MakeTestRecipe("W4A16", "gptq"), "out", 2, false, 10).status()));
  EXPECT_THAT(Run(*reader, MakeTestRecipe("W4A16", "gptq"), "out").status().message(), HasSubstr("--resume continues it"));
  EXPECT_THAT(Run(*reader, MakeTestRecipe("W4A16", "awq"), "out", 2, true).status().message(), HasSubstr("recipe.method was \"gptq\""));
  data_.sequences[3][5] ^= 1;
  EXPECT_THAT(Run(*reader, MakeTestRecipe("W4A16", "gptq"), "out", 2, true).status().message(), HasSubstr("recipe.calibration.ids_sha256"));
  data_.sequences[3][5] ^= 1;
  EXPECT_TRUE(Run(*reader, MakeTestRecipe("W4A16", "gptq"), "out", 2, true).ok());

  Recipe rotated = MakeTestRecipe("W4A16", "rotation");
  EXPECT_TRUE(absl::IsCancelled(Run(*reader, rotated, "rotated", 2, false, 10).status()));
  rotated.rotation->heads = false;
  EXPECT_THAT(Run(*reader, rotated, "rotated", 2, true).status().message(), HasSubstr("recipe.rotation.heads"));
}

// Eight bits in a rotated basis are the model that was given, biases and a head that was tied included; with and without data.
TEST_F(SequentialTest, ARotatedModelComputesTheSame) {
  for (const char* model : {"llama_llama3", "llama_yarn_bias", "qwen3", "qwen2_window"}) {
    const auto reader = OpenGolden(model);
    const bool tied = !reader->HasWeight("lm_head");
    const std::vector<float> expected = Logits(*reader);
    const Recipe recipe = MakeTestRecipe("W8A16", "rotation", "channel");
    EXPECT_FALSE(NeedsCalibration(recipe));
    ThreadPool pool(2);
    const auto plan = PlanCompression(*reader, recipe);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->untied_head_bytes, tied ? 128 * 32 * ByteSize(plan->model_dtype) : 0);
    ASSERT_TRUE(Run(*reader, recipe, absl::StrCat(model, "-data")).ok());
    ASSERT_TRUE(Compress(*reader, recipe, scratch_.File(absl::StrCat(model, "-free")), pool, {.pith_version = "test"}).ok());
    for (const char* kind : {"-data", "-free"}) {
      const std::string path = scratch_.File(absl::StrCat(model, kind));
      const auto artifact = ArtifactReader::Open(path);
      ASSERT_TRUE(artifact.ok()) << artifact.status();
      EXPECT_EQ((*artifact)->config()["tie_word_embeddings"], false);
      EXPECT_LT(RelativeDifference(expected, Logits(**artifact)), 0.04) << model << kind;
      const auto norm = (*artifact)->ReadWeight("model.layers.0.input_layernorm");
      ASSERT_TRUE(norm.ok());
      std::vector<float> values(32);
      ASSERT_TRUE(ConvertToFloat(*norm->dense, absl::MakeSpan(values)).ok());
      EXPECT_THAT(values, testing::Each(1.0f));
      int64_t bytes = 0;
      for (const TensorInfo& tensor : (*artifact)->Tensors()) bytes += tensor.stored_bytes;
      EXPECT_EQ(bytes, plan->output_bytes);
      const auto report = ParseJson(*ReadFile(JoinPath(path, "report.json")));
      ASSERT_TRUE(report.ok()) << report.status();
      EXPECT_EQ((*report)["rotation"]["untied_head_bytes"], plan->untied_head_bytes);
      EXPECT_EQ((*report)["input_bytes"], plan->input_bytes);
    }
  }
}

TEST_F(SequentialTest, AModelThatCannotBeRotatedIsRefusedAtOnce) {
  const auto reader = OpenGolden("gemma3");
  const absl::Status refused = PlanCompression(*reader, MakeTestRecipe("W4A16", "rotation")).status();
  EXPECT_TRUE(absl::IsUnimplemented(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("gemma3: rotation: gemma3_text has norms after attention and MLP"));
  EXPECT_TRUE(absl::IsUnimplemented(Run(*reader, MakeTestRecipe("W4A16", "rotation+gptq"), "out").status()));
  EXPECT_TRUE(ListDirectory(scratch_.path())->empty());
}

// The head is coded for what reaches it: on the rows that the artifact's own layers give, its outputs are nearer to the dense head's.
TEST_F(SequentialTest, AQuantizedHeadIsCodedForItsInput) {
  const auto reader = OpenGolden("qwen2_window");
  std::map<std::string, double> error;
  for (const char* method : {"rtn", "gptq"}) {
    Recipe recipe = MakeTestRecipe("W4A16", method);
    ASSERT_TRUE(QuantizeHead("W4A16", "auto", recipe).ok());
    const auto report = Run(*reader, recipe, method);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->layers.back().name, "lm_head");
    EXPECT_EQ(report->layers.back().output_error_vs_rtn > 0, std::string(method) == "gptq");
    const auto artifact = ArtifactReader::Open(scratch_.File(method));
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    error[method] = HeadError(*reader, **artifact);
  }
  EXPECT_LT(error["gptq"], 0.9 * error["rtn"]);
}

// Float codes are rounded to nearest, whatever the method of the layers.
TEST_F(SequentialTest, AHeadMayHaveAnotherKindOfCodes) {
  const auto reader = OpenGolden("qwen2_window");
  Recipe recipe = MakeTestRecipe("W4A16", "gptq");
  ASSERT_TRUE(QuantizeHead("FP8_DYNAMIC", "auto", recipe).ok());
  const auto report = Run(*reader, recipe, "out");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ((*(*ArtifactReader::Open(scratch_.File("out")))->ReadWeight("lm_head")).quantized->type, QuantizationType::kFloat);
}

// A run that will be refused is refused before a weight is looked at, and (CheckRun) before there are calibration data.
TEST_F(SequentialTest, AnUnfinishedRunIsRefusedBeforeTheWork) {
  const auto reader = OpenGolden("llama_llama3");
  const Recipe recipe = MakeTestRecipe("W4A16", "gptq"), other = MakeTestRecipe("W4A16", "awq");
  EXPECT_TRUE(absl::IsCancelled(Run(*reader, recipe, "out", 2, false, 10).status()));
  ThreadPool pool(1);
  CompressionOptions options{.pith_version = "test", .calibration = &data_};
  options.progress = [](absl::string_view phase, int64_t, int64_t) { return absl::InternalError(phase); };
  EXPECT_THAT(Compress(*reader, recipe, scratch_.File("out"), pool, options).status().message(), HasSubstr("--resume continues it"));
  options.resume = true;
  EXPECT_THAT(Compress(*reader, other, scratch_.File("out"), pool, options).status().message(), HasSubstr("recipe.method"));

  const auto plan = PlanCompression(*reader, recipe);
  ASSERT_TRUE(plan.ok());
  const CalibrationOptions& samples = data_.options;
  const auto check = [&](const ArtifactReader& model, const Recipe& asked, const CalibrationOptions& asked_samples, bool resume) {
    OrderedJson known = ToJson(asked);
    known["calibration"] = KnownJson(asked_samples, /*from_files=*/true);
    CompressionOptions known_options{.pith_version = "test", .resume = resume};
    return CheckRun(model, *plan, known, {}, scratch_.File("out"), known_options);
  };
  EXPECT_TRUE(check(*reader, recipe, samples, true).ok()) << check(*reader, recipe, samples, true);
  EXPECT_THAT(check(*reader, recipe, samples, false).message(), HasSubstr("--resume continues it"));
  EXPECT_THAT(check(*reader, other, samples, true).message(), HasSubstr("recipe.method was \"gptq\" and is \"awq\""));
  EXPECT_THAT(check(*reader, recipe, {.sequence_length = 99}, true).message(), HasSubstr("recipe.calibration.sequence_length"));
  EXPECT_THAT(check(*OpenGolden("llama_linear"), recipe, samples, true).message(), HasSubstr("model_fingerprint"));
  OrderedJson sampled = ToJson(recipe);
  sampled["calibration"] = KnownJson(samples, /*from_files=*/false);
  EXPECT_THAT(CheckRun(*reader, *plan, sampled, {}, scratch_.File("out"), {.pith_version = "test", .resume = true}).message(),
              HasSubstr("recipe.calibration"));
}

TEST_F(SequentialTest, TooLittleDiskIsRefusedBeforeTheWork) {
  const auto reader = OpenGolden("llama_llama3");
  const Recipe recipe = MakeTestRecipe("W4A16", "gptq");
  const auto plan = PlanCompression(*reader, recipe);
  ASSERT_TRUE(plan.ok());
  const CalibrationSize huge{.tokens = int64_t{1} << 45};  // petabytes of hidden states
  const absl::Status refused = CheckRun(*reader, *plan, ToJson(recipe), huge, scratch_.File("out"), {});
  EXPECT_TRUE(absl::IsAborted(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("bytes of free disk space (artifact "));
  EXPECT_TRUE(ListDirectory(scratch_.path())->empty());
  EXPECT_EQ(SizeOf(&data_).tokens, data_.num_tokens());
  EXPECT_EQ(SizeOf(nullptr).tokens, 0);
}

TEST_F(SequentialTest, AMethodWithoutItsDataIsRefused) {
  const auto reader = OpenGolden("llama_llama3");
  ThreadPool pool(1);
  const absl::Status refused = Compress(*reader, MakeTestRecipe("W4A16", "gptq"), scratch_.File("out"), pool, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("expected calibration data, found none"));
}

TEST_F(SequentialTest, ATokenThatTheModelDoesNotKnowIsRefused) {
  const auto reader = OpenGolden("llama_llama3");
  data_.sequences[0][0] = 1 << 20;
  EXPECT_TRUE(absl::IsInvalidArgument(Run(*reader, MakeTestRecipe("W4A16", "gptq"), "out").status()));
  EXPECT_TRUE(ListDirectory(scratch_.path())->empty());
}

}  // namespace
}  // namespace pith
