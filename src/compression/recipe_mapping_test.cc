#include "compression/recipe_mapping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pith {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::vector<std::string> kModules = {"model.embed_tokens", "model.layers.0.self_attn.q_proj", "model.layers.0.mlp.down_proj",
                                           "model.norm", "lm_head"};

absl::StatusOr<MappedRecipe> Map(const std::string& text, const std::vector<std::string>& modules = kModules) {
  const auto document = ParseRecipeDocument(text);
  EXPECT_TRUE(document.ok()) << document.status() << "\n" << text;
  if (!document.ok()) return document.status();
  return RecipeOf(*document, modules, 7);
}

Recipe RecipeFrom(const std::string& fields) {
  auto mapped = Map("q_stage: {q_modifiers: {QuantizationModifier: {" + fields + "}}}");
  EXPECT_TRUE(mapped.ok()) << mapped.status() << "\n" << fields;
  return mapped.ok() ? mapped->recipe : Recipe();
}

std::string Refused(const std::string& text) {
  const absl::Status status = Map(text).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status << "\n" << text;
  return std::string(status.message());
}

TEST(MethodOfTest, ModifiersTogetherAreAMethod) {
  const auto method = [](const std::string& text) {
    const auto document = ParseRecipeDocument(text);
    EXPECT_TRUE(document.ok()) << document.status();
    return MethodOf(*document);
  };
  EXPECT_EQ(*method("QuantizationModifier: {scheme: W8A8}"), "rtn");
  EXPECT_EQ(*method("GPTQModifier: {scheme: W8A8}"), "gptq");
  EXPECT_EQ(*method("m_modifiers: {QuantizationModifier: {scheme: W8A8}, GPTQModifier: {block_size: 128}}"), "gptq");
  EXPECT_EQ(*method("AWQModifier: {scheme: W4A16}"), "awq");
  EXPECT_EQ(*method("[AWQModifier, QuantizationModifier: {scheme: W4A16}]"), "awq");
  EXPECT_EQ(*method("[AWQModifier, GPTQModifier: {scheme: W4A16}]"), "awq+gptq");
  EXPECT_EQ(*method("[SmoothQuantModifier, QuantizationModifier: {scheme: W8A8}]"), "smoothquant");
  EXPECT_EQ(*method("a_stage: [SmoothQuantModifier]\nb_stage: [GPTQModifier: {scheme: W8A8}]"), "smoothquant+gptq");
  EXPECT_EQ(*method("[SpinQuantModifier, QuantizationModifier: {scheme: W4A16}]"), "rotation");
  EXPECT_EQ(*method("[SpinQuantModifier: {rotations: [R1]}, GPTQModifier: {scheme: W4A16}]"), "rotation+gptq");
  const absl::Status order = method("[GPTQModifier: {scheme: W8A8}, SmoothQuantModifier]").status();
  EXPECT_TRUE(absl::IsUnimplemented(order));
  EXPECT_THAT(order.message(), AllOf(HasSubstr("GPTQModifier + SmoothQuantModifier together in this order are not supported"),
                                     HasSubstr("SmoothQuantModifier + GPTQModifier")));
  EXPECT_EQ(method("SmoothQuantModifier: {}").status().message(),
            "line 1: SmoothQuantModifier: expected a scheme or config_groups in one of the modifiers, found none");
  EXPECT_TRUE(absl::IsUnimplemented(method("[QuantizationModifier: {scheme: W8A8}, GPTQModifier: {scheme: W8A8}]").status()));
}

