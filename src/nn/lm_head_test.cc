#include "nn/lm_head.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/test_matrix.h"

namespace pith {
namespace {

TEST(LmHead, NormalizesTheWantedRowsAndProjects) {
  constexpr int64_t kDim = 16, kVocab = 40;
  ThreadPool pool(2);
  const ComputeContext context = MakeComputeContext(&pool, DetectIsa());
  const TestMatrix table = RandomDense("lm_head", kVocab, kDim, 1);
  const std::vector<float> weight(kDim, 2.0f);
  auto norm = RmsNorm::Load("norm.weight", {DType::kF32, {kDim}, reinterpret_cast<const uint8_t*>(weight.data())}, kDim, 1e-6f, false);
  ASSERT_TRUE(norm.ok());
  auto projection = Linear::Load({table.Source()}, context);
  ASSERT_TRUE(projection.ok());
  const LmHead head(*std::move(norm), std::make_shared<Linear>(*std::move(projection)));
  EXPECT_EQ(head.vocab_size(), kVocab);

  std::vector<float> hidden(6 * kDim);
  RandomStream random(3);
  for (float& h : hidden) h = random.Normal();
  const std::vector<int32_t> rows = {0, 2, 3, 5};
  LinearInput input;
  input.Prepare(head.projection().formats(), static_cast<int64_t>(rows.size()), kDim, /*keep_bf16=*/true);
  head.Normalize(context, hidden.data(), rows, input);
  const uint16_t* normalized = input.bf16();
  for (size_t i = 0; i < rows.size(); ++i) {
    double squares = 0;
    for (int64_t d = 0; d < kDim; ++d) squares += hidden[rows[i] * kDim + d] * static_cast<double>(hidden[rows[i] * kDim + d]);
    for (int64_t d = 0; d < kDim; ++d) {
      const double expected = 2.0 * hidden[rows[i] * kDim + d] / std::sqrt(squares / kDim + 1e-6);
      EXPECT_NEAR(ToFloat(bfloat16{normalized[i * kDim + d]}), expected, std::fabs(expected) / 256) << i << " " << d;
    }
  }
  std::vector<float> logits(rows.size() * kVocab);
  head.Run(context, input, static_cast<int64_t>(rows.size()), logits.data());
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int64_t o = 0; o < kVocab; ++o) {
      const DotProduct dot = ReferenceDot(table, o, normalized + i * kDim);
      EXPECT_NEAR(logits[i * kVocab + o], dot.value, dot.magnitude / 4096);
    }
  }
}

}  // namespace
}  // namespace pith
