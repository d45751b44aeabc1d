#include "compression/modifiers/rtn.h"

#include <cmath>

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
    Recipe recipe;
    recipe.clip_search = search ? ClipSearch{.norm = 2.0} : kNoClipSearch;
    const auto quantizer = MakeRtnQuantizer(recipe);
    ASSERT_TRUE(quantizer.ok());
    EXPECT_EQ((*quantizer)->needs(), StatisticsLevel::kNone);
    const QuantizationArgs args{.num_bits = 4, .strategy = QuantizationStrategy::kChannel};
    const auto layer = (*quantizer)->Quantize({.name = "m", .weight = weight, .args = args}, nullptr, pool);
    ASSERT_TRUE(layer.ok()) << layer.status();
    error[search] = layer->report.relative_error;
    EXPECT_EQ(layer->report.name, "m");
    EXPECT_GT(layer->report.sqnr_db, 10);
  }
  EXPECT_LT(error[true], error[false]);
}

// Where the outlier's channel carries no input, the range is clipped for the sake of the others.
TEST(RtnModifierTest, WeighsErrorsByTheInput) {
  RandomStream random(4);
  std::vector<float> values(8 * 64), rows(16 * 64);
  for (float& value : values) value = random.Normal();
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = i % 64 == 5 ? 0.0f : random.Normal();
  for (int64_t o = 0; o < 8; ++o) values[o * 64 + 5] = 4.0f;
  const MatrixView<const float> weight(values.data(), 8, 64);
  ThreadPool pool(1);
  InputStatistics statistics(64, StatisticsLevel::kChannels, 16, Isa::kScalar);
  statistics.Add({rows.data(), 16, 64}, pool);
  const auto quantizer = MakeRtnQuantizer({});
  const QuantizationArgs args{.num_bits = 4, .strategy = QuantizationStrategy::kChannel};
  double error[2];
  for (const bool weighted : {false, true}) {
    const auto layer = (*quantizer)->Quantize({.name = "m", .weight = weight, .args = args}, weighted ? &statistics : nullptr, pool);
    ASSERT_TRUE(layer.ok()) << layer.status();
    error[weighted] = 0;
    std::vector<float> row(64);
    for (int64_t o = 0; o < 8; ++o) {
      layer->weight.DequantizeRow(o, absl::MakeSpan(row));
      for (int64_t i = 0; i < 64; ++i) error[weighted] += i == 5 ? 0.0 : std::pow(row[i] - values[o * 64 + i], 2);
    }
  }
  EXPECT_LT(error[true], 0.9 * error[false]);
}

// Columns that are kept apart may be as wrong as they like: the range is that of the others.
TEST(RtnModifierTest, OutlierColumnsDoNotCount) {
  RandomStream random(4);
  std::vector<float> values(8 * 64), rows(16 * 64);
  for (float& value : values) value = random.Normal();
  for (float& value : rows) value = random.Normal();
  for (size_t i = 5; i < rows.size(); i += 64) rows[i] *= 1000.0f;
  for (int64_t o = 0; o < 8; ++o) values[o * 64 + 5] = 4.0f;
  ThreadPool pool(1);
  InputStatistics statistics(64, StatisticsLevel::kChannels, 16, Isa::kScalar);
  statistics.Add({rows.data(), 16, 64}, pool);
  const auto quantizer = MakeRtnQuantizer({});
  const QuantizationArgs args{.num_bits = 4, .strategy = QuantizationStrategy::kChannel};
  LinearLayer layer{.name = "m", .weight = {values.data(), 8, 64}, .args = args};
  const auto whole = (*quantizer)->Quantize(layer, &statistics, pool);
  layer.outlier_columns = {5};
  const auto apart = (*quantizer)->Quantize(layer, &statistics, pool);
  ASSERT_TRUE(whole.ok() && apart.ok());
  for (int64_t o = 0; o < 8; ++o) EXPECT_LT(apart->weight.scale[o], whole->weight.scale[o]) << o;
}

TEST(MethodTableTest, FindsRowsByName) {
  ASSERT_TRUE(FindMethod("awq+gptq").ok());
  EXPECT_EQ((*FindMethod("awq+gptq"))->name, "awq+gptq");
  EXPECT_TRUE(absl::IsUnimplemented(FindMethod("gptq2").status()));
}

}  // namespace
}  // namespace pith
