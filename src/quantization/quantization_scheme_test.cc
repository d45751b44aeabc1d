#include "quantization/quantization_scheme.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "quantization/formats/format_table.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

std::vector<RowLength> Layers(std::initializer_list<int64_t> lengths) {
  std::vector<RowLength> layers;
  for (const int64_t in : lengths) layers.push_back({absl::StrCat("layer", layers.size()), in});
  return layers;
}

TEST(Presets, RowsAreStorable) {
  for (const QuantizationScheme& scheme : PresetSchemes()) {
    SCOPED_TRACE(scheme.name);
    EXPECT_EQ(PresetName(scheme.weights, scheme.input_activations), scheme.name);
    if (!scheme.weights.has_value()) {
      EXPECT_EQ(scheme.format, "dense");
      continue;
    }
    EXPECT_TRUE(
        PlanWeight(scheme.format, WithStrategy(scheme, QuantizationStrategy::kChannel, 0)->weights.value(), {8, 128}, DType::kBF16).ok());
    EXPECT_TRUE(!scheme.input_activations.has_value() || ValidateInput(*scheme.input_activations).ok());
    EXPECT_TRUE(WithStrategy(scheme, QuantizationStrategy::kTensor, 0).ok());
    EXPECT_TRUE(WithStrategy(scheme, QuantizationStrategy::kChannel, 0).ok());
    EXPECT_TRUE(WithStrategy(scheme, QuantizationStrategy::kGroup, 64).ok());
  }
}

TEST(Presets, FoundWhateverTheLetterCase) {
  const absl::StatusOr<QuantizationScheme> scheme = FindScheme("w4a16_Asym");
  ASSERT_TRUE(scheme.ok());
  EXPECT_EQ(scheme->name, "W4A16_ASYM");
  EXPECT_EQ(scheme->format, "pack-quantized");
  EXPECT_EQ(scheme->weights->num_bits, 4);
  EXPECT_FALSE(scheme->weights->symmetric);
  EXPECT_EQ(scheme->weights->strategy, QuantizationStrategy::kGroup);
  EXPECT_EQ(scheme->weights->group_size, 0);
  EXPECT_FALSE(scheme->input_activations.has_value());
  EXPECT_TRUE(FindScheme("W4A16")->weights->symmetric);
  EXPECT_EQ(FindScheme("W8A16")->weights->num_bits, 8);
}

TEST(Presets, UnknownNameListsTheKnownAndTheNearest) {
  const absl::Status status = FindScheme("W4A61").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(),
            "scheme \"W4A61\": not known, nearest is W4A16; known are BF16 W8A16 W4A16 W4A16_ASYM W4A8 W8A8 W8A8_STATIC "
            "LLM_INT8 FP8 FP8_DYNAMIC FP8_BLOCK");
}

TEST(Presets, NameOfAnySchemeWithTheSameCodes) {
  EXPECT_EQ(PresetName(QuantizationArgs{.num_bits = 4, .strategy = QuantizationStrategy::kChannel}, std::nullopt), "W4A16");
  EXPECT_EQ(PresetName(QuantizationArgs{.num_bits = 3, .strategy = QuantizationStrategy::kChannel}, std::nullopt), "");
  const QuantizationArgs dynamic{.strategy = QuantizationStrategy::kToken, .dynamic = true};
  EXPECT_EQ(PresetName(QuantizationArgs{.num_bits = 4}, dynamic), "W4A8");
  EXPECT_EQ(PresetName(QuantizationArgs{.num_bits = 3}, dynamic), "");
  EXPECT_EQ(PresetName(QuantizationArgs{}, dynamic), "W8A8");
  EXPECT_EQ(PresetName(QuantizationArgs{}, QuantizationArgs{}), "W8A8_STATIC");
  QuantizationArgs outliers = dynamic;
  outliers.outlier_threshold = 4;
  outliers.fixed_outliers = true;
  EXPECT_EQ(PresetName(QuantizationArgs{}, outliers), "LLM_INT8");
  EXPECT_EQ(PresetName(QuantizationArgs{.num_bits = 4}, outliers), "");
  const QuantizationArgs fp8{.type = QuantizationType::kFloat};
  EXPECT_EQ(PresetName(fp8, fp8), "FP8");
  EXPECT_EQ(PresetName(fp8, dynamic), "");
  EXPECT_EQ(PresetName(fp8, std::nullopt), "");
}

