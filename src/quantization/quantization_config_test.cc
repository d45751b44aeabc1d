#include "quantization/quantization_config.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

constexpr absl::string_view kPublished = R"({
  "config_groups": {"group_0": {"input_activations": null, "output_activations": null, "targets": ["Linear"],
      "weights": {"actorder": null, "block_structure": null, "dynamic": false, "group_size": 128, "num_bits": 4, "observer": "minmax",
                  "observer_kwargs": {}, "strategy": "group", "symmetric": true, "type": "int"}}},
  "format": "pack-quantized", "global_compression_ratio": null, "ignore": ["lm_head"], "kv_cache_scheme": null,
  "quant_method": "compressed-tensors", "quantization_status": "compressed", "sparsity_config": {}, "transform_config": {},
  "version": "0.12.2"})";

Json Published() { return *ParseJson(kPublished); }

QuantizationConfig Config(const Json& json) {
  absl::StatusOr<QuantizationConfig> config = ParseQuantizationConfig(json);
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

absl::Status ParseError(const Json& json) { return ParseQuantizationConfig(json).status(); }

// Two groups with different bits; everything else of class Linear is left to the first.
QuantizationConfig TwoGroups(const Json& second_targets) {
  Json json = Published();
  json["format"] = "mixed-precision";
  Json& groups = json["config_groups"];
  groups["group_0"]["format"] = "pack-quantized";
  groups["group_1"] = groups["group_0"];
  groups["group_1"]["targets"] = second_targets;
  groups["group_1"]["format"] = "int-quantized";
  groups["group_1"]["weights"]["num_bits"] = 8;
  return Config(json);
}

int BitsOf(const QuantizationConfig& config, absl::string_view module, absl::string_view class_name = "Linear") {
  const absl::StatusOr<const QuantizationScheme*> scheme = FindScheme(config, module, class_name);
  EXPECT_TRUE(scheme.ok()) << scheme.status();
  return *scheme == nullptr ? 0 : (*scheme)->weights->num_bits;
}

TEST(QuantizationConfig, ReadsAPublishedConfig) {
  const QuantizationConfig config = Config(Published());
  EXPECT_EQ(config.format, "pack-quantized");
  ASSERT_EQ(config.groups.size(), 1);
  EXPECT_EQ(config.groups[0].name, "group_0");
  EXPECT_EQ(config.groups[0].scheme.name, "W4A16");
  EXPECT_EQ(config.groups[0].scheme.format, "pack-quantized");
  EXPECT_EQ(*config.groups[0].scheme.weights,
            (QuantizationArgs{.num_bits = 4, .strategy = QuantizationStrategy::kGroup, .group_size = 128}));
  EXPECT_FALSE(config.kv_cache_scheme.has_value());
  EXPECT_EQ(BitsOf(config, "model.layers.0.mlp.up_proj"), 4);
  EXPECT_EQ(BitsOf(config, "lm_head"), 0);
  EXPECT_EQ(BitsOf(config, "model.embed_tokens", "Embedding"), 0);
}

TEST(QuantizationConfig, ReadsTheShortPresetForm) {
  Json json = Published();
  json["config_groups"] = {{"W4A16_ASYM", {"Linear"}}};
  const QuantizationConfig config = Config(json);
  EXPECT_EQ(config.groups[0].scheme.weights->group_size, 128);
  EXPECT_FALSE(config.groups[0].scheme.weights->symmetric);
  EXPECT_EQ(config.groups[0].scheme.format, "pack-quantized");
}

TEST(QuantizationConfig, ShortPresetsHaveTheirOwnGrouping) {
  Json json = Published();
  json["config_groups"] = {{"W8A8", {"Linear"}}};
  EXPECT_EQ(Config(json).groups[0].scheme.weights->strategy, QuantizationStrategy::kChannel);
  json["config_groups"] = {{"FP8_BLOCK", {"Linear"}}};
  EXPECT_EQ(Config(json).groups[0].scheme.weights->block_rows, 128);
  EXPECT_EQ(Config(json).groups[0].scheme.format, "float-quantized");
}

TEST(QuantizationConfig, ReadsActivations) {
  Json json = Published();
  json["format"] = "int-quantized";
  Json& group = json["config_groups"]["group_0"];
  group["weights"] = {{"num_bits", 8}, {"strategy", "channel"}};
  group["input_activations"] = {{"num_bits", 8}, {"type", "int"}, {"symmetric", true}, {"strategy", "token"}, {"dynamic", true}};
  const QuantizationConfig config = Config(json);
  EXPECT_EQ(config.groups[0].scheme.name, "W8A8");
  EXPECT_EQ(ToJson(config)["config_groups"]["group_0"]["input_activations"]["dynamic"], true);
  group["input_activations"] = {{"num_bits", 8}};
  EXPECT_EQ(Config(json).groups[0].scheme.name, "W8A8_STATIC");
}

TEST(QuantizationConfig, ReadsKvCacheScheme) {
  Json json = Published();
  json["kv_cache_scheme"] = {{"num_bits", 8}, {"type", "float"}, {"strategy", "tensor"}, {"dynamic", false}, {"symmetric", true}};
  EXPECT_EQ(Config(json).kv_cache_scheme->type, QuantizationType::kFloat);
  json["kv_cache_scheme"]["bits"] = 8;
  EXPECT_THAT(ParseError(json).message(), HasSubstr("\"kv_cache_scheme\": \"bits\": unknown key"));
}

TEST(QuantizationConfig, NamesTheKeyOfABadValue) {
  Json json = Published();
  json["config_groups"]["group_0"]["weights"]["num_bit"] = 4;
  EXPECT_EQ(ParseError(json).message(),
            "config_groups.group_0: \"weights\": \"num_bit\": unknown key of quantization arguments, nearest is \"num_bits\"");
  json = Published();
  json["config_groups"]["group_0"]["target"] = "x";
  EXPECT_EQ(ParseError(json).message(), "config_groups.group_0: \"target\": unknown key of a group, nearest is \"targets\"");
  json = Published();
  json["config_groups"]["group_0"]["targets"] = Json::array();
  EXPECT_THAT(ParseError(json).message(), HasSubstr("\"targets\": expected at least one name, found none"));
  json = Published();
  json["config_groups"]["group_0"]["targets"] = {"re:("};
  EXPECT_THAT(ParseError(json).message(), HasSubstr("\"targets\": module pattern \"re:(\": expected a regular expression"));
  json = Published();
  json["ignore"] = {"lm_head", 3};
  EXPECT_EQ(ParseError(json).message(), "\"ignore\": expected a list of names, found 3 in it");
  json = Published();
  json["ignore"] = "lm_head";
  EXPECT_FALSE(ParseQuantizationConfig(json).ok());
  json = Published();
  json["quantization_status"] = "melted";
  EXPECT_EQ(ParseError(json).code(), absl::StatusCode::kDataLoss);
  json = Published();
  json.erase("config_groups");
  EXPECT_THAT(ParseError(json).message(), HasSubstr("\"config_groups\": expected an object, found nothing"));
  json = Published();
  json["config_groups"]["group_0"] = 3;
  EXPECT_THAT(ParseError(json).message(), HasSubstr("config_groups.group_0: expected an object, found 3"));
  EXPECT_EQ(ParseError(Json(3)).message(), "expected an object, found 3");
}

TEST(QuantizationConfig, NamesWhatIsNotSupported) {
  const auto expect_unsupported = [](const Json& json, absl::string_view message) {
    EXPECT_EQ(ParseError(json).code(), absl::StatusCode::kUnimplemented) << ParseError(json);
    EXPECT_THAT(ParseError(json).message(), HasSubstr(message));
  };
  Json json = Published();
  json["quant_method"] = "aqlm";
  expect_unsupported(json, "\"quant_method\": expected one of compressed-tensors gptq awq bitsandbytes fp8, found \"aqlm\"");
  json = Published();
  json["config_groups"]["group_0"]["format"] = "awq";
  expect_unsupported(json, "found \"awq\", which is that of quant_method \"awq\"");
  json = Published();
  json["format"] = "nvfp4-pack-quantized";
  expect_unsupported(json, "weight format \"nvfp4-pack-quantized\": not supported");
  json = Published();
  json["config_groups"]["group_0"]["input_activations"] = {{"num_bits", 8}, {"dynamic", true}, {"symmetric", false}, {"strategy", "token"}};
  expect_unsupported(json, "config_groups.group_0: \"input_activations\": asymmetric activations");
  json["config_groups"]["group_0"]["input_activations"] = {{"num_bits", 8}, {"group_size", 128}};
  expect_unsupported(json, "static activations per group are not supported");
  json = Published();
  json["sparsity_config"] = {{"format", "sparse-24-bitmask"}};
  expect_unsupported(json, "\"sparsity_config\"");
  json = Published();
  json["transform_config"] = {{"config_groups", {{"R1", 1}}}};
  expect_unsupported(json, "\"transform_config\"");
  json = Published();
  json["config_groups"]["group_0"]["output_activations"] = {{"num_bits", 8}};
  expect_unsupported(json, "\"output_activations\"");
  json = Published();
  json["config_groups"]["group_0"].erase("weights");
  expect_unsupported(json, "\"weights\"");
}

TEST(QuantizationConfig, AcceptsEmptyPartsThatChangeNothing) {
  Json json = Published();
  json["transform_config"] = {{"config_groups", Json::object()}};
  json["sparsity_config"] = {{"format", "dense"}};
  json["something_new"] = 7;
  json["ignore"] = nullptr;
  EXPECT_TRUE(ParseQuantizationConfig(json).ok()) << ParseError(json);
}

TEST(QuantizationConfig, MixedPrecisionNeedsAFormatPerGroup) {
  Json json = Published();
  json["format"] = "mixed-precision";
  EXPECT_THAT(ParseError(json).message(), HasSubstr("\"format\": expected one in every group of a mixed-precision config, found none"));
  json["config_groups"]["group_0"]["format"] = "int-quantized";
  EXPECT_EQ(Config(json).groups[0].scheme.format, "int-quantized");
  EXPECT_EQ(Config(json).format, "int-quantized");  // what is the same in all groups
  json["format"] = "pack-quantized";                // a group's own format beats the config's
  EXPECT_EQ(Config(json).groups[0].scheme.format, "int-quantized");
  EXPECT_EQ(Config(json).format, "int-quantized");
  json["config_groups"]["group_1"] = json["config_groups"]["group_0"];
  json["config_groups"]["group_1"]["format"] = "pack-quantized";
  EXPECT_EQ(Config(json).format, "mixed-precision");
  json["format"] = "mixed-pre#ision";
  EXPECT_EQ(ParseError(json).code(), absl::StatusCode::kUnimplemented);
}

TEST(FindScheme, NameBeatsExpressionBeatsClass) {
  EXPECT_EQ(BitsOf(TwoGroups({"re:.*down_proj"}), "model.layers.0.mlp.down_proj"), 8);
  EXPECT_EQ(BitsOf(TwoGroups({"re:.*down_proj"}), "model.layers.0.mlp.up_proj"), 4);
  const QuantizationConfig config = [] {
    Json json = ToJson(TwoGroups({"model.layers.0.mlp.down_proj"}));
    json["config_groups"]["group_0"]["targets"] = {"re:.*"};
    return Config(json);
  }();
  EXPECT_EQ(BitsOf(config, "model.layers.0.mlp.down_proj"), 8);
  EXPECT_EQ(BitsOf(config, "model.layers.1.mlp.down_proj"), 4);
}

TEST(FindScheme, IgnoreBeatsEveryTarget) {
  Json json = ToJson(TwoGroups({"re:.*down_proj"}));
  json["ignore"] = {"re:.*layers\\.0\\."};
  EXPECT_EQ(BitsOf(Config(json), "model.layers.0.mlp.down_proj"), 0);
  EXPECT_EQ(BitsOf(Config(json), "model.layers.1.mlp.down_proj"), 8);
}

TEST(FindScheme, RefusesTwoEquallyGoodGroups) {
  const absl::Status status = FindScheme(TwoGroups({"Linear"}), "a.b", "Linear").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "module a.b: expected one group, found it in \"group_0\" and \"group_1\" with different schemes");
}

