#include "compression/modifiers/rtn.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace pith {
namespace {

// The searched range lowers the error on weights with an outlier, and the report tells the error of the weight it gives.
TEST(RtnModifierTest, ClipSearchLowersTheError) {
  RandomStream random(4);
  std::vector<float> values(8 * 64);
  for (float& value : values) value = random.Normal();
  values[5] = 6.0f;
  const MatrixView<const float> weight(values.data(), 8, 64);
  ThreadPool pool(1);
  double error[2];
  for (const bool search : {false, true}) {
    const auto modifier = MakeRtnModifier();
    EXPECT_FALSE(modifier->RequiresCalibrationData());
    Recipe recipe;
    recipe.clip_search = search ? ClipSearch{.norm = 2.0} : kNoClipSearch;
    ASSERT_TRUE(modifier->Initialize(recipe, {.num_bits = 4, .strategy = QuantizationStrategy::kChannel}).ok());
    const auto layer = modifier->QuantizeLayer({.name = "m", .weight = weight}, pool);
    ASSERT_TRUE(layer.ok()) << layer.status();
    error[search] = layer->report.relative_error;
    EXPECT_EQ(layer->report.name, "m");
    EXPECT_GT(layer->report.sqnr_db, 10);
    ASSERT_TRUE(modifier->Finalize().ok());
  }
  EXPECT_LT(error[true], error[false]);
  EXPECT_FALSE(MakeRtnModifier()->ObserveLayerInput("m", weight).ok());
}

TEST(ModifierTableTest, FindsRowsByName) {
  ASSERT_TRUE(FindModifier("rtn").ok());
  EXPECT_EQ((*FindModifier("rtn"))->name, "rtn");
  EXPECT_TRUE(absl::IsUnimplemented(FindModifier("gptq2").status()));
}

}  // namespace
}  // namespace pith
