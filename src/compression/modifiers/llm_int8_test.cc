#include "compression/modifiers/llm_int8.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace pith {
namespace {

TEST(FindOutlierColumnsTest, FromTheThresholdOn) {
  const float max_abs[] = {6.0f, 0.0f, 5.999f, 1e9f};
  EXPECT_EQ(FindOutlierColumns(max_abs, 6.0f), (std::vector<int32_t>{0, 3}));
  EXPECT_TRUE(FindOutlierColumns(max_abs, 2e9f).empty());
}

// Section 3.2: each row by its own largest weight, which no search narrows.
TEST(LlmInt8QuantizerTest, ScalesAreThoseOfTheLargestWeight) {
  RandomStream random(4);
  std::vector<float> values(4 * 64);
  for (float& value : values) value = random.Normal();
  values[5] = 16.0f;
  const auto recipe = MakeRecipe("LLM_INT8", "llm_int8", "auto", {}, /*clip_search=*/true, 0);
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  const auto quantizer = MakeLlmInt8Quantizer(*recipe);
  ASSERT_TRUE(quantizer.ok()) << quantizer.status();
  EXPECT_EQ((*quantizer)->needs(), StatisticsLevel::kNone);
  ThreadPool pool(1);
  const LinearLayer layer{.name = "m", .weight = {values.data(), 4, 64}, .args = *recipe->scheme.weights, .scale_dtype = DType::kF32};
  const auto quantized = (*quantizer)->Quantize(layer, nullptr, pool);
  ASSERT_TRUE(quantized.ok()) << quantized.status();
  for (int64_t o = 0; o < 4; ++o) {
    float largest = 0;
    for (int64_t i = 0; i < 64; ++i) largest = std::fmax(largest, std::fabs(values[o * 64 + i]));
    EXPECT_FLOAT_EQ(quantized->weight.scale[o], largest / 127.5f);
  }
}

TEST(LlmInt8QuantizerTest, GoesWithItsSchemeAlone) {
  const absl::Status other = MakeRecipe("W8A8", "llm_int8", "auto", {}, true, 0).status();
  EXPECT_TRUE(absl::IsUnimplemented(other));
  EXPECT_EQ(other.message(), "--method llm_int8: expected scheme LLM_INT8, found W8A8");
  for (const char* method : {"gptq", "awq", "smoothquant"}) {
    const absl::Status status = MakeRecipe("LLM_INT8", method, "auto", {}, true, 0).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << method;
    EXPECT_THAT(status.message(), testing::HasSubstr("expected rtn or llm_int8 for a scheme with outlier columns, found LLM_INT8"));
  }
  Recipe recipe = *MakeRecipe("LLM_INT8", "auto", "auto", {}, true, 0);
  EXPECT_TRUE(absl::IsUnimplemented(QuantizeEmbeddings("W8A16", "auto", recipe)));
  recipe = *MakeRecipe("W4A16", "auto", "auto", {}, true, 0);
  EXPECT_THAT(QuantizeHead("LLM_INT8", "auto", recipe).message(), testing::HasSubstr("expected no scheme beside LLM_INT8"));
}

}  // namespace
}  // namespace pith
