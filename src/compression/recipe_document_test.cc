#include "compression/recipe_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "artifact/test_files.h"
#include "base/test_util.h"

namespace pith {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

RecipeDocument Parse(absl::string_view text) {
  auto document = ParseRecipeDocument(text);
  EXPECT_TRUE(document.ok()) << document.status() << "\n" << text;
  return document.ok() ? *std::move(document) : RecipeDocument();
}

// The fields of one modifier.
ModifierEntry ParseEntry(const std::string& modifier, const std::string& fields) {
  const RecipeDocument document = Parse("m_stage: {m_modifiers: {" + modifier + ": {" + fields + "}}}");
  return document.modifiers.empty() ? ModifierEntry() : document.modifiers[0];
}

std::string BadFile(const std::string& text) {
  const absl::Status status = ParseRecipeDocument(text).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status << "\n" << text;
  return std::string(status.message());
}

std::string NotSupported(const std::string& text) {
  const absl::Status status = ParseRecipeDocument(text).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status << "\n" << text;
  return std::string(status.message());
}

TEST(RecipeDocumentTest, EveryNestingIsRead) {
  for (const char* text :
       {"quant_stage:\n  quant_modifiers:\n    GPTQModifier: {scheme: W4A16}\n    AWQModifier:\n",
        "default_stage_0: {a_modifiers: {GPTQModifier: {scheme: W4A16}}}\ndefault_stage_1: {a_modifiers: {AWQModifier: {}}}\n",
        "args: {}\na_stage: {run_type: oneshot, modifiers: [GPTQModifier: {scheme: W4A16}, AWQModifier]}\n",
        "a_stage: [GPTQModifier: {scheme: W4A16}, AWQModifier: ]\n", "quant_modifiers: {GPTQModifier: {scheme: W4A16}, AWQModifier: }\n",
        "GPTQModifier: {scheme: W4A16}\nAWQModifier: {}\n", "- GPTQModifier:\n    scheme: W4A16\n- AWQModifier\n",
        R"({"m_modifiers": {"GPTQModifier": {"scheme": "W4A16"}, "AWQModifier": {}}})"}) {
    const RecipeDocument document = Parse(text);
    ASSERT_EQ(document.modifiers.size(), 2) << text;
    EXPECT_EQ(document.modifiers[0].kind, ModifierKind::kGptq) << text;
    EXPECT_TRUE(document.modifiers[0].has_scheme()) << text;
    EXPECT_EQ(document.modifiers[1].kind, ModifierKind::kAwq) << text;
    EXPECT_THAT(document.without_effect, IsEmpty()) << text;
  }
  EXPECT_EQ(Parse("q_stage:\n  q_modifiers:\n    GPTQModifier: {}").modifiers[0].Where(), "line 3: q_stage.q_modifiers.GPTQModifier");
}

TEST(RecipeDocumentTest, RefusesWhatIsNoRecipe) {
  EXPECT_EQ(BadFile(""), "line 1: expected stages or modifiers, found null");
  EXPECT_EQ(BadFile("text"), "line 1: expected stages or modifiers, found \"text\"");
  EXPECT_EQ(BadFile("{}"), "line 1: expected at least one modifier, found none");
  EXPECT_EQ(BadFile("a_stage: {a_modifiers: {}}"), "line 1: expected at least one modifier, found none");
  EXPECT_EQ(BadFile("a_stage: 3"), "line 1: a_stage: expected groups of modifiers, found 3");
  EXPECT_EQ(BadFile("a_stage: {a_modifiers: 3}"), "line 1: a_stage.a_modifiers: expected modifiers, found 3");
  EXPECT_EQ(BadFile("\nGPTQModifier: 3"), "line 2: GPTQModifier: expected a mapping of fields, found 3");
  EXPECT_EQ(BadFile("- [GPTQModifier]"), "line 1: [0]: expected modifiers, found a list");
  EXPECT_EQ(BadFile("quant_stag: {}"), "line 1: quant_stag: unknown key, nearest is \"quant_stage\"");
  EXPECT_EQ(BadFile("a_stage:\n  runtype: x"), "line 2: a_stage.runtype: unknown key, nearest is \"run_type\"");
  EXPECT_EQ(BadFile("a_stage: {\na_modifiers: {\nGPTQModifer: {}}}"),
            "line 3: a_stage.a_modifiers.GPTQModifer: unknown key, nearest is \"GPTQModifier\"");
  EXPECT_THAT(NotSupported("a_stage: {run_type: train, modifiers: []}"), HasSubstr("expected \"oneshot\", found \"train\""));
  EXPECT_THAT(NotSupported("args: {bits: 4}\nGPTQModifier: {}"), HasSubstr("line 1: args: variables"));
  EXPECT_THAT(BadFile("GPTQModifier: {}\nGPTQModifier: {}"), HasSubstr("line 2: expected every key once"));
  EXPECT_THAT(NotSupported("QuIPModifier: {}"), HasSubstr("QuIPModifier is not supported (it rotates activations when the model runs); "));
  for (const char* name : {"QuIPModifier", "AutoRoundModifier", "SparseGPTModifier", "WandaPruningModifier"}) {
    EXPECT_THAT(NotSupported(absl::StrCat("a_stage:\n  a_modifiers:\n    ", name, ": {rotations: [v]}")),
                AllOf(StartsWith(absl::StrCat("line 3: a_stage.a_modifiers.", name, ": ", name, " is not supported")),
                      HasSubstr("QuantizationModifier, GPTQModifier, AWQModifier, SmoothQuantModifier, SpinQuantModifier")));
  }
}

TEST(RecipeDocumentTest, FieldsOfQuantization) {
  const ModifierEntry plain = ParseEntry("QuantizationModifier", "targets: Linear, ignore: [lm_head, 're:.*o_proj'], scheme: W4A16");
  EXPECT_THAT(*plain.targets, ElementsAre("Linear"));
  EXPECT_THAT(*plain.ignore, ElementsAre("lm_head", "re:.*o_proj"));
  ASSERT_EQ(plain.schemes.size(), 1);
  EXPECT_EQ(plain.schemes[0].scheme, "W4A16");
  EXPECT_THAT(plain.schemes[0].targets, IsEmpty());

  const ModifierEntry several = ParseEntry("QuantizationModifier", "scheme: {W8A8: [Linear], FP8: ['re:.*down_proj']}");
  ASSERT_EQ(several.schemes.size(), 2);
  EXPECT_THAT(several.schemes[1].targets, ElementsAre("re:.*down_proj"));

  const ModifierEntry groups = ParseEntry(
      "QuantizationModifier",
      "observer: {weights: MSE, input: minmax}, config_groups: {g: {targets: [Linear], output_activations: null, format: int-quantized, "
      "weights: {num_bits: 8, type: int, strategy: channel, observer: mse, observer_kwargs: {grid: 64.0, maxshrink: 0.5, norm: 2}}, "
      "input_activations: {num_bits: 8, strategy: token, dynamic: true}}}, kv_cache_scheme: {num_bits: 8, type: float}");
  ASSERT_EQ(groups.config_groups.size(), 1);
  const ConfigGroup& group = groups.config_groups[0];
  EXPECT_EQ(group.weights->args.strategy, QuantizationStrategy::kChannel);
  EXPECT_EQ(group.weights->observer.name, "mse");
  EXPECT_EQ(group.weights->observer.search.grid, 64);
  EXPECT_EQ(group.weights->observer.search.max_shrink, 0.5);
  EXPECT_EQ(group.weights->observer.search.norm, 2);
  EXPECT_TRUE(group.input_activations->args.dynamic);
  EXPECT_EQ(group.format, "int-quantized");
  EXPECT_EQ(groups.weight_observer, "mse");
  EXPECT_EQ(groups.input_observer, "minmax");
  EXPECT_EQ(groups.kv_cache_scheme->args.type, QuantizationType::kFloat);
  const ModifierEntry heads = ParseEntry("QuantizationModifier", "kv_cache_scheme: {num_bits: 8, type: float, strategy: attn_head}");
  EXPECT_EQ(heads.kv_cache_scheme->args.strategy, QuantizationStrategy::kAttnHead);

  const ModifierEntry inline_scheme = ParseEntry("GPTQModifier", "scheme: {weights: {num_bits: 4, group_size: 32, actorder: weight}}");
  ASSERT_EQ(inline_scheme.config_groups.size(), 1);
  EXPECT_EQ(inline_scheme.config_groups[0].weights->args.group_size, 32);
  EXPECT_EQ(inline_scheme.config_groups[0].weights->actorder, ActivationOrder::kStatic);
}

TEST(RecipeDocumentTest, FieldsOfSpinQuant) {
  const ModifierEntry plain = ParseEntry("SpinQuantModifier", "precision: torch.float64, mappings: null");
  EXPECT_TRUE(plain.rotate_residual && plain.rotate_heads && !plain.random_signs);
  const ModifierEntry one = ParseEntry("SpinQuantModifier", "rotations: [r2], transform_type: random-hadamard, learnable: false");
  EXPECT_TRUE(!one.rotate_residual && one.rotate_heads && one.random_signs);
  EXPECT_EQ(BadFile("SpinQuantModifier: {rotations: [R1, R5]}"),
            "line 1: SpinQuantModifier.rotations: expected R1, R2, R3 or R4, found a list");
  EXPECT_THAT(BadFile("SpinQuantModifier: {transform_type: fourier}"), HasSubstr("expected \"hadamard\""));
  EXPECT_THAT(BadFile("SpinQuantModifier: {rotation: [R1]}"), HasSubstr("nearest is \"rotations\""));
  EXPECT_EQ(NotSupported("SpinQuantModifier: {rotations: [R1, R4]}"),
            "line 1: SpinQuantModifier.rotations: R4 is not supported: it rotates activations when the model runs");
  for (const char* fields : {"rotations: [R3]", "transform_type: random-matrix", "randomize: true", "learnable: true",
                             "transform_block_size: 64", "mappings: {embedding: x}", "norm_mappings: []", "transform_config: {}"}) {
    EXPECT_THAT(NotSupported(absl::StrCat("SpinQuantModifier: {", fields, "}")), HasSubstr("not supported")) << fields;
  }
}

TEST(RecipeDocumentTest, FieldsOfTheOtherModifiers) {
  const ModifierEntry gptq = ParseEntry("GPTQModifier", "block_size: 64, dampening_frac: 1e-3, actorder: null, targets: [Linear]");
  EXPECT_EQ(gptq.block_size, 64);
  EXPECT_EQ(gptq.dampening_frac, 1e-3);
  EXPECT_EQ(gptq.actorder, ActivationOrder::kNone);
  EXPECT_EQ(ParseEntry("GPTQModifier", "actorder: Static").actorder, ActivationOrder::kStatic);
  EXPECT_EQ(ParseEntry("GPTQModifier", "").actorder, std::nullopt);
  EXPECT_EQ(ParseEntry("GPTQModifier", "dampening_frac: null").dampening_frac, std::nullopt);

  const ModifierEntry awq = ParseEntry(
      "AWQModifier",
      "n_grid: 10, duo_scaling: both, scheme: W4A16_ASYM, mappings: [{smooth_layer: 're:.*up_proj', balance_layers: "
      "['re:.*down_proj']}]");
  EXPECT_EQ(awq.n_grid, 10);
  EXPECT_EQ(awq.duo_scaling, DuoScaling::kBoth);
  ASSERT_EQ(awq.mappings->size(), 1);
  EXPECT_EQ((*awq.mappings)[0].smooth_layer, "re:.*up_proj");
  EXPECT_EQ(ParseEntry("AWQModifier", "duo_scaling: false").duo_scaling, DuoScaling::kOff);

  const ModifierEntry smooth = ParseEntry(
      "SmoothQuantModifier", "smoothing_strength: 0.8, algorithm: smoothquant, mappings: [[['re:.*q_proj', 're:.*k_proj'], 're:.*norm']]");
  EXPECT_EQ(smooth.smoothing_strength, 0.8);
  EXPECT_THAT((*smooth.mappings)[0].balance_layers, ElementsAre("re:.*q_proj", "re:.*k_proj"));
  EXPECT_FALSE(smooth.has_scheme());
}

TEST(RecipeDocumentTest, KeysThatChangeNothingAreListed) {
  const RecipeDocument document = Parse(
      "q_stage:\n  q_modifiers:\n    GPTQModifier:\n      offload_hessians: true\n      sequential_targets: [LlamaDecoderLayer]\n"
      "      sequential_update: null\n      group: q\n");
  EXPECT_THAT(document.without_effect, ElementsAre("line 4: q_stage.q_modifiers.GPTQModifier.offload_hessians",
                                                   "line 5: q_stage.q_modifiers.GPTQModifier.sequential_targets"));
}

TEST(RecipeDocumentTest, WrongFieldsNameLinePathAndNearest) {
  const auto bad = [](const std::string& modifier, const std::string& fields) {
    return BadFile(modifier + ":\n  index: 0\n  " + fields + "\n");
  };
  const std::string gptq = "GPTQModifier";
  EXPECT_EQ(bad(gptq, "dampening_fraction: 1"), "line 3: GPTQModifier.dampening_fraction: unknown key, nearest is \"dampening_frac\"");
  EXPECT_EQ(bad(gptq, "smoothing_strength: 1").substr(0, 48), "line 3: GPTQModifier.smoothing_strength: unknown");
  EXPECT_EQ(bad(gptq, "dampening_frac: high"), "line 3: GPTQModifier.dampening_frac: expected a number from 0 to 1, found \"high\"");
  EXPECT_EQ(bad(gptq, "block_size: 0"), "line 3: GPTQModifier.block_size: expected an integer from 1 to 1048576, found 0");
  EXPECT_THAT(bad(gptq, "actorder: sideways"), HasSubstr("expected null, \"static\", \"weight\", \"group\" or \"dynamic\", found"));
  EXPECT_EQ(bad(gptq, "targets: []"), "line 3: GPTQModifier.targets: expected at least one name, found a list");
  EXPECT_EQ(bad(gptq, "scheme: 4"), "line 3: GPTQModifier.scheme: expected a name, found 4");
  EXPECT_EQ(bad(gptq, "scheme: {}"), "line 3: GPTQModifier.scheme: expected the name of a scheme, found a mapping");
  EXPECT_EQ(bad(gptq, "config_groups: []"), "line 3: GPTQModifier.config_groups: expected a mapping of groups, found a list");
  EXPECT_EQ(bad(gptq, "config_groups: {g: {weights: {}}}"), "line 3: GPTQModifier.config_groups.g: expected targets, found none");
  EXPECT_EQ(bad(gptq, "config_groups: {g: {target: [Linear]}}"),
            "line 3: GPTQModifier.config_groups.g.target: unknown key, nearest is \"targets\"");
  EXPECT_EQ(bad(gptq, "scheme: W4A16\n  config_groups: {g: {targets: [Linear], weights: {}}}"),
            "line 3: GPTQModifier.scheme: expected either scheme or config_groups, found both");
  EXPECT_EQ(bad("AWQModifier", "duo_scaling: 2"), "line 3: AWQModifier.duo_scaling: expected true, false or \"both\", found 2");
  EXPECT_EQ(bad("AWQModifier", "mappings: [[a]]"),
            "line 3: AWQModifier.mappings[0]: expected [[balance layers], smooth layer], found a list");
  EXPECT_THAT(bad("AWQModifier", "mappings: [{smooth_layer: a}]"), HasSubstr("expected smooth_layer and balance_layers"));
  EXPECT_THAT(bad("SmoothQuantModifier", "smoothing_strength: 1.5"), HasSubstr("a number from 0 to 1, found 1.5"));
  EXPECT_THAT(bad("SmoothQuantModifier", "scheme: W8A8"), HasSubstr("unknown key"));
  EXPECT_THAT(bad(gptq, "observer: {weight: mse}"), HasSubstr("observer.weight: unknown key, nearest is \"weights\""));
}

TEST(RecipeDocumentTest, WrongArgumentsNameTheKeyThatIsWrong) {
  const auto text = [](const std::string& weights) {
    return "QuantizationModifier:\n  config_groups:\n    g:\n      targets: [Linear]\n      weights:\n        strategy: group\n"
           "        group_size: 32\n        " +
           weights + "\n";
  };
  const std::string where = "line 8: QuantizationModifier.config_groups.g.weights.";
  EXPECT_THAT(BadFile(text("num_bit: 4")), where + "num_bit: unknown key, nearest is \"num_bits\"");
  EXPECT_THAT(BadFile(text("num_bits: four")), StartsWith(where + "num_bits: expected"));
  EXPECT_THAT(BadFile(text("type: integer")), StartsWith(where + "type: expected"));
  EXPECT_THAT(BadFile(text("observer_kwargs: {gird: 3}")), where + "observer_kwargs.gird: unknown key, nearest is \"grid\"");
  EXPECT_THAT(BadFile(text("observer_kwargs: {grid: 2.5}")), where + "observer_kwargs.grid: expected a whole number, found 2.5");
  EXPECT_THAT(BadFile(text("dynamic: maybe")), StartsWith(where + "dynamic: expected true, false"));
  EXPECT_THAT(BadFile(text("symmetric: false\n        type: float\n        num_bits: 8")),
              StartsWith("line 5: QuantizationModifier.config_groups.g.weights: symmetric: expected true for float codes"));
}

TEST(RecipeDocumentTest, RefusesValuesThatExistElsewhere) {
  const auto refused = [](const std::string& fields) { return NotSupported("GPTQModifier: {" + fields + "}"); };
  EXPECT_THAT(refused("actorder: group"), StartsWith("line 1: GPTQModifier.actorder: \"group\" (groups permuted"));
  EXPECT_THAT(refused("actorder: true"), HasSubstr("GPTQModifier.actorder"));
  EXPECT_THAT(refused("bypass_divisibility_checks: true"), HasSubstr("a group size must divide every row"));
  EXPECT_THAT(refused("output_observer: minmax"), HasSubstr("output_observer: quantized outputs"));
  EXPECT_THAT(refused("config_groups: {g: {targets: [Linear], output_activations: {num_bits: 8}}}"), HasSubstr("output_activations"));
  EXPECT_THAT(refused("scheme: {weights: {num_bits: 4, type: float, strategy: tensor_group, group_size: 16}}"),
              HasSubstr("line 1: GPTQModifier.scheme.weights"));
  EXPECT_THAT(NotSupported("SmoothQuantModifier: {algorithm: log_equalization}"), HasSubstr("log_equalization"));
  EXPECT_THAT(NotSupported("SmoothQuantModifier: {calibration_function: f}"), HasSubstr("Python function"));
  EXPECT_THAT(NotSupported("AWQModifier: {mappings: [{smooth_layer: a, balance_layers: b, activation_hook_target: c}]}"),
              HasSubstr("mappings[0].activation_hook_target"));
  EXPECT_TRUE(ParseRecipeDocument("GPTQModifier: {bypass_divisibility_checks: false}").ok());
}

TEST(RecipeDocumentTest, FilesAreNamedInMessages) {
  ScratchDirectory scratch;
  const std::string path = scratch.File("recipe.yaml");
  WriteTestFile(path, "GPTQModifier: {scheme: W4A16}\n");
  EXPECT_TRUE(ReadRecipeDocument(path).ok());
  WriteTestFile(path, "GPTQModifier: {schema: W4A16}\n");
  EXPECT_EQ(ReadRecipeDocument(path).status().message(), path + ": line 1: GPTQModifier.schema: unknown key, nearest is \"scheme\"");
  WriteTestFile(path, std::string(300 << 10, '#'));
  EXPECT_THAT(ReadRecipeDocument(path).status().message(), HasSubstr("expected at most 262144 bytes"));
  EXPECT_TRUE(absl::IsNotFound(ReadRecipeDocument(scratch.File("none.yaml")).status()));
}

}  // namespace
}  // namespace pith