TEST(Presets, StoreWhatThePublishedOnesDo) {
  const QuantizationScheme w8a8 = *FindScheme("W8A8");
  EXPECT_EQ(w8a8.format, "int-quantized");
  EXPECT_EQ(w8a8.weights->strategy, QuantizationStrategy::kChannel);
  EXPECT_EQ(*w8a8.input_activations, (QuantizationArgs{.strategy = QuantizationStrategy::kToken, .dynamic = true}));
  EXPECT_EQ(FindScheme("W4A8")->weights->strategy, QuantizationStrategy::kGroup);
  EXPECT_EQ(FindScheme("W4A8")->format, "int-quantized");
  const QuantizationScheme block = *FindScheme("FP8_BLOCK");
  EXPECT_EQ(block.format, "float-quantized");
  EXPECT_EQ(block.weights->block_rows, 128);
  EXPECT_EQ(block.weights->block_cols, 128);
  EXPECT_EQ(block.input_activations->group_size, 128);
  const QuantizationScheme llm_int8 = *FindScheme("LLM_INT8");
  EXPECT_EQ(llm_int8.format, "bitsandbytes");
  EXPECT_EQ(llm_int8.input_activations->outlier_threshold, 6.0f);
  EXPECT_FALSE(llm_int8.input_activations->fixed_outliers);
  EXPECT_TRUE(llm_int8.HasOutliers());
  EXPECT_FALSE(w8a8.HasOutliers());
  EXPECT_EQ(FindScheme("FP8_DYNAMIC")->weights->strategy, QuantizationStrategy::kChannel);
  for (const QuantizationScheme& scheme : PresetSchemes()) {
    EXPECT_EQ(scheme.NeedsCalibration(), scheme.name == "FP8" || scheme.name == "W8A8_STATIC") << scheme.name;
  }
}

TEST(WithStrategy, ChangesOnlyTheGrouping) {
  const QuantizationScheme scheme = *FindScheme("W4A16_ASYM");
  const absl::StatusOr<QuantizationScheme> group = WithStrategy(scheme, QuantizationStrategy::kGroup, 32);
  ASSERT_TRUE(group.ok());
  EXPECT_EQ(group->weights->group_size, 32);
  EXPECT_EQ(group->name, "W4A16_ASYM");
  EXPECT_FALSE(group->weights->symmetric);
  const absl::StatusOr<QuantizationScheme> channel = WithStrategy(*group, QuantizationStrategy::kChannel, 0);
  ASSERT_TRUE(channel.ok());
  EXPECT_EQ(channel->weights->strategy, QuantizationStrategy::kChannel);
  EXPECT_EQ(channel->weights->group_size, 0);
  EXPECT_FALSE(WithStrategy(scheme, QuantizationStrategy::kGroup, 0).ok());
  EXPECT_FALSE(WithStrategy(scheme, QuantizationStrategy::kChannel, 64).ok());
  EXPECT_EQ(WithStrategy(*FindScheme("BF16"), QuantizationStrategy::kChannel, 0).status().message(),
            "scheme BF16: expected quantized weights for strategy channel, found none");
  const QuantizationScheme block = *FindScheme("FP8_BLOCK");
  EXPECT_EQ(WithStrategy(block, QuantizationStrategy::kBlock, 0)->weights, block.weights);
  EXPECT_EQ(WithStrategy(block, QuantizationStrategy::kChannel, 0)->weights->block_cols, 0);
  EXPECT_FALSE(WithStrategy(scheme, QuantizationStrategy::kBlock, 0).ok());
}

TEST(ResolveGroupSize, AutoTakesTheLargestCommonPowerOfTwoUpTo128) {
  EXPECT_EQ(*ResolveGroupSize(Layers({4096, 11008}), 0), 128);
  EXPECT_EQ(*ResolveGroupSize(Layers({576, 1536}), 0), 64);  // 96 divides too, but no serving engine has a kernel for it
  EXPECT_EQ(*ResolveGroupSize(Layers({576, 1536, 64}), 0), 64);
  EXPECT_EQ(*ResolveGroupSize(Layers({4864, 896}), 0), 128);
  EXPECT_EQ(*ResolveGroupSize(Layers({127}), 0), 127);  // no power of two from 16 on divides it
  EXPECT_EQ(*ResolveGroupSize(Layers({640, 2048}), 0), 128);
}

TEST(ResolveGroupSize, AutoRefusesTinyGroups) {
  const absl::Status status = ResolveGroupSize(Layers({577, 576}), 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "group size auto: expected a size from 16 to 128 that divides every row, found none: 1 layer with in=576 (layer1; sizes that "
            "divide: 96 72 64 48 36 32 24 18 16), 1 layer with in=577 (layer0; sizes that divide: none)");
}

TEST(ResolveGroupSize, AGivenSizeMustDivideEveryRow) {
  EXPECT_EQ(*ResolveGroupSize(Layers({512, 1024}), 256), 256);
  EXPECT_EQ(*ResolveGroupSize(Layers({576}), 8), 8);
  const absl::Status status = ResolveGroupSize(Layers({576, 1536, 576}), 128).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("group size 128: expected a divisor of every row, found 2 layers with in=576 (layer0, ...;"));
  EXPECT_THAT(status.message(), HasSubstr("; sizes that divide every row: 96 64 48 32 24 16"));
  EXPECT_THAT(status.message(), ::testing::Not(HasSubstr("in=1536")));
}

TEST(ResolveGroupSize, ListsAtMostFourLengths) {
  const absl::Status status = ResolveGroupSize(Layers({17, 19, 23, 29, 31, 37}), 2).status();
  EXPECT_THAT(status.message(), HasSubstr("in=29"));
  EXPECT_THAT(status.message(), HasSubstr("2 more lengths"));
  EXPECT_THAT(status.message(), ::testing::Not(HasSubstr("in=31")));
}

TEST(ResolveGroupSize, RefusesNothingToDivide) {
  EXPECT_FALSE(ResolveGroupSize({}, 0).ok());
  EXPECT_FALSE(ResolveGroupSize(Layers({576}), -1).ok());
}

}  // namespace
}  // namespace pith
