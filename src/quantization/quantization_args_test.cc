#include "quantization/quantization_args.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<QuantizationArgs> Parse(absl::string_view text) {
  const absl::StatusOr<Json> json = ParseJson(text);
  EXPECT_TRUE(json.ok()) << json.status();
  return ParseQuantizationArgs(*json);
}

void ExpectParseError(absl::string_view text, absl::StatusCode code, absl::string_view message) {
  const absl::Status status = Parse(text).status();
  EXPECT_EQ(status.code(), code) << text << ": " << status;
  EXPECT_THAT(status.message(), HasSubstr(message)) << text;
}

TEST(QuantizationArgs, CodeRange) {
  EXPECT_EQ((QuantizationArgs{.num_bits = 4}).min_code(), -8);
  EXPECT_EQ((QuantizationArgs{.num_bits = 4}).max_code(), 7);
  EXPECT_EQ((QuantizationArgs{.num_bits = 8}).min_code(), -128);
}

TEST(QuantizationArgs, PublishedDefaults) {
  const absl::StatusOr<QuantizationArgs> args = Parse("{}");
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_EQ(*args, (QuantizationArgs{.num_bits = 8,
                                     .type = QuantizationType::kInt,
                                     .symmetric = true,
                                     .strategy = QuantizationStrategy::kTensor,
                                     .group_size = 0,
                                     .dynamic = false}));
}

TEST(QuantizationArgs, StrategyFollowsFromTheGroupSize) {
  EXPECT_EQ(Parse(R"({"group_size": null})")->strategy, QuantizationStrategy::kTensor);
  EXPECT_EQ(Parse(R"({"group_size": -1})")->strategy, QuantizationStrategy::kChannel);
  EXPECT_EQ(Parse(R"({"group_size": -1})")->group_size, 0);
  EXPECT_EQ(Parse(R"({"group_size": 32})")->strategy, QuantizationStrategy::kGroup);
  EXPECT_EQ(Parse(R"({"group_size": 32})")->group_size, 32);
  EXPECT_EQ(Parse(R"({"group_size": -1, "strategy": "CHANNEL"})")->strategy, QuantizationStrategy::kChannel);
  ExpectParseError(R"({"group_size": 0})", absl::StatusCode::kDataLoss, "found 0");
  ExpectParseError(R"({"group_size": -2})", absl::StatusCode::kDataLoss, "\"group_size\": expected an integer in [-1,");
  ExpectParseError(R"({"group_size": 64, "strategy": "channel"})", absl::StatusCode::kDataLoss,
                   "group_size: expected none for strategy channel, found 64");
  ExpectParseError(R"({"strategy": "group"})", absl::StatusCode::kDataLoss, "group_size: expected a positive size");
}

TEST(QuantizationArgs, ReadsWhatPublishedFilesContain) {
  const absl::StatusOr<QuantizationArgs> weights = Parse(R"({"num_bits": 4, "type": "int", "symmetric": false, "strategy": "group",
      "group_size": 128, "block_structure": null, "dynamic": false, "actorder": "static", "observer": "minmax", "observer_kwargs": {},
      "scale_dtype": null, "zp_dtype": "torch.int8"})");
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(*weights, (QuantizationArgs{.num_bits = 4, .symmetric = false, .strategy = QuantizationStrategy::kGroup, .group_size = 128}));
  const absl::StatusOr<QuantizationArgs> tokens = Parse(R"({"num_bits": 8, "type": "float", "strategy": "token", "dynamic": true})");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->type, QuantizationType::kFloat);
  EXPECT_TRUE(tokens->dynamic);
  const absl::StatusOr<QuantizationArgs> block = Parse(R"({"type": "float", "strategy": "block", "block_structure": [128, 64]})");
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_EQ(block->block_rows, 128);
  EXPECT_EQ(block->block_cols, 64);
}

