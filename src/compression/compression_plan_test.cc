#include "compression/compression_plan.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_util.h"
#include "compression/session.h"
#include "compression/test_golden_models.h"

namespace pith {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Recipe MakeTestRecipe(const std::string& scheme) {
  auto recipe = MakeRecipe(scheme, "rtn", "auto", {}, /*clip_search=*/true, 0);
  EXPECT_TRUE(recipe.ok()) << recipe.status();
  return *std::move(recipe);
}

// What the artifact says of each module agrees with what was planned, and it can be opened and run again.
void ExpectArtifactAsPlanned(const ArtifactReader& reader, const Recipe& recipe, const std::string& output) {
  const auto plan = PlanCompression(reader, recipe);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ThreadPool pool(1);
  const auto report = Compress(reader, recipe, output, pool, {.pith_version = "test"});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->output_bytes, plan->output_bytes);
  const auto artifact = ArtifactReader::Open(output);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  for (const PlannedModule& module : plan->modules) {
    const auto weight = (*artifact)->ReadWeight(module.name);
    ASSERT_TRUE(weight.ok()) << weight.status();
    ASSERT_EQ(weight->quantized.has_value(), module.quantized) << module.name;
    if (!module.quantized) continue;
    EXPECT_EQ(weight->quantized->bits, module.args().num_bits) << module.name;
    EXPECT_EQ(weight->quantized->format, module.scheme.format) << module.name;
    EXPECT_EQ(weight->quantized->group_size, module.args().columns_per_scale(module.in)) << module.name;
  }
}

// bitsandbytes names what it leaves alone by parts of names, and has one scheme for all the rest.
TEST(CompressionPlanTest, LlmInt8IsInTheWordsOfItsFormat) {
  const auto reader = OpenGolden("llama_llama3");
  Recipe recipe = MakeTestRecipe("LLM_INT8");
  recipe.ignore.push_back("re:.*o_proj");
  auto plan = PlanCompression(*reader, recipe);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(FixOutliers(*plan));
  const auto config = ParseQuantizationConfig(ToJson(plan->config));
  ASSERT_TRUE(config.ok()) << config.status();
  for (const PlannedModule& module : plan->modules) {
    const auto scheme = FindScheme(*config, module.name, module.class_name);
    ASSERT_TRUE(scheme.ok());
    EXPECT_EQ(*scheme != nullptr, module.quantized) << module.name;
    if (!module.quantized) continue;
    EXPECT_EQ((*scheme)->name, "LLM_INT8");
    EXPECT_TRUE((*scheme)->input_activations->fixed_outliers);
    EXPECT_TRUE(module.scheme.input_activations->fixed_outliers);
  }
  const int64_t bytes = plan->output_bytes;
  const std::string module = "model.layers.0.mlp.down_proj";
  AddOutlierTensors({{module + ".outlier_index", DType::kI32, {3}}, {module + ".outlier_weight", DType::kBF16, {64, 3}}}, *plan);
  EXPECT_EQ(plan->output_bytes, bytes + 12 + 2 * 64 * 3);
  EXPECT_EQ(TotalBytes(PlannedTensors(*plan)), plan->output_bytes);
  recipe.strategy = QuantizationStrategy::kGroup;
  recipe.group_size = 16;
  EXPECT_TRUE(absl::IsUnimplemented(PlanCompression(*reader, recipe).status())) << PlanCompression(*reader, recipe).status();
  auto other = PlanCompression(*reader, MakeTestRecipe("W8A8"));
  EXPECT_FALSE(FixOutliers(*other));
}

TEST(CompressionPlanTest, ModulesMayHaveASchemeOfTheirOwn) {
  const auto reader = OpenGolden("llama_llama3");
  Recipe recipe = MakeTestRecipe("W4A16");
  ASSERT_TRUE(AddOverride("--test", "W8A16", "channel", {"re:.*down_proj", "model.layers.1.self_attn.o_proj"}, recipe).ok());
  ASSERT_TRUE(QuantizeEmbeddings("W8A16", "auto", recipe).ok());
  const auto plan = PlanCompression(*reader, recipe);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::map<std::string, int> bits;
  for (const PlannedModule& module : plan->modules) bits[module.name] = module.quantized ? module.args().num_bits : 16;
  EXPECT_EQ(bits["model.layers.0.mlp.down_proj"], 8);
  EXPECT_EQ(bits["model.layers.1.self_attn.o_proj"], 8);
  EXPECT_EQ(bits["model.layers.0.self_attn.o_proj"], 4);
  EXPECT_EQ(bits["model.embed_tokens"], 8);
  EXPECT_EQ(bits["model.norm"], 16);
  EXPECT_EQ(plan->config.groups.size(), 3u);
  ScratchDirectory scratch;
  ExpectArtifactAsPlanned(*reader, recipe, scratch.File("out"));
}