TEST(QuantizationConfig, WritesTheSmallestKeySet) {
  QuantizationScheme scheme = *WithStrategy(*FindScheme("W4A16"), QuantizationStrategy::kGroup, 64);
  const absl::StatusOr<QuantizationConfig> config = MakeQuantizationConfig(scheme, {"lm_head", "re:.*gate$"});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(DumpJson(ToJson(*config), 2), R"({
  "config_groups": {
    "group_0": {
      "targets": [
        "Linear"
      ],
      "weights": {
        "group_size": 64,
        "num_bits": 4,
        "strategy": "group",
        "symmetric": true,
        "type": "int"
      }
    }
  },
  "format": "pack-quantized",
  "ignore": [
    "lm_head",
    "re:.*gate$"
  ],
  "quant_method": "compressed-tensors",
  "quantization_status": "compressed"
})");
  EXPECT_EQ(BitsOf(*config, "x.gate"), 0);
  EXPECT_FALSE(MakeQuantizationConfig(scheme, {"re:("}).ok());
}

TEST(QuantizationConfig, WhatIsWrittenIsReadBack) {
  QuantizationConfig config = TwoGroups({"re:.*down_proj"});
  config.kv_cache_scheme = QuantizationArgs{.type = QuantizationType::kFloat};
  config.groups[1].scheme.input_activations = QuantizationArgs{.strategy = QuantizationStrategy::kToken, .dynamic = true};
  const QuantizationConfig read = Config(ToJson(config));
  EXPECT_EQ(DumpJson(ToJson(read)), DumpJson(ToJson(config)));
  EXPECT_EQ(read.groups[1].scheme.weights, config.groups[1].scheme.weights);
  EXPECT_EQ(read.groups[1].scheme.input_activations, config.groups[1].scheme.input_activations);
  EXPECT_EQ(read.format, "mixed-precision");
  EXPECT_EQ(read.groups[0].scheme.format, "pack-quantized");
  EXPECT_EQ(read.groups[1].scheme.format, "int-quantized");
  EXPECT_EQ(read.kv_cache_scheme, config.kv_cache_scheme);
}