TEST(QuantizationArgs, RefusesUnknownKeysWithTheNearestName) {
  ExpectParseError(R"({"num_bit": 4})", absl::StatusCode::kDataLoss,
                   "\"num_bit\": unknown key of quantization arguments, nearest is \"num_bits\"");
  ExpectParseError(R"({"groupsize": 4})", absl::StatusCode::kDataLoss, "nearest is \"group_size\"");
  ExpectParseError("[1]", absl::StatusCode::kDataLoss, "expected an object, found [1]");
}

TEST(QuantizationArgs, RefusesWrongValues) {
  constexpr auto kBad = absl::StatusCode::kDataLoss;
  ExpectParseError(R"({"num_bits": 0})", kBad, "\"num_bits\"");
  ExpectParseError(R"({"num_bits": "4"})", kBad, "\"num_bits\"");
  ExpectParseError(R"({"type": "nf4"})", kBad, "\"type\": expected \"int\" or \"float\", found \"nf4\"");
  ExpectParseError(R"({"symmetric": 1})", kBad, "\"symmetric\"");
  ExpectParseError(R"({"strategy": "row"})", kBad, "\"strategy\": expected tensor, channel, group, block or token, found \"row\"");
  ExpectParseError(R"({"strategy": "token"})", kBad, "dynamic: expected true for strategy token");
  ExpectParseError(R"({"strategy": "channel", "dynamic": true})", kBad, "dynamic: expected false for strategy channel");
  ExpectParseError(R"({"dynamic": "sometimes"})", kBad, "\"dynamic\"");
  ExpectParseError(R"({"actorder": "reverse"})", kBad, "\"actorder\"");
  ExpectParseError(R"({"block_structure": [128]})", kBad, "\"block_structure\"");
  ExpectParseError(R"({"block_structure": [128, -1], "strategy": "block"})", kBad, "\"block_structure\"");
  ExpectParseError(R"({"block_structure": [128, 128]})", kBad, "block_structure: expected none for strategy tensor");
  ExpectParseError(R"({"strategy": "block"})", kBad, "block_structure: expected two positive sizes");
  ExpectParseError(R"({"observer": 3})", kBad, "\"observer\"");
  ExpectParseError(R"({"observer_kwargs": []})", kBad, "\"observer_kwargs\"");
  ExpectParseError(R"({"type": "float", "symmetric": false})", kBad, "symmetric: expected true for float codes");
}

TEST(QuantizationArgs, NamesWhatIsNotSupported) {
  constexpr auto kNot = absl::StatusCode::kUnimplemented;
  ExpectParseError(R"({"num_bits": 16})", kNot, "\"num_bits\": expected 1 to 8 for type \"int\", found 16");
  ExpectParseError(R"({"num_bits": 4, "type": "float"})", kNot, "\"num_bits\": expected 8 for type \"float\", found 4");
  ExpectParseError(R"({"dynamic": "local"})", kNot, "local");
  ExpectParseError(R"({"strategy": "tensor_group", "group_size": 16})", kNot, "tensor_group");
  ExpectParseError(R"({"strategy": "attn_head"})", kNot, "attn_head");
  ExpectParseError(R"({"actorder": "group"})", kNot, "weight_g_idx");
  ExpectParseError(R"({"actorder": true})", kNot, "weight_g_idx");
  EXPECT_TRUE(Parse(R"({"actorder": false})").ok());
  EXPECT_TRUE(Parse(R"({"actorder": "weight"})").ok());
}

TEST(QuantizationArgs, WritesTheSmallestKeySet) {
  const QuantizationArgs group{.num_bits = 4, .strategy = QuantizationStrategy::kGroup, .group_size = 64};
  EXPECT_EQ(DumpJson(ToJson(group)), R"({"group_size":64,"num_bits":4,"strategy":"group","symmetric":true,"type":"int"})");
  const QuantizationArgs token{.type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kToken, .dynamic = true};
  EXPECT_EQ(DumpJson(ToJson(token)), R"({"dynamic":true,"num_bits":8,"strategy":"token","symmetric":true,"type":"float"})");
}

