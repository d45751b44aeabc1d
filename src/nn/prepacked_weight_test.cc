#include "nn/prepacked_weight.h"

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/test_matrix.h"

namespace pith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(FieldsOf, EveryFieldInOrder) {
  const GemmProblem problem = {.n = 1,
                               .k = 2,
                               .group_size = 3,
                               .bits = 4,
                               .has_zero_point = true,
                               .has_min = false,
                               .scale = GemmScale::kBf16,
                               .unit_size = 5,
                               .activation = GemmActivation::kFp8,
                               .activation_group = 6};
  EXPECT_THAT(FieldsOf(problem), ElementsAre(1, 2, 3, 4, 1, 0, 2, 5, 3, 6));
}

class PrepackedLinear : public testing::Test {
 protected:
  static std::vector<PrepackedPart> PartsOf(const std::vector<LinearSource>& sources) {
    std::vector<PrepackedPart> parts;
    for (const LinearSource& source : sources) parts.push_back({DescribeStorage(source), ShapeOf(source), source.bias});
    return parts;
  }
  absl::StatusOr<Linear> Again(const std::vector<PrepackedPart>& parts, const std::vector<PrepackedMatrix>& matrices) {
    std::vector<absl::Span<uint8_t>> bytes;
    ASSIGN_OR_RETURN(Linear linear, Linear::FromPrepacked(parts, matrices, context_, bytes));
    EXPECT_EQ(bytes.size(), matrices.size());
    for (size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_EQ(bytes[i].size(), matrices[i].bytes.size());
      std::copy(matrices[i].bytes.begin(), matrices[i].bytes.end(), bytes[i].begin());
    }
    return linear;
  }
  std::vector<float> Run(const Linear& linear) {
    const std::vector<uint16_t> rows = RandomActivations(2 * linear.in(), 5);
    std::vector<float> out(static_cast<size_t>(2 * linear.out()));
    linear.Run(context_, MakeInput(context_, linear, rows.data(), 2, linear.in()), 0, 2, out.data(), linear.out());
    return out;
  }
  ThreadPool pool_{2};
  const ComputeContext context_ = MakeComputeContext(&pool_, DetectIsa());
};

TEST_F(PrepackedLinear, IsTheLayerItCameFrom) {
  const TestMatrix q = RandomQuantized("q", 40, 64, 4, 32, TestOffset::kMin, 1),
                   k = RandomQuantized("k", 24, 64, 4, 32, TestOffset::kMin, 2), v = RandomDense("v", 20, 64, 3, DType::kF32);
  std::vector<float> bias(24);
  for (size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i);
  const std::vector<LinearSource> sources = {q.Source(), k.Source(bias), v.Source()};
  const auto linear = Linear::Load(sources, context_);
  ASSERT_TRUE(linear.ok());
  ASSERT_EQ(linear->matrices().size(), 2u);
  const auto again = Again(PartsOf(sources), linear->matrices());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Run(*again), Run(*linear));
  EXPECT_EQ(again->resident_bytes(), linear->resident_bytes());
  EXPECT_EQ(again->formats(), linear->formats());
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(again->data_path()[i].kernel, linear->data_path()[i].kernel);
    EXPECT_EQ(again->data_path()[i].scheme, linear->data_path()[i].scheme);
    EXPECT_EQ(again->data_path()[i].resident_bytes, linear->data_path()[i].resident_bytes);
  }
}