TEST(CheckModules, EveryModuleMustBeExplained) {
  const QuantizationConfig config = Config(Published());
  EXPECT_TRUE(CheckModules(config, {{"a.up_proj", "Linear", true}, {"lm_head", "Linear", false}, {"embed", "Embedding", false}}).ok());
  const absl::Status unquantized = CheckModules(config, {{"a.up_proj", "Linear", false}, {"a.down_proj", "Linear", false}});
  EXPECT_EQ(unquantized.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(unquantized.message(),
            "quantization_config: a.up_proj (Linear): stored unquantized, but a target matches it and \"ignore\" does not (and 1 more such "
            "modules)");
  EXPECT_EQ(CheckModules(config, {{"lm_head", "Linear", true}}).message(),
            "quantization_config: lm_head (Linear): stored quantized, but \"ignore\" matches it");
  EXPECT_EQ(CheckModules(config, {{"embed", "Embedding", true}}).message(),
            "quantization_config: embed (Embedding): stored quantized, but no target matches it");
}

TEST(CheckModules, RefusesAModuleNamedTwice) {
  Json json = Published();
  json["config_groups"]["group_0"]["targets"] = {"lm_head"};
  EXPECT_EQ(CheckModules(Config(json), {{"lm_head", "Linear", false}}).message(),
            "quantization_config: lm_head (Linear): named both in \"ignore\" and in the targets of \"group_0\"");
}

TEST(CheckFusedModules, PartsNeedOneScheme) {
  const std::vector<ModuleInfo> modules = {{"l.0.self_attn.q_proj", "Linear"},
                                           {"l.0.self_attn.k_proj", "Linear"},
                                           {"l.0.self_attn.v_proj", "Linear"},
                                           {"l.0.mlp.gate_proj", "Linear"},
                                           {"l.0.mlp.up_proj", "Linear"},
                                           {"l.0.mlp.down_proj", "Linear"},
                                           {"q_proj", "Linear"}};
  EXPECT_TRUE(CheckFusedModules(TwoGroups({"re:.*down_proj"}), modules).ok());
  EXPECT_TRUE(CheckFusedModules(TwoGroups({"re:.*self_attn"}), modules).ok());
  const absl::Status status = CheckFusedModules(TwoGroups({"re:.*v_proj"}), modules);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "l.0.self_attn.q_proj: expected the scheme of l.0.self_attn.v_proj (serving engines fuse q_proj, k_proj, v_proj), found W4A16 "
            "and W8A16");
  Json json = Published();
  json["ignore"] = {"re:.*up_proj"};
  EXPECT_THAT(CheckFusedModules(Config(json), modules).message(), HasSubstr("found W4A16 and unquantized"));
}

}  // namespace
}  // namespace pith
