#include "compression/kv_cache_scales.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quantization/kv_cache_scheme.h"

namespace pith {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const QuantizationArgs kPerTensor = FindKvCacheScheme("fp8")->args, kPerHead = FindKvCacheScheme("fp8-head")->args;

DecoderConfig TwoHeadsOfThree() {
  DecoderConfig config;
  config.num_layers = 2;
  config.num_kv_heads = 2;
  config.head_dim = 3;
  return config;
}

// Rows of [7 floats that belong to others, 6 of keys, 6 of values].
KvRange RangeOf(const std::vector<std::vector<float>>& rows) {
  KvRange range(TwoHeadsOfThree());
  std::vector<float> flat;
  for (const std::vector<float>& row : rows) {
    flat.insert(flat.end(), 7, 1e30f);
    flat.insert(flat.end(), row.begin(), row.end());
  }
  const auto half = static_cast<int64_t>(rows.size() / 2);  // in two pieces
  range.OnKeysValues(flat.data() + 7, flat.data() + 13, 19, half);
  range.OnKeysValues(flat.data() + 7 + half * 19, flat.data() + 13 + half * 19, 19, static_cast<int64_t>(rows.size()) - half);
  return range;
}

const std::vector<std::vector<float>> kCacheRows = {{1, -2, 3, 40, 5, 6, 0.1f, 0.2f, 0.3f, 4, 5, 6},
                                                    {-8, 2, 3, 4, 5, -44.8f, 0.1f, -0.7f, 0.3f, 4, 5, 6},
                                                    {1, 2, 3, 4, 5, 6, 0.1f, 0.2f, 0.3f, 4, -56, 6}};

TEST(KvCacheScales, AreTheLargestMagnitudesOver448) {
  const KvRange range = RangeOf(kCacheRows);
  EXPECT_THAT(range.key_max_abs(), ElementsAre(8, 44.8f));
  EXPECT_THAT(range.value_max_abs(), ElementsAre(0.7f, 56));
  const auto head = MakeKvScales("a", kPerHead, range, DType::kF32);
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_THAT(head->key_scales, ElementsAre(8 / 448.0f, 44.8f / 448));
  EXPECT_THAT(head->value_scales, ElementsAre(0.7f / 448, 56 / 448.0f));
  const auto tensor = MakeKvScales("a", kPerTensor, range, DType::kBF16);
  EXPECT_THAT(tensor->key_scales, ElementsAre(RoundToBfloat16(44.8f / 448)));
  EXPECT_THAT(tensor->value_scales, ElementsAre(RoundToBfloat16(56 / 448.0f)));
  EXPECT_THAT(tensor->key_max_abs, ElementsAre(8, 44.8f));  // of every head all the same
  EXPECT_TRUE(head->notes.empty() && tensor->notes.empty());
}

TEST(KvCacheScales, WhatDoesNotFitIsNoted) {
  std::vector<std::vector<float>> rows = kCacheRows;
  for (std::vector<float>& row : rows) std::fill(row.begin(), row.begin() + 3, 0.0f);
  auto scales = MakeKvScales("a", kPerHead, RangeOf(rows), DType::kBF16);
  EXPECT_EQ(scales->key_scales[0], 1);
  EXPECT_THAT(scales->notes, ElementsAre("keys of KV head 0 were 0 throughout: scale 1"));
  EXPECT_TRUE(MakeKvScales("a", kPerTensor, RangeOf(rows), DType::kBF16)->notes.empty());  // the other head has its scale
  // F16 counts in steps of 2^-24 down there: 2^-24 * 1.4 becomes 2^-24, and what it should hold no longer fits.
  rows[0][0] = 448 * 0x1.6p-24f;
  scales = MakeKvScales("a", kPerHead, RangeOf(rows), DType::kF16);
  ASSERT_EQ(scales->notes.size(), 1u);
  EXPECT_THAT(scales->notes[0], HasSubstr("are clipped: F16 holds scale 5.96046e-08 instead of 8.19"));
  rows[0][0] = 448 * 0x1p-26f;
  scales = MakeKvScales("a", kPerHead, RangeOf(rows), DType::kF16);
  ASSERT_EQ(scales->notes.size(), 1u);
  EXPECT_THAT(scales->notes[0], HasSubstr("are coarse: F16 holds scale 1 instead of 1.49"));
}

TEST(KvCacheScales, RefusesWhatIsNotFinite) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<std::vector<float>> rows = kCacheRows;
    rows[1][9] = bad;
    const absl::Status status = MakeKvScales("model.layers.1.self_attn", kPerTensor, RangeOf(rows), DType::kBF16).status();
    EXPECT_TRUE(absl::IsDataLoss(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("model.layers.1.self_attn: expected finite values on the calibration data"));
  }
}

TEST(KvCacheScales, AreEncodedAsPlanned) {
  const WeightMap map{.prefix = "model."};
  for (const QuantizationArgs& args : {kPerTensor, kPerHead}) {
    const std::vector<TensorSpec> specs = PlanKvScales(map, TwoHeadsOfThree(), args, DType::kBF16);
    ASSERT_EQ(specs.size(), 4u);
    EXPECT_EQ(specs[3].name, "model.layers.1.self_attn.v_scale");
    const auto scales = MakeKvScales("model.layers.1.self_attn", args, RangeOf(kCacheRows), DType::kBF16);
    const std::vector<NamedTensor> tensors = EncodeKvScales(*scales, args, DType::kBF16);
    ASSERT_EQ(tensors.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(tensors[i].name, specs[2 + i].name);
      EXPECT_EQ(tensors[i].tensor.dtype(), DType::kBF16);
      EXPECT_EQ(tensors[i].tensor.shape(), specs[2 + i].shape);
    }
    EXPECT_EQ(tensors[0].tensor.shape(), args == kPerHead ? Shape({2, 1, 1}) : Shape({1}));
    EXPECT_EQ(ToFloat(tensors[1].tensor.as<bfloat16>().back()), scales->value_scales.back());
  }
}

}  // namespace
}  // namespace pith
