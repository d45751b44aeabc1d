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
#include "compression/test_golden_models.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

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

  ScratchDirectory scratch_;
  CalibrationData data_{.files = {"test"}};
};

TEST_F(SequentialTest, EveryMethodAndSchemeGivesAnArtifact) {
  const std::pair<const char*, const char*> kCases[] = {
      {"W4A16", "rtn"},        {"W4A16", "gptq"}, {"W4A16_ASYM", "awq"},   {"W4A16", "awq+gptq"},
      {"W4A8", "auto"},        {"W8A16", "auto"}, {"W8A8", "smoothquant"}, {"W8A8", "smoothquant+gptq"},
      {"W8A8_STATIC", "auto"}, {"FP8", "auto"},   {"FP8_DYNAMIC", "rtn"},  {"LLM_INT8", "llm_int8"}};
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
  for (const char* method : {"awq+gptq", "rtn"}) {
    ASSERT_TRUE(Run(*reader, MakeTestRecipe("W4A16", method), absl::StrCat(method, 1), 1).ok());
    ASSERT_TRUE(Run(*reader, MakeTestRecipe("W4A16", method), absl::StrCat(method, 3), 3).ok());
    EXPECT_EQ(FilesOf(absl::StrCat(method, 1)), FilesOf(absl::StrCat(method, 3))) << method;
  }
}

// Stopped after any number of modules, again and again, and resumed: the bytes of a run that was left alone.
TEST_F(SequentialTest, AResumedRunGivesTheSameBytes) {
  const auto reader = OpenGolden("llama_llama3");
  const Recipe recipe = MakeTestRecipe("W4A16", "awq+gptq");
  ASSERT_TRUE(Run(*reader, recipe, "whole").ok());
  const std::map<std::string, std::string> expected = FilesOf("whole");
  int64_t stops = 0;
  for (int64_t stop = 1;; stop += 2) {
    const auto report = Run(*reader, recipe, "stopped", 2, /*resume=*/true, stop);
    EXPECT_EQ(FileExists(scratch_.File("stopped")), report.ok());
    if (report.ok()) {
      EXPECT_GT(report->resumed_layers, 0);
      break;
    }
    ASSERT_TRUE(absl::IsCancelled(report.status())) << report.status();
    ++stops;
  }
  EXPECT_GT(stops, 3);
  EXPECT_EQ(FilesOf("stopped"), expected);
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
