#include "compression/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_util.h"
#include "compression/test_golden_models.h"
#include "quantization/quantize_weight.h"

namespace pith {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Recipe MakeTestRecipe(const std::string& scheme, const std::string& group_size, const std::vector<std::string>& ignore = {}) {
  auto recipe = MakeRecipe(scheme, "rtn", group_size, ignore, /*clip_search=*/true, 0);
  EXPECT_TRUE(recipe.ok()) << recipe.status();
  return *std::move(recipe);
}

TEST(RecipeTest, RefusesWhatItCannotMean) {
  EXPECT_TRUE(absl::IsUnimplemented(MakeRecipe("W3A3", "rtn", "auto", {}, true, 0).status()));
  EXPECT_TRUE(absl::IsUnimplemented(MakeRecipe("W4A16", "magic", "auto", {}, true, 0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(MakeRecipe("BF16", "rtn", "auto", {}, true, 0).status()));
  for (const char* size : {"0", "-4", "x", "12x", ""})
    EXPECT_TRUE(absl::IsInvalidArgument(MakeRecipe("W4A16", "rtn", size, {}, true, 0).status())) << size;
  for (const char* pattern : {"re:(", ""})
    EXPECT_TRUE(absl::IsInvalidArgument(MakeRecipe("W4A16", "rtn", "auto", {pattern}, true, 0).status())) << pattern;
  for (const auto& [scheme, method] :
       {std::pair{"FP8_DYNAMIC", "gptq"}, {"FP8", "awq"}, {"W4A16", "smoothquant"}, {"FP8", "smoothquant"}}) {
    const absl::Status status = MakeRecipe(scheme, method, "auto", {}, true, 0).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << scheme << " " << method;
    EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("found ", scheme)));
  }
  for (const auto& [scheme, method] :
       {std::pair{"W4A16", "awq+gptq"}, {"W8A8", "smoothquant+gptq"}, {"W8A16", "gptq"}, {"FP8_DYNAMIC", "rtn"}}) {
    const auto best = MakeRecipe(scheme, "auto", "auto", {}, true, 0);
    ASSERT_TRUE(best.ok()) << best.status();
    EXPECT_EQ(best->method, method) << scheme;
    EXPECT_EQ(NeedsCalibration(*best), best->method != "rtn") << scheme;
  }
  EXPECT_TRUE(NeedsCalibration(MakeTestRecipe("FP8", "auto")));
  EXPECT_EQ(MakeTestRecipe("W4A16", "auto").rotation, std::nullopt);
  const auto rotation = MakeRecipe("FP8_DYNAMIC", "rotation", "auto", {}, true, 11);
  ASSERT_TRUE(rotation.ok()) << rotation.status();
  EXPECT_EQ(rotation->rotation, (RotationOptions{.seed = 11}));
  EXPECT_FALSE(NeedsCalibration(*rotation));
  EXPECT_EQ(MakeTestRecipe("W8A8", "auto").strategy, QuantizationStrategy::kChannel);
  EXPECT_EQ(MakeTestRecipe("FP8_BLOCK", "auto").strategy, QuantizationStrategy::kBlock);
  EXPECT_EQ(MakeTestRecipe("W4A8", "auto").strategy, QuantizationStrategy::kGroup);
  EXPECT_EQ(MakeTestRecipe("FP8_DYNAMIC", "auto").clip_search.num_candidates(), 1);
  const Recipe recipe = MakeTestRecipe("w4a16", "channel", {"re:.*down_proj"});
  EXPECT_EQ(recipe.strategy, QuantizationStrategy::kChannel);
  EXPECT_EQ(recipe.ignore, (std::vector<std::string>{"lm_head", "re:.*down_proj"}));
  EXPECT_EQ(ToJson(recipe)["scheme"], "W4A16");
}

TEST(PlanCompressionTest, QuantizesLinearLayersAndKeepsTheRest) {
  const auto reader = OpenGolden("llama_llama3");
  const auto plan = PlanCompression(*reader, MakeTestRecipe("W4A16", "auto", {"re:.*o_proj"}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const PlannedModule& module : plan->modules) {
    const bool projection = absl::string_view(module.name).find("_proj") != absl::string_view::npos;
    const bool ignored = absl::string_view(module.name).find("o_proj") != absl::string_view::npos;
    EXPECT_EQ(module.quantized, projection && !ignored) << module.name;
  }
  EXPECT_LT(plan->output_bytes, plan->input_bytes);
}

TEST(PlanCompressionTest, RefusesBeforeAnyWork) {
  const auto reader = OpenGolden("llama_llama3");
  EXPECT_THAT(PlanCompression(*reader, MakeTestRecipe("W4A16", "48")).status().message(), HasSubstr("48"));
  EXPECT_THAT(PlanCompression(*reader, MakeTestRecipe("W4A16", "auto", {"Linear"})).status().message(), HasSubstr("found none left"));
  const absl::Status blocks = PlanCompression(*reader, MakeTestRecipe("FP8_BLOCK", "auto")).status();
  EXPECT_TRUE(absl::IsUnimplemented(blocks)) << blocks;
  EXPECT_THAT(blocks.message(), AllOf(HasSubstr("model.layers.0."), HasSubstr("expected rows of whole blocks of 128, found in=")));
  const absl::Status misspelt = PlanCompression(*reader, MakeTestRecipe("W4A16", "auto", {"re:.*o_proj", "re:.*dwn_proj"})).status();
  EXPECT_TRUE(absl::IsInvalidArgument(misspelt)) << misspelt;
  EXPECT_THAT(misspelt.message(), AllOf(HasSubstr("--ignore"), HasSubstr("re:.*dwn_proj")));
}

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

// A setting is named as the user wrote it: as a flag, or as a field of a recipe.
TEST(PlanCompressionTest, SaysWhereASettingCameFrom) {
  const auto reader = OpenGolden("llama_llama3");
  for (const char* pattern : {"re:.*dwn_proj", "Linear", "re:.*v_proj"}) {
    Recipe recipe = MakeTestRecipe("W4A16", "auto", {pattern});
    EXPECT_THAT(MessageOf(PlanCompression(*reader, recipe).status()), StartsWith("--ignore: ")) << pattern;
    recipe.source = "my.yaml";
    EXPECT_THAT(MessageOf(PlanCompression(*reader, recipe).status()), StartsWith("my.yaml: ignore: ")) << pattern;
  }
  Recipe recipe = MakeTestRecipe("W4A16", "auto");
  const OrderedJson before = ToJson(recipe);
  recipe.source = "my.yaml";
  EXPECT_EQ(ToJson(recipe), before);
}

// Serving engines fuse q, k and v, and gate and up: an artifact in which they differ would be refused there.
TEST(PlanCompressionTest, RefusesFusedLayersOfDifferentSchemes) {
  const auto reader = OpenGolden("llama_llama3");
  for (const char* pattern : {"re:.*v_proj", "model.layers.1.self_attn.q_proj", "re:.*up_proj"}) {
    const absl::Status status = PlanCompression(*reader, MakeTestRecipe("W4A16", "auto", {pattern})).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << pattern << ": " << status;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("--ignore: model.layers."), HasSubstr("unquantized"))) << pattern;
  }
  EXPECT_TRUE(PlanCompression(*reader, MakeTestRecipe("W4A16", "auto", {"re:.*self_attn", "re:.*(gate|up)_proj"})).ok());
}