// Two packings in one artifact.
TEST(CompressionPlanTest, FormatsMayDiffer) {
  const auto reader = OpenGolden("qwen2_window");
  Recipe recipe = MakeTestRecipe("W4A16");
  ASSERT_TRUE(AddOverride("--test", "W8A8", "auto", {"re:.*down_proj"}, recipe).ok());
  ScratchDirectory scratch;
  ExpectArtifactAsPlanned(*reader, recipe, scratch.File("out"));
  EXPECT_EQ(PlanCompression(*reader, recipe)->config.format, "mixed-precision");
}

TEST(CompressionPlanTest, AHeadOfItsOwnIsQuantizedWhenAsked) {
  for (const char* model : {"llama_llama3", "qwen2_window", "qwen3"}) {
    const auto reader = OpenGolden(model);
    Recipe recipe = MakeTestRecipe("W4A16");
    ASSERT_TRUE(QuantizeHead("W8A16", "auto", recipe).ok());
    const auto plan = PlanCompression(*reader, recipe);
    if (!reader->HasWeight("lm_head")) {
      EXPECT_THAT(plan.status().message(), HasSubstr("of lm_head: expected a module of the model that is not ignored, found none"))
          << model;
      continue;
    }
    ASSERT_TRUE(plan.ok()) << plan.status();
    ScratchDirectory scratch;
    ExpectArtifactAsPlanned(*reader, recipe, scratch.File("out"));
  }
}

// A tied one is coded by the method for what reaches the head, one that is only looked up is rounded to nearest.
TEST(CompressionPlanTest, AnEmbeddingIsCodedAsAHeadWhereItIsOne) {
  CalibrationData data{.files = {"test"}};
  data.sequences = {{1, 5, 9, 2, 77, 30, 30, 4}, {8, 100, 3, 64, 65, 66, 12, 0}};
  data.domain_tokens["test"] = data.num_tokens();
  for (const auto& [model, tied] : {std::pair{"llama_yarn_bias", true}, {"qwen2_window", false}}) {
    const auto reader = OpenGolden(model);
    auto recipe = MakeRecipe("W4A16", "gptq", "auto", {}, /*clip_search=*/true, 0);
    ASSERT_TRUE(recipe.ok() && QuantizeEmbeddings("W4A16", "auto", *recipe).ok());
    ScratchDirectory scratch;
    ThreadPool pool(1);
    const auto report = Compress(*reader, *recipe, scratch.File("out"), pool, {.pith_version = "test", .calibration = &data});
    ASSERT_TRUE(report.ok()) << report.status();
    for (const LayerReport& layer : report->layers) {
      if (layer.name == "model.embed_tokens") {
        EXPECT_EQ(layer.output_error_vs_rtn > 0, tied) << model;
      }
    }
  }
}

TEST(CompressionPlanTest, RefusesSchemesThatAModuleHasNoUseFor) {
  const auto reader = OpenGolden("llama_llama3");
  Recipe recipe = MakeTestRecipe("W4A16");
  ASSERT_TRUE(QuantizeEmbeddings("W8A8", "auto", recipe).ok());
  EXPECT_THAT(PlanCompression(*reader, recipe).status().message(),
              AllOf(HasSubstr("model.embed_tokens"), HasSubstr("expected a scheme of weights alone, found W8A8")));
  EXPECT_TRUE(absl::IsInvalidArgument(QuantizeEmbeddings("BF16", "auto", recipe)));
  EXPECT_TRUE(absl::IsUnimplemented(QuantizeHead("W3", "auto", recipe)));
  EXPECT_TRUE(absl::IsInvalidArgument(AddOverride("--test", "W4A16", "0", {"Linear"}, recipe)));
}

// A part of a fused matrix cannot have a scheme of its own.
TEST(CompressionPlanTest, RefusesToSplitWhatEnginesFuse) {
  const auto reader = OpenGolden("llama_llama3");
  Recipe recipe = MakeTestRecipe("W4A16");
  ASSERT_TRUE(AddOverride("--test", "W8A16", "auto", {"re:.*v_proj"}, recipe).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(PlanCompression(*reader, recipe).status()));
}

}  // namespace
}  // namespace pith
