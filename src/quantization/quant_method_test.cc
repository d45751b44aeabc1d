#include "quantization/quant_method.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

TEST(QuantMethod, PatternsMatchAnyPartOfAName) {
  const auto pattern = MatchPartOfName("o_proj");
  ASSERT_TRUE(pattern.ok()) << pattern.status();
  EXPECT_EQ(*pattern->Matches("model.layers.0.self_attn.o_proj", "Linear"), ModulePattern::Match::kRegex);
  EXPECT_EQ(*pattern->Matches("model.layers.0.self_attn.q_proj", "Linear"), ModulePattern::Match::kNone);
  EXPECT_EQ(PartOfName(*pattern), "o_proj");
  EXPECT_EQ(PartOfName(ModulePattern::Literal("lm_head")), "lm_head");
  // A dot is a dot.
  EXPECT_EQ(*MatchPartOfName("layers.1.")->Matches("model.layers.11.x", "Linear"), ModulePattern::Match::kNone);
  EXPECT_EQ(MatchPartOfName("").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(MatchPartOfName("a\\E.*").status().code(), absl::StatusCode::kDataLoss);
}

TEST(QuantMethod, UnknownOnesAreNamed) {
  const absl::Status status = ParseQuantizationConfig(*ParseJson(R"({"quant_method": "aqlm"})")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(),
              HasSubstr("\"quant_method\": expected one of compressed-tensors gptq awq bitsandbytes fp8, found \"aqlm\""));
}

TEST(QuantMethod, GroupSizesOfMinusOneAreChannels) {
  EXPECT_EQ(GroupedArgs(4, -1, true)->strategy, QuantizationStrategy::kChannel);
  EXPECT_EQ(GroupSizeOrMinusOne(*GroupedArgs(4, -1, true)), -1);
  EXPECT_EQ(GroupSizeOrMinusOne(*GroupedArgs(4, 32, true)), 32);
  EXPECT_EQ(GroupedArgs(4, 0, true).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace pith