TEST(RecipeOfTest, PresetsMeanThePublishedGroups) {
  for (const char* scheme : {"W4A16", "w8a16", "W4A16_ASYM", "W4A8"}) {
    const Recipe recipe = RecipeFrom(absl::StrCat("scheme: ", scheme));
    EXPECT_EQ(recipe.strategy, QuantizationStrategy::kGroup) << scheme;
    EXPECT_EQ(recipe.group_size, 128) << scheme;
  }
  for (const char* scheme : {"W8A8", "INT8", "int8"}) {
    const Recipe recipe = RecipeFrom(absl::StrCat("scheme: ", scheme));
    EXPECT_EQ(recipe.scheme.name, "W8A8") << scheme;
    EXPECT_EQ(recipe.strategy, QuantizationStrategy::kChannel) << scheme;
  }
  EXPECT_EQ(RecipeFrom("scheme: {FP8_DYNAMIC: Linear}").strategy, QuantizationStrategy::kChannel);
  EXPECT_EQ(RecipeFrom("scheme: FP8_BLOCK").strategy, QuantizationStrategy::kBlock);
  EXPECT_TRUE(RecipeFrom("scheme: LLM_INT8").scheme.HasOutliers());
  EXPECT_EQ(RecipeFrom("scheme: FP8_BLOCK").seed, 7u);
  EXPECT_EQ(RecipeFrom("scheme: FP8_BLOCK").method, "rtn");
}

TEST(RecipeOfTest, GroupsAreFoundAmongTheSchemes) {
  const auto group = [](const std::string& body) { return RecipeFrom("config_groups: {group_0: {targets: [Linear], " + body + "}}"); };
  Recipe recipe = group("weights: {num_bits: 4, symmetric: false, strategy: group, group_size: 64}");
  EXPECT_EQ(recipe.scheme.name, "W4A16_ASYM");
  EXPECT_EQ(recipe.group_size, 64);
  recipe = group("weights: {num_bits: 8, strategy: channel}, input_activations: {num_bits: 8, strategy: token, dynamic: true}");
  EXPECT_EQ(recipe.scheme.name, "W8A8");
  EXPECT_EQ(recipe.strategy, QuantizationStrategy::kChannel);
  recipe = group("weights: {num_bits: 8, type: float, strategy: tensor}, input_activations: {type: float, strategy: token, dynamic: true}");
  EXPECT_EQ(recipe.scheme.name, "FP8_DYNAMIC");
  EXPECT_EQ(recipe.strategy, QuantizationStrategy::kTensor);
  recipe = group(
      "weights: {type: float, strategy: block, block_structure: [128, 128]}, "
      "input_activations: {type: float, strategy: group, group_size: 128, dynamic: true}");
  EXPECT_EQ(recipe.scheme.name, "FP8_BLOCK");
  EXPECT_EQ(recipe.strategy, QuantizationStrategy::kBlock);
  EXPECT_EQ(group("format: pack-quantized, weights: {num_bits: 8, strategy: channel}").scheme.name, "W8A16");
}

TEST(RecipeOfTest, ObserversOfWeightsChooseTheSearch) {
  EXPECT_EQ(RecipeFrom("scheme: W4A16").clip_search.num_candidates(), ClipSearch().num_candidates());
  EXPECT_EQ(RecipeFrom("scheme: W4A16, weight_observer: minmax").clip_search.num_candidates(), 1);
  EXPECT_EQ(RecipeFrom("scheme: W4A16, observer: {weights: memoryless_minmax}").clip_search.num_candidates(), 1);
  const Recipe searched = RecipeFrom(
      "scheme: {weights: {num_bits: 4, group_size: 32, observer: mse, observer_kwargs: {grid: 50, maxshrink: 0.4, norm: 2.0}}}");
  EXPECT_EQ(searched.clip_search.grid, 50);
  EXPECT_EQ(searched.clip_search.max_shrink, 0.4);
  EXPECT_EQ(searched.clip_search.norm, 2.0);
  EXPECT_EQ(RecipeFrom("scheme: FP8_DYNAMIC, weight_observer: mse").clip_search.num_candidates(), 1);
  EXPECT_THAT(Refused("QuantizationModifier: {scheme: W4A16, weight_observer: imatrix_mse}"), HasSubstr("observer imatrix_mse of weights"));
}