// The artifact read back holds exactly what the quantizer gives for each weight, and the plan's bytes are the file's.
TEST(CompressTest, TheArtifactHoldsWhatTheQuantizerGave) {
  const auto reader = OpenGolden("qwen2_window");
  const std::pair<const char*, const char*> kSchemes[] = {{"W8A16", "16"},       {"W4A16", "16"},     {"W4A16_ASYM", "16"},
                                                          {"W4A8", "16"},        {"W8A8", "auto"},    {"FP8_DYNAMIC", "auto"},
                                                          {"FP8_DYNAMIC", "16"}, {"LLM_INT8", "auto"}};
  for (const auto& [scheme, group_size] : kSchemes) {
    ScratchDirectory scratch;
    ThreadPool pool(2);
    const Recipe recipe = MakeTestRecipe(scheme, group_size);
    const auto plan = PlanCompression(*reader, recipe);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const auto report = Compress(*reader, recipe, scratch.File("out"), pool, {.pith_version = "test"});
    ASSERT_TRUE(report.ok()) << report.status();
    const auto artifact = ArtifactReader::Open(scratch.File("out"));
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    EXPECT_EQ((*artifact)->format(), recipe.scheme.HasOutliers() ? "bitsandbytes" : "compressed-tensors");
    int64_t bytes = 0;
    for (const TensorInfo& tensor : (*artifact)->Tensors()) bytes += tensor.stored_bytes;
    EXPECT_EQ(bytes, plan->output_bytes);
    EXPECT_EQ(bytes, report->output_bytes);
    const auto manifest = ReadManifest(scratch.File("out"));
    ASSERT_TRUE(manifest.ok() && manifest->has_value());
    size_t next_data_path = 0;
    for (const PlannedModule& module : plan->modules) {
      const auto weight = (*artifact)->ReadWeight(module.name);
      ASSERT_TRUE(weight.ok()) << weight.status();
      ASSERT_EQ(weight->quantized.has_value(), module.quantized) << module.name;
      const auto original = reader->ReadWeight(module.name);
      if (!module.quantized) {
        EXPECT_EQ(weight->dense->bytes(), original->dense->bytes()) << module.name;
        continue;
      }
      std::vector<float> values(static_cast<size_t>(module.out * module.in));
      ASSERT_TRUE(ConvertToFloat(*original->dense, absl::MakeSpan(values)).ok());
      const auto expected = QuantizeWeight({values.data(), module.out, module.in}, plan->args, plan->model_dtype, recipe.clip_search, pool);
      ASSERT_TRUE(expected.ok());
      EXPECT_EQ(weight->quantized->type, expected->type) << module.name;
      EXPECT_EQ(weight->input.has_value(), recipe.scheme.input_activations.has_value()) << module.name;
      EXPECT_TRUE(!weight->input.has_value() || weight->input->args == recipe.scheme.input_activations) << module.name;
      EXPECT_EQ(weight->quantized->code, expected->code) << module.name;
      EXPECT_EQ(weight->quantized->scale, expected->scale) << module.name;
      EXPECT_EQ(weight->quantized->zero_point, expected->zero_point) << module.name;
      const OrderedJson& stored = (*manifest)->data_path.at(next_data_path++);
      EXPECT_EQ(stored["name"], module.name);
      EXPECT_EQ(stored["scheme"], scheme);
      EXPECT_EQ(stored["stored_bits"], weight->quantized->stored_bits_per_weight);
      EXPECT_EQ(stored["scale_dtype"], std::string(DTypeName(weight->quantized->scale_dtype)));
      EXPECT_EQ(stored["group_size"], weight->quantized->group_size);
      EXPECT_EQ(stored["packing"], weight->quantized->format);
    }
    EXPECT_EQ((*manifest)->data_path.size(), next_data_path);
    for (const std::string& name : reader->PlainTensorNames()) {
      EXPECT_EQ((*(*artifact)->ReadTensor(name))->dense->bytes(), (*reader->ReadTensor(name))->dense->bytes()) << name;
    }
    EXPECT_TRUE(VerifyManifest(scratch.File("out")).ok());
  }
}

