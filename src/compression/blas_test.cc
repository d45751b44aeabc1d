#include "compression/blas.h"

#include <cmath>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "rapidcheck.h"
#include "rapidcheck/gtest.h"

namespace pith {
namespace {

// An entry of op(matrix).
float At(MatrixView<const float> matrix, Transpose transpose, int64_t r, int64_t c) {
  return transpose == Transpose::kYes ? matrix.row(c)[r] : matrix.row(r)[c];
}

RC_GTEST_PROP(Multiply, IsTheSumOfProducts, ()) {
  const int64_t m = *rc::gen::inRange(1, 20), n = *rc::gen::inRange(1, 20), k = *rc::gen::inRange(1, 20);
  const Transpose ta = *rc::gen::element(Transpose::kNo, Transpose::kYes), tb = *rc::gen::element(Transpose::kNo, Transpose::kYes);
  RandomStream random(*rc::gen::arbitrary<uint64_t>());
  std::vector<float> a(20 * 23), b(20 * 23), out(20 * 23), old;
  for (std::vector<float>* values : {&a, &b, &out}) {
    for (float& value : *values) value = random.Normal();
  }
  old = out;
  const MatrixView<const float> a_view(a.data(), ta == Transpose::kYes ? k : m, ta == Transpose::kYes ? m : k, 23);
  const MatrixView<const float> b_view(b.data(), tb == Transpose::kYes ? n : k, tb == Transpose::kYes ? k : n, 23);
  Multiply(-2.0f, a_view, ta, b_view, tb, 0.5f, {out.data(), m, n, 23});
  for (int64_t r = 0; r < 20; ++r) {
    for (int64_t c = 0; c < 23; ++c) {
      double expected = static_cast<double>(old[r * 23 + c]);
      if (r < m && c < n) {
        expected *= 0.5;
        for (int64_t i = 0; i < k; ++i)
          expected -= 2.0 * static_cast<double>(At(a_view, ta, r, i)) * static_cast<double>(At(b_view, tb, i, c));
      }
      RC_ASSERT(std::fabs(static_cast<double>(out[r * 23 + c]) - expected) < 1e-4);
    }
  }
}

TEST(MultiplyGram, FillsTheLowerTriangle) {
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  std::vector<float> out(9, -1.0f);
  MultiplyGram({rows.data(), 2, 3}, {out.data(), 3, 3});
  EXPECT_EQ(out, (std::vector<float>{17, -1, -1, 22, 29, -1, 27, 36, 45}));
}

TEST(FactorizeCholesky, HandComputed) {
  std::vector<double> matrix = {4, -7, -7, 2, 10, -7};  // [[4, 2], [2, 10]], rows 3 apart
  ThreadPool pool(1);
  ASSERT_TRUE(FactorizeCholesky({matrix.data(), 2, 2, 3}, pool));
  EXPECT_EQ(matrix, (std::vector<double>{2, -7, -7, 1, 3, -7}));
  std::vector<double> indefinite = {1, 0, 2, 1};
  EXPECT_FALSE(FactorizeCholesky({indefinite.data(), 2, 2}, pool));
}

// L L^T is the matrix, nothing above the diagonal is touched, and the threads do not show.
TEST(FactorizeCholesky, ByBlocks) {
  constexpr int64_t kSide = 600, kStride = 603;
  RandomStream random(4);
  std::vector<double> matrix(static_cast<size_t>(kSide * kStride), -7.0);
  for (int64_t i = 0; i < kSide; ++i) {
    for (int64_t j = 0; j < i; ++j) matrix[i * kStride + j] = static_cast<double>(random.Normal());
    matrix[i * kStride + i] = 100.0 + static_cast<double>(i);
  }
  const std::vector<double> original = matrix;
  std::vector<double> other = matrix;
  ThreadPool one(1), three(3);
  ASSERT_TRUE(FactorizeCholesky({matrix.data(), kSide, kSide, kStride}, one));
  ASSERT_TRUE(FactorizeCholesky({other.data(), kSide, kSide, kStride}, three));
  EXPECT_EQ(matrix, other);
  for (int64_t i = 0; i < kSide; ++i) {
    for (int64_t j = i + 1; j < kStride; ++j) ASSERT_EQ(matrix[i * kStride + j], -7.0);
    for (int64_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (int64_t k = 0; k <= j; ++k) sum += matrix[i * kStride + k] * matrix[j * kStride + k];
      ASSERT_NEAR(sum, original[i * kStride + j], 1e-9) << i << " " << j;
    }
  }
  // A pivot that fails in the last block.
  other = original;
  other[(kSide - 1) * kStride + kSide - 1] = -1;
  EXPECT_FALSE(FactorizeCholesky({other.data(), kSide, kSide, kStride}, three));
}

TEST(SolvePositiveDefinite, HandComputed) {
  std::vector<double> matrix = {4, 0, 2, 10}, b = {8, 22};
  ASSERT_TRUE(SolvePositiveDefinite({matrix.data(), 2, 2}, absl::MakeSpan(b)));
  EXPECT_NEAR(b[0], 1.0, 1e-12);
  EXPECT_NEAR(b[1], 2.0, 1e-12);
  matrix = {1, 0, 2, 1};
  EXPECT_FALSE(SolvePositiveDefinite({matrix.data(), 2, 2}, absl::MakeSpan(b)));
}

}  // namespace
}  // namespace pith
