#include "nn/embedding.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/test_matrix.h"

namespace pith {
namespace {

void ExpectLooksUp(const Embedding& embedding, const TestMatrix& table, const ComputeContext& context) {
  const std::vector<int32_t> tokens = {3, 0, 3, static_cast<int32_t>(table.out) - 1};
  const int64_t stride = table.in + 2;
  std::vector<float> out(tokens.size() * stride, -1.0f);
  embedding.Run(context, tokens, 2.5f, out.data(), stride);
  for (size_t r = 0; r < tokens.size(); ++r) {
    for (int64_t i = 0; i < table.in; ++i) {
      EXPECT_FLOAT_EQ(out[r * stride + i], 2.5f * table.values[tokens[r] * table.in + i]) << r << " " << i;
    }
    EXPECT_EQ(out[r * stride + table.in], -1.0f);
  }
}

TEST(Embedding, DenseRows) {
  ThreadPool pool(2);
  const ComputeContext context = MakeComputeContext(&pool, DetectIsa());
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    const TestMatrix table = RandomDense("embed", 11, 20, 1, dtype);
    const auto embedding = Embedding::LoadDense(table.Source(), context);
    ASSERT_TRUE(embedding.ok()) << embedding.status();
    EXPECT_EQ(embedding->vocab_size(), 11);
    EXPECT_EQ(embedding->dim(), 20);
    EXPECT_EQ(embedding->resident_bytes(), 11 * 20 * 2);
    EXPECT_THAT(embedding->data_path().kernel, testing::HasSubstr("embedding_"));
    ExpectLooksUp(*embedding, table, context);
  }
}

TEST(Embedding, QuantizedRows) {
  ThreadPool pool(2);
  const ComputeContext context = MakeComputeContext(&pool, DetectIsa());
  for (const TestOffset offset : {TestOffset::kSymmetric, TestOffset::kZeroPoint, TestOffset::kMin}) {
    const TestMatrix table = RandomQuantized("embed", 11, 32, 6, 16, offset, 1, "Q6_K");
    const auto embedding = Embedding::LoadQuantized(table.Source(), context);
    ASSERT_TRUE(embedding.ok()) << embedding.status();
    EXPECT_EQ(embedding->data_path().scheme, "Q6_K");
    EXPECT_EQ(embedding->data_path().stored_bytes, table.stored_bytes);
    EXPECT_EQ(embedding->resident_bytes(), Linear::Load({table.Source()}, context)->resident_bytes());
    ExpectLooksUp(*embedding, table, context);
  }
}

TEST(Embedding, TiedRowsAreThoseOfTheHead) {
  ThreadPool pool(2);
  const ComputeContext context = MakeComputeContext(&pool, DetectIsa());
  for (const TestMatrix& table : {RandomDense("embed", 35, 20, 1), RandomQuantized("embed", 35, 32, 6, 16, TestOffset::kMin, 1, "Q6_K")}) {
    auto head = Linear::Load({table.Source()}, context);
    ASSERT_TRUE(head.ok()) << head.status();
    const Embedding embedding = Embedding::Tied(DescribeStorage(table.Source()), std::make_shared<Linear>(*std::move(head)));
    EXPECT_EQ(embedding.resident_bytes(), 0);
    EXPECT_EQ(embedding.data_path().stored_bytes, table.stored_bytes);
    EXPECT_EQ(embedding.vocab_size(), 35);
    ExpectLooksUp(embedding, table, context);
  }
}

TEST(Embedding, RefusesWhatIsNotFinite) {
  ThreadPool pool(1);
  const ComputeContext context = MakeComputeContext(&pool, Isa::kScalar);
  TestMatrix dense = RandomDense("embed", 4, 8, 1);
  dense.dense->as<bfloat16>()[9] = ToBfloat16(INFINITY);
  EXPECT_EQ(Embedding::LoadDense(dense.Source(), context).status().message(),
            "embed.weight: expected finite values, found infinity at [1, 1]");
  TestMatrix quantized = RandomQuantized("embed", 4, 32, 4, 16, TestOffset::kSymmetric, 1);
  quantized.quantized->scale[3] = std::nanf("");
  EXPECT_EQ(Embedding::LoadQuantized(quantized.Source(), context).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace pith