TEST(RecipeOfTest, IgnoreIsWhatTheDocumentSays) {
  EXPECT_THAT(RecipeFrom("scheme: W4A16").ignore, IsEmpty());
  EXPECT_THAT(RecipeFrom("scheme: W4A16, ignore: [lm_head, 're:.*q_proj', 're:.*q_proj']").ignore, ElementsAre("lm_head", "re:.*q_proj"));
  // A model whose head is its embedding.
  const std::vector<std::string> tied(kModules.begin(), kModules.end() - 1);
  const auto mapped = Map("QuantizationModifier:\n  scheme: W4A16\n  ignore: [lm_head, 're:.*vision_tower.*', Linear]\n  end: -1\n", tied);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_THAT(mapped->recipe.ignore, ElementsAre("lm_head", "Linear"));
  EXPECT_THAT(mapped->notes, ElementsAre("line 4: QuantizationModifier.end: has no effect here",
                                         "line 3: QuantizationModifier.ignore: re:.*vision_tower.* matches no module of this model"));
  EXPECT_THAT(Map("QuantizationModifier: {scheme: W4A16}", tied)->recipe.ignore, ElementsAre("lm_head"));
}

TEST(RecipeOfTest, SeveralSchemesAreOverrides) {
  const Recipe recipe = RecipeFrom(
      "config_groups: {a: {targets: ['re:.*down_proj'], weights: {num_bits: 8, strategy: channel}}, b: {targets: [Linear, Embedding], "
      "weights: {num_bits: 4, group_size: 32}}}, ignore: [lm_head]");
  EXPECT_EQ(recipe.scheme.name, "W4A16");
  EXPECT_EQ(recipe.group_size, 32);
  ASSERT_EQ(recipe.overrides.size(), 2);
  EXPECT_THAT(recipe.overrides[0].targets, ElementsAre("Embedding"));
  EXPECT_EQ(recipe.overrides[0].scheme.name, "W4A16");
  EXPECT_EQ(recipe.overrides[0].group_size, 32);
  EXPECT_THAT(recipe.overrides[1].targets, ElementsAre("re:.*down_proj"));
  EXPECT_EQ(recipe.overrides[1].scheme.name, "W8A16");
  EXPECT_EQ(recipe.overrides[1].strategy, QuantizationStrategy::kChannel);
  EXPECT_THAT(recipe.ignore, ElementsAre("lm_head"));

  // No scheme is for Linear: the rest is left alone.
  const Recipe narrow = RecipeFrom("scheme: W8A8, targets: ['re:.*q_proj']");
  EXPECT_EQ(narrow.scheme.name, "W8A8");
  EXPECT_THAT(narrow.overrides, IsEmpty());
  EXPECT_THAT(narrow.ignore, ElementsAre("model.layers.0.mlp.down_proj", "lm_head"));
  const Recipe two = RecipeFrom("scheme: {W4A16: ['re:.*q_proj'], W8A8: ['re:.*down_proj']}, ignore: [lm_head]");
  EXPECT_EQ(two.scheme.name, "W4A16");
  ASSERT_EQ(two.overrides.size(), 1);
  EXPECT_EQ(two.overrides[0].scheme.name, "W8A8");
  EXPECT_THAT(two.ignore, ElementsAre("lm_head"));

  EXPECT_THAT(Refused("QuantizationModifier: {scheme: {W4A16: ['re:.*proj'], W8A8: ['re:.*down_proj']}}"),
              HasSubstr("model.layers.0.mlp.down_proj is a target of several schemes"));
  EXPECT_THAT(Refused("QuantizationModifier: {config_groups: {a: {targets: [Linear], weights: {num_bits: 8, strategy: channel, observer: "
                      "mse}}, b: {targets: ['re:.*q_proj'], weights: {num_bits: 4, group_size: 32, observer: minmax}}}}"),
              HasSubstr("another observer"));
}