TEST(QuantizationArgs, WhatIsWrittenIsReadBack) {
  for (const QuantizationArgs& args : {
           QuantizationArgs{},
           QuantizationArgs{.num_bits = 4, .symmetric = false, .strategy = QuantizationStrategy::kGroup, .group_size = 32},
           QuantizationArgs{.num_bits = 3, .strategy = QuantizationStrategy::kChannel},
           QuantizationArgs{.strategy = QuantizationStrategy::kToken, .dynamic = true},
           QuantizationArgs{
               .type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kBlock, .block_rows = 128, .block_cols = 64},
       }) {
    const absl::StatusOr<QuantizationArgs> read = ParseQuantizationArgs(ToJson(args));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, args);
  }
}

TEST(QuantizationArgs, InputsAreDescribed) {
  EXPECT_EQ(DescribeInput({.strategy = QuantizationStrategy::kToken, .dynamic = true}), "int8 dynamic per token");
  QuantizationArgs outliers{.strategy = QuantizationStrategy::kToken, .dynamic = true, .outlier_threshold = 6.5f};
  EXPECT_EQ(DescribeInput(outliers), "int8 dynamic per token, outliers from 6.5 apart");
  outliers.fixed_outliers = true;
  EXPECT_EQ(DescribeInput(outliers), "int8 dynamic per token, outlier columns apart");
  EXPECT_EQ(DescribeInput({.type = QuantizationType::kFloat}), "fp8 static per tensor");
  EXPECT_EQ(DescribeInput({.type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kGroup, .group_size = 128, .dynamic = true}),
            "fp8 dynamic per group of 128");
}

TEST(QuantizationArgs, InputsThatCanBeDeclared) {
  using enum QuantizationStrategy;
  EXPECT_TRUE(ValidateInput({.strategy = kTensor}).ok());
  EXPECT_TRUE(ValidateInput({.strategy = kTensor, .dynamic = true}).ok());
  EXPECT_TRUE(ValidateInput({.strategy = kToken, .dynamic = true}).ok());
  EXPECT_TRUE(ValidateInput({.strategy = kGroup, .group_size = 64, .dynamic = true}).ok());
  for (const QuantizationArgs& args :
       {QuantizationArgs{.symmetric = false}, QuantizationArgs{.strategy = kChannel},
        QuantizationArgs{.strategy = kGroup, .group_size = 64}, QuantizationArgs{.strategy = kBlock, .block_rows = 1, .block_cols = 64}}) {
    EXPECT_TRUE(absl::IsUnimplemented(ValidateInput(args))) << DescribeInput(args);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ValidateInput({.strategy = kToken})));
}

TEST(QuantizationArgs, OutliersAreOfInt8CodesPerToken) {
  QuantizationArgs args{.strategy = QuantizationStrategy::kToken, .dynamic = true, .outlier_threshold = 6};
  EXPECT_TRUE(Validate(args).ok());
  args.fixed_outliers = true;
  EXPECT_TRUE(ValidateInput(args).ok());
  args.outlier_threshold = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(args)));
  args = {.outlier_threshold = 6};
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(args)));
  args = {.strategy = QuantizationStrategy::kToken, .dynamic = true, .outlier_threshold = -1};
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(args)));
}

TEST(QuantizationArgs, ColumnsThatShareAScale) {
  using enum QuantizationStrategy;
  EXPECT_EQ((QuantizationArgs{.strategy = kTensor}.columns_per_scale(256)), 256);
  EXPECT_EQ((QuantizationArgs{.strategy = kChannel}.columns_per_scale(256)), 256);
  EXPECT_EQ((QuantizationArgs{.strategy = kGroup, .group_size = 64}.columns_per_scale(256)), 64);
  EXPECT_EQ((QuantizationArgs{.strategy = kBlock, .block_rows = 8, .block_cols = 128}.columns_per_scale(256)), 128);
}

TEST(QuantizationArgs, ValidateRefusesBitsOutOfRange) {
  EXPECT_EQ(Validate({.num_bits = 9}).message(), "num_bits: expected 1 to 8, found 9");
  EXPECT_EQ(Validate({.num_bits = 0}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(Validate({.num_bits = 3, .type = QuantizationType::kFloat}).ok());
  EXPECT_TRUE(Validate({.num_bits = 3}).ok());
}

}  // namespace
}  // namespace pith