TEST(CompressTest, AProgressErrorEndsTheWorkAndLeavesNothing) {
  const auto reader = OpenGolden("llama_llama3");
  ScratchDirectory scratch;
  ThreadPool pool(1);
  CompressionOptions options;
  options.progress = [](absl::string_view phase, int64_t done, int64_t) {
    return phase == "quantizing" && done == 3 ? absl::CancelledError("interrupted") : absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsCancelled(Compress(*reader, MakeTestRecipe("W4A16", "16"), scratch.File("out"), pool, options).status()));
  EXPECT_TRUE(ListDirectory(scratch.path())->empty());
}

TEST(CompressTest, RefusesASourceThatIsQuantizedAlready) {
  const auto reader = OpenGolden("llama_llama3");
  ScratchDirectory scratch;
  ThreadPool pool(1);
  ASSERT_TRUE(Compress(*reader, MakeTestRecipe("W4A16", "16"), scratch.File("out"), pool, {}).ok());
  const auto artifact = ArtifactReader::Open(scratch.File("out"));
  ASSERT_TRUE(artifact.ok());
  EXPECT_TRUE(absl::IsUnimplemented(PlanCompression(**artifact, MakeTestRecipe("W4A16", "16")).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(Compress(*reader, MakeTestRecipe("W4A16", "16"), scratch.File("out"), pool, {}).status()));
}

}  // namespace
}  // namespace pith