TEST(RecipeOfTest, KvCacheSchemesAreTaken) {
  const auto cache = [](const std::string& fields) {
    const Recipe recipe = RecipeFrom("scheme: W4A16, kv_cache_scheme: {num_bits: 8, " + fields + "}");
    return recipe.kv_cache.has_value() ? recipe.kv_cache->name : "none";
  };
  EXPECT_EQ(cache("type: float"), "fp8");
  EXPECT_EQ(cache("type: float, strategy: tensor, dynamic: false, symmetric: true, observer: static_minmax"), "fp8");
  EXPECT_EQ(cache("type: float, strategy: attn_head, dynamic: false, symmetric: true"), "fp8-head");
  EXPECT_EQ(cache("type: int, strategy: token, dynamic: true"), "int8");
  EXPECT_FALSE(RecipeFrom("scheme: W4A16").kv_cache.has_value());
  const auto beside = Map("[QuantizationModifier: {kv_cache_scheme: {num_bits: 8, type: float}}, GPTQModifier: {scheme: W4A16}]");
  ASSERT_TRUE(beside.ok()) << beside.status();
  EXPECT_EQ(beside->recipe.method, "gptq");
  EXPECT_EQ(beside->recipe.kv_cache->name, "fp8");

  // The cache alone.
  const auto alone = Map("QuantizationModifier: {kv_cache_scheme: {num_bits: 8, type: float}, ignore: [lm_head]}");
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->recipe.scheme.name, "BF16");
  EXPECT_EQ(alone->recipe.kv_cache->name, "fp8");
  EXPECT_THAT(alone->notes, ElementsAre("line 1: QuantizationModifier.ignore: has no effect without a scheme"));

  const auto refused = [](const std::string& fields) {
    return Refused("QuantizationModifier: {scheme: W4A16, kv_cache_scheme: {" + fields + "}}");
  };
  EXPECT_THAT(refused("num_bits: 8, type: int"),
              AllOf(StartsWith("line 1: QuantizationModifier.kv_cache_scheme: a KV cache of int8 static per tensor is not supported"),
                    HasSubstr("known are fp8 (fp8 static per tensor), fp8-head")));
  EXPECT_THAT(refused("num_bits: 8, type: float, dynamic: true"), HasSubstr("fp8 dynamic per tensor is not supported"));
  EXPECT_THAT(refused("num_bits: 8, type: float, observer: mse"), HasSubstr("observer mse is not supported, only minmax"));
  EXPECT_THAT(Refused("[QuantizationModifier: {kv_cache_scheme: {num_bits: 8, type: float}}, GPTQModifier: {scheme: W4A16, "
                      "kv_cache_scheme: {num_bits: 8, type: float}}]"),
              HasSubstr("a second KV cache scheme"));
}

TEST(RecipeOfTest, RefusesWhatNoPipelineDoes) {
  EXPECT_THAT(Refused("QuantizationModifier: {scheme: NVFP4}"),
              AllOf(StartsWith("line 1: QuantizationModifier.scheme: scheme \"NVFP4\": not known"), HasSubstr("W4A16")));
  const auto group = [](const std::string& body) {
    return Refused("QuantizationModifier: {config_groups: {g: {targets: [Linear], " + body + "}}}");
  };
  EXPECT_THAT(group("input_activations: {dynamic: true, strategy: token}"), HasSubstr("a group without quantized weights"));
  EXPECT_THAT(group("weights: {num_bits: 3, group_size: 32}"), HasSubstr("no scheme has these 3-bit weights with 16-bit activations"));
  EXPECT_THAT(group("weights: {num_bits: 8, strategy: channel}, input_activations: {symmetric: false, dynamic: true, strategy: token}"),
              AllOf(HasSubstr("g.input_activations"), HasSubstr("asymmetric activations")));
  EXPECT_THAT(group("weights: {num_bits: 4, group_size: 32}, format: marlin-24"), HasSubstr("expected pack-quantized, found marlin-24"));
  EXPECT_THAT(group("weights: {type: float, strategy: block, block_structure: [64, 64]}, input_activations: {type: float, strategy: group, "
                    "group_size: 128, dynamic: true}"),
              HasSubstr("blocks of 64x64"));
  const absl::Status dense = Map("QuantizationModifier: {scheme: BF16}").status();
  EXPECT_TRUE(absl::IsDataLoss(dense)) << dense;
}

// The head is no part of a decoder layer, and only inputs of these are measured.
TEST(RecipeOfTest, StaticActivationsLeaveTheHead) {
  const std::string fp8 = "QuantizationModifier: {scheme: FP8, ignore: ['re:.*q_proj']}";
  EXPECT_THAT(Refused(fp8), HasSubstr("line 1: QuantizationModifier.ignore: expected lm_head in the list"));
  EXPECT_TRUE(Map(fp8, {kModules.begin(), kModules.end() - 1}).ok());
  EXPECT_TRUE(Map("QuantizationModifier: {scheme: FP8, ignore: ['re:lm_.*']}").ok());
  EXPECT_TRUE(Map("GPTQModifier: {scheme: W4A16}").ok());
}