TEST_F(PrepackedLinear, OutlierColumnsAreAMatrixOfTheirOwn) {
  const TestMatrix q = RandomWithOutlierColumns("q", 40, 64, {1, 2, 60}, 1), k = RandomWithOutlierColumns("k", 24, 64, {1, 2, 60}, 2);
  const std::vector<LinearSource> sources = {q.Source(), k.Source()};
  const auto linear = Linear::Load(sources, context_);
  ASSERT_TRUE(linear.ok());
  const std::vector<PrepackedMatrix> matrices = linear->matrices();
  ASSERT_EQ(matrices.size(), 2u);
  EXPECT_EQ(matrices[1].problem.k, 3);
  const auto again = Again(PartsOf(sources), matrices);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Run(*again), Run(*linear));
  EXPECT_EQ(again->resident_bytes(), linear->resident_bytes());
  EXPECT_EQ(again->data_path()[1].outlier_columns, (std::vector<int32_t>{1, 2, 60}));
  const auto refusal = [&](const std::vector<PrepackedMatrix>& given) {
    return std::string(Again(PartsOf(sources), given).status().message());
  };
  EXPECT_THAT(refusal({matrices[0]}), HasSubstr("q: expected a prepacked matrix of outlier columns, found none"));
  PrepackedMatrix other = matrices[1];
  other.problem.k = 4;
  EXPECT_THAT(refusal({matrices[0], other}), HasSubstr("q: expected a matrix prepacked for gemm_bf16_bf16_f32__"));
}

// Whatever the description says, memory is taken for what the parts become here.
TEST_F(PrepackedLinear, ADescriptionOfAnythingElseIsRefused) {
  const TestMatrix q = RandomQuantized("q", 40, 64, 4, 32, TestOffset::kSymmetric, 1);
  const std::vector<LinearSource> sources = {q.Source()};
  const auto linear = Linear::Load(sources, context_);
  ASSERT_TRUE(linear.ok());
  const std::vector<PrepackedPart> parts = PartsOf(sources);
  const PrepackedMatrix good = linear->matrices()[0];
  const auto refusal = [&](const std::vector<PrepackedMatrix>& matrices) {
    std::vector<absl::Span<uint8_t>> bytes;
    const absl::Status status = Linear::FromPrepacked(parts, matrices, context_, bytes).status();
    return std::string(status.message());
  };
  EXPECT_EQ(refusal({good}), "");
  EXPECT_THAT(refusal({}), HasSubstr("q: expected more than 0 prepacked matrices, found no other"));
  EXPECT_THAT(refusal({good, good}), HasSubstr("found 2"));
  std::vector<PrepackedMatrix> bad(12, good);
  bad[0].kernel = "gemm_bf16_w4g_f32__scalar";
  bad[1].kernel = "none";
  bad[2].problem.n = 1 << 30;
  bad[3].problem.k = 32;
  bad[4].problem.group_size = 16;
  bad[5].problem.bits = 3;
  bad[6].problem.has_min = true;
  bad[7].problem.has_zero_point = true;
  bad[8].problem.scale = GemmScale::kI8;  // of no unit
  bad[9].problem.unit_size = 64;
  bad[10].problem.activation = GemmActivation::kBf16;
  bad[11].problem.activation_group = 0;
  for (size_t i = 0; i < bad.size(); ++i) EXPECT_THAT(refusal({bad[i]}), HasSubstr("q: ")) << i;
}

TEST_F(PrepackedLinear, ATableIsTheEmbeddingItCameFrom) {
  const TestMatrix table = RandomDense("t", 30, 24, 7, DType::kF16);
  const auto embedding = Embedding::LoadDense(table.Source(), context_);
  ASSERT_TRUE(embedding.ok());
  ASSERT_EQ(embedding->table().size(), 30u * 24 * 2);
  absl::Span<uint8_t> bytes;
  const Embedding again = Embedding::FromPrepacked(StorageOf(embedding->data_path()), context_, bytes);
  ASSERT_EQ(bytes.size(), embedding->table().size());
  std::copy(embedding->table().begin(), embedding->table().end(), bytes.begin());
  EXPECT_EQ(again.data_path().kernel, embedding->data_path().kernel);
  EXPECT_EQ(again.data_path().packing, "f16 rounded to bf16");
  EXPECT_EQ(again.resident_bytes(), embedding->resident_bytes());
  std::vector<float> a(2 * 24), b(2 * 24);
  embedding->Run(context_, {29, 3}, 1.5f, a.data(), 24);
  again.Run(context_, {29, 3}, 1.5f, b.data(), 24);
  EXPECT_EQ(a, b);
}

}  // namespace
}  // namespace pith