TEST(RecipeOfTest, OptionsOfMethodsAreTaken) {
  const std::vector<std::string> tied(kModules.begin(), kModules.end() - 1);
  const auto recipe = [&](const std::string& text) {
    auto mapped = Map(text, tied);
    EXPECT_TRUE(mapped.ok()) << mapped.status() << "\n" << text;
    return mapped.ok() ? mapped->recipe : Recipe();
  };
  const Recipe gptq = recipe("GPTQModifier: {scheme: W4A16, dampening_frac: 0.1, actorder: null, block_size: 64}");
  EXPECT_EQ(gptq.method, "gptq");
  EXPECT_EQ(gptq.damping, 0.1);
  EXPECT_FALSE(gptq.activation_order);
  const Recipe plain = recipe("GPTQModifier: {scheme: W4A16}");
  EXPECT_EQ(plain.damping, Recipe().damping);
  EXPECT_TRUE(plain.activation_order);
  EXPECT_TRUE(
      recipe("GPTQModifier: {actorder: static, scheme: {weights: {num_bits: 4, group_size: 32, actorder: weight}}}").activation_order);
  const Recipe smooth = recipe("[SmoothQuantModifier: {smoothing_strength: 0.8}, GPTQModifier: {scheme: W8A8}]");
  EXPECT_EQ(smooth.method, "smoothquant+gptq");
  EXPECT_EQ(smooth.smoothing_strength, 0.8);
  EXPECT_EQ(recipe("[SmoothQuantModifier, GPTQModifier: {scheme: W8A8}]").smoothing_strength, std::nullopt);
  EXPECT_EQ(recipe("[AWQModifier: {duo_scaling: true, n_grid: 20, ignore: [lm_head]}, QuantizationModifier: {scheme: W4A16, ignore: "
                   "[lm_head]}]")
                .method,
            "awq");
  const Recipe awq = recipe("[AWQModifier: {duo_scaling: both, n_grid: 10}, QuantizationModifier: {scheme: W4A16}]");
  EXPECT_EQ(awq.duo_scaling, DuoScaling::kBoth);
  EXPECT_EQ(awq.awq_grid, 10);
  EXPECT_EQ(ToJson(awq)["awq"], (OrderedJson{{"grid", 10}, {"duo_scaling", "both"}}));
  const Recipe input_alone = recipe("AWQModifier: {duo_scaling: false, scheme: W4A16}");
  EXPECT_EQ(input_alone.duo_scaling, DuoScaling::kOff);
  EXPECT_EQ(ToJson(input_alone)["awq"], (OrderedJson{{"grid", 20}, {"duo_scaling", false}}));
  EXPECT_EQ(recipe("QuantizationModifier: {scheme: FP8, input_observer: static_minmax}").scheme.name, "FP8");
}

TEST(RecipeOfTest, RotationsAreThoseOfTheDocument) {
  const auto rotation = [](const std::string& fields) {
    const auto mapped = Map("[SpinQuantModifier: {" + fields + "}, QuantizationModifier: {scheme: W8A8, ignore: [lm_head]}]");
    EXPECT_TRUE(mapped.ok()) << mapped.status();
    return mapped.ok() ? mapped->recipe.rotation.value_or(RotationOptions{.residual = false, .heads = false}) : RotationOptions();
  };
  const RotationOptions plain = rotation("");
  EXPECT_TRUE(plain.residual && plain.heads && !plain.random_signs);
  EXPECT_EQ(plain.seed, 7u);
  const RotationOptions one = rotation("rotations: [r1], transform_type: random-hadamard, randomize: false, transform_block_size: null");
  EXPECT_TRUE(one.residual && !one.heads && one.random_signs);
  const RotationOptions two = rotation("rotations: R2, learnable: false");
  EXPECT_TRUE(!two.residual && two.heads);
  EXPECT_EQ(Map("QuantizationModifier: {scheme: W8A8}")->recipe.rotation, std::nullopt);
  const absl::Status outliers = Map("[SpinQuantModifier, QuantizationModifier: {scheme: LLM_INT8, ignore: [lm_head]}]").status();
  EXPECT_TRUE(absl::IsUnimplemented(outliers)) << outliers;
  EXPECT_THAT(outliers.message(), HasSubstr("expected rtn or llm_int8"));
}

// A tied head is a matrix of its own once R1 is in it, and then it is what the document says of lm_head that counts.
TEST(RecipeOfTest, ARotatedHeadIsQuantizedUnlessItIsIgnored) {
  const std::vector<std::string> tied(kModules.begin(), kModules.end() - 1);
  const auto ignore = [&](const std::string& rotations, const std::string& ignored) {
    const std::string quantization = "QuantizationModifier: {scheme: W8A8, ignore: [" + ignored + "]}";
    return Map("[SpinQuantModifier: {rotations: [" + rotations + "]}, " + quantization + "]", tied)->recipe.ignore;
  };
  EXPECT_THAT(ignore("R1, R2", ""), IsEmpty());
  EXPECT_THAT(ignore("R1", "lm_head"), ElementsAre("lm_head"));
  EXPECT_THAT(ignore("R2", ""), ElementsAre("lm_head"));
}

TEST(RecipeOfTest, TheDefaultMappingsAreTaken) {
  const std::string norms =
      "[['re:.*q_proj', 're:.*k_proj', 're:.*v_proj'], 're:.*input_layernorm'], "
      "[['re:.*gate_proj', 're:.*up_proj'], 're:.*post_attention_layernorm']";
  const std::string rest =
      ", {smooth_layer: 're:.*v_proj$', balance_layers: ['re:.*o_proj$']}, "
      "{smooth_layer: 're:.*up_proj$', balance_layers: ['re:.*down_proj$']}";
  const std::vector<std::string> tied(kModules.begin(), kModules.end() - 1);
  const auto smooth = Map("[SmoothQuantModifier: {mappings: [" + norms + "]}, QuantizationModifier: {scheme: W8A8}]", tied);
  ASSERT_TRUE(smooth.ok()) << smooth.status();
  EXPECT_THAT(smooth->notes, ElementsAre("line 1: [0].SmoothQuantModifier.mappings: the inputs of o_proj and down_proj are scaled too"));
  const auto awq = Map("[AWQModifier: {mappings: [" + norms + rest + "]}, QuantizationModifier: {scheme: W4A16}]", tied);
  ASSERT_TRUE(awq.ok()) << awq.status();
  EXPECT_THAT(awq->notes, IsEmpty());
  EXPECT_THAT(Refused("[AWQModifier: {mappings: [" + norms + "]}, QuantizationModifier: {scheme: W4A16}]"), HasSubstr("the default ones"));
}

TEST(RecipeOfTest, RefusesOptionsItCannotCarry) {
  for (const char* text :
       {"[AWQModifier: {mappings: [[['re:.*q_proj'], 're:.*norm']]}, QuantizationModifier: {scheme: W4A16}]",
        "[SmoothQuantModifier: {ignore: [model.norm]}, QuantizationModifier: {scheme: W8A8}]",
        "[AWQModifier: {ignore: [lm_head]}, QuantizationModifier: {scheme: W4A16}]",
        "QuantizationModifier: {scheme: FP8, input_observer: mse}", "[SmoothQuantModifier, QuantizationModifier: {scheme: W4A16}]",
        "GPTQModifier: {scheme: FP8_DYNAMIC}", "[QuantizationModifier: {scheme: W4A16}, GPTQModifier: {targets: ['re:.*q_proj']}]"}) {
    EXPECT_THAT(Refused(text), StartsWith("line 1: ")) << text;
  }
  const absl::Status order =
      Map("GPTQModifier: {actorder: null, scheme: {weights: {num_bits: 4, group_size: 32, actorder: static}}}").status();
  EXPECT_TRUE(absl::IsDataLoss(order)) << order;
  EXPECT_THAT(order.message(), HasSubstr("GPTQModifier.actorder: expected the order of the weights' arguments"));
}

}  // namespace
}  // namespace pith
