#include "compression/modifiers/hessian.h"

#include <cmath>
#include <limits>

#include "compression/modifiers/solver_test_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBlockRows = HessianAccumulator::kBlockRows;

std::vector<float> Values(const Tensor& tensor) { return {tensor.as<float>().begin(), tensor.as<float>().end()}; }

// By BLAS, and by the best instruction set of this CPU, which may have a tile unit.
class HessianAccumulatorTest : public ::testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(Isas, HessianAccumulatorTest, ::testing::Values(Isa::kScalar, DetectIsa()),
                         [](const auto& info) { return absl::StrCat(info.index == 0 ? "blas" : "best_", IsaName(info.param)); });

// Fed in pieces of the given sizes, over and over.
std::vector<float> Accumulate(const TestMatrix& rows, const std::vector<int64_t>& pieces, int threads, Isa isa) {
  ThreadPool pool(threads);
  HessianAccumulator accumulator(rows.cols, isa);
  int64_t begin = 0;
  for (size_t i = 0; begin < rows.rows; ++i) {
    const int64_t count = std::min(pieces[i % pieces.size()], rows.rows - begin);
    accumulator.Add({rows.row(begin), count, rows.cols}, pool);
    begin += count;
  }
  EXPECT_EQ(accumulator.num_rows(), rows.rows);
  return Values(*accumulator.Hessian(pool));
}

TEST_P(HessianAccumulatorTest, HandComputed) {
  const std::vector<float> rows = {1, 2, 3, -1, 0, 1};
  ThreadPool pool(1);
  HessianAccumulator accumulator(3, GetParam());
  accumulator.Add({rows.data(), 2, 3}, pool);
  EXPECT_EQ(Values(*accumulator.Hessian(pool)), (std::vector<float>{2, 2, 2, 2, 4, 6, 2, 6, 10}));
  accumulator.Add({rows.data(), 1, 3}, pool);  // rows may follow
  accumulator.Add({rows.data() + 3, 1, 3}, pool);
  EXPECT_EQ(Values(*accumulator.Hessian(pool)), (std::vector<float>{2, 2, 2, 2, 4, 6, 2, 6, 10}));
}

// Widths below, at and above the tiles' sizes, odd ones among them.
TEST_P(HessianAccumulatorTest, IsTheMeanOfOuterProducts) {
  for (const int64_t in : {1, 5, 16, 255, 256, 257, 530}) {
    const TestMatrix rows = CorrelatedRows(40, in, static_cast<uint64_t>(in));
    const TestMatrix expected = PlainHessian(rows);
    const std::vector<float> found = Accumulate(rows, {7}, 2, GetParam());
    for (int64_t i = 0; i < in; ++i) {
      for (int64_t j = 0; j < in; ++j) {
        // 3 * 2^-16 for what the tile unit leaves out.
        const float bound = 5e-5f * std::sqrt(expected.row(i)[i] * expected.row(j)[j]);
        ASSERT_NEAR(found[i * in + j], expected.row(i)[j], bound) << in << " " << i << " " << j;
        ASSERT_EQ(found[i * in + j], found[j * in + i]);
      }
    }
  }
}

TEST_P(HessianAccumulatorTest, SameBitsHoweverRowsAreCutAndShared) {
  const TestMatrix rows = CorrelatedRows(2 * kBlockRows + 77, 300, 3);
  const std::vector<float> expected = Accumulate(rows, {rows.rows}, 1, GetParam());
  EXPECT_EQ(Accumulate(rows, {rows.rows}, 2, GetParam()), expected);
  EXPECT_EQ(Accumulate(rows, {1000, 3, kBlockRows, 500}, 3, GetParam()), expected);
  EXPECT_EQ(Accumulate(rows, {kBlockRows}, 2, GetParam()), expected);
}

TEST_P(HessianAccumulatorTest, ReadsRowsByTheirStride) {
  const TestMatrix padded = CorrelatedRows(kBlockRows + 1, 20, 4);
  TestMatrix dense(padded.rows, 13);
  for (int64_t r = 0; r < padded.rows; ++r) std::copy(padded.row(r), padded.row(r) + 13, dense.row(r));
  ThreadPool pool(1);
  HessianAccumulator accumulator(13, GetParam());
  accumulator.Add({padded.values.data(), padded.rows, 13, 20}, pool);
  EXPECT_EQ(Values(*accumulator.Hessian(pool)), Accumulate(dense, {dense.rows}, 1, GetParam()));
}

TEST_P(HessianAccumulatorTest, MergeIsTheMeanOverAllRows) {
  const TestMatrix rows = CorrelatedRows(90, 40, 5);
  ThreadPool pool(2);
  HessianAccumulator all(40, GetParam()), left(40, GetParam()), right(40, GetParam()), none(40, GetParam());
  all.Add(rows.view(), pool);
  left.Add({rows.row(0), 20, 40}, pool);
  right.Add({rows.row(20), 70, 40}, pool);
  left.Merge(right, pool);
  left.Merge(none, pool);
  EXPECT_EQ(left.num_rows(), 90);
  const std::vector<float> expected = Values(*all.Hessian(pool)), found = Values(*left.Hessian(pool));
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4f + 1e-5f * std::fabs(expected[i]));
}

// In f32 the first blocks would swallow what the late rows add.
TEST_P(HessianAccumulatorTest, LateSmallRowsCount) {
  const std::vector<float> large(static_cast<size_t>(kBlockRows), 1.0f), small(static_cast<size_t>(kBlockRows), 0x1p-14f);
  ThreadPool pool(1);
  HessianAccumulator accumulator(1, GetParam());
  accumulator.Add({large.data(), kBlockRows, 1}, pool);
  for (int i = 0; i < 4095; ++i) accumulator.Add({small.data(), kBlockRows, 1}, pool);
  const double expected = 2.0 * (1.0 + 4095 * 0x1p-28) / 4096;
  EXPECT_EQ((*accumulator.Hessian(pool)).as<float>()[0], static_cast<float>(expected));
}

TEST_P(HessianAccumulatorTest, RefusesNoRowsAndValuesThatAreNotFinite) {
  ThreadPool pool(1);
  HessianAccumulator accumulator(4, GetParam());
  const absl::Status none = accumulator.Hessian(pool).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(none.message(), "hessian: expected calibration rows of 4 columns, found none");
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    HessianAccumulator poisoned(4, GetParam());
    const std::vector<float> rows = {1, 2, bad, 4};
    poisoned.Add({rows.data(), 1, 4}, pool);
    const absl::Status status = poisoned.Hessian(pool).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr("calibration rows, column 2: expected finite values"));
  }
}

TEST(QuadraticForms, AreTheOutputErrors) {
  for (const int64_t in : {3, 256, 300, 700}) {
    const TestMatrix rows = CorrelatedRows(50, in, 6), errors = RandomMatrix(70, in, 7);
    const TestMatrix hessian = PlainHessian(rows);
    const auto fill_error = [&](int64_t o, absl::Span<float> error) { std::copy(errors.row(o), errors.row(o) + in, error.begin()); };
    ThreadPool one(1), two(2);
    const std::vector<double> forms = QuadraticForms(70, hessian.view(), fill_error, one);
    EXPECT_EQ(forms, QuadraticForms(70, hessian.view(), fill_error, two));
    for (int64_t o = 0; o < 70; ++o) {
      double squares = 0;
      for (int64_t r = 0; r < rows.rows; ++r) {
        double output = 0;
        for (int64_t i = 0; i < in; ++i) output += static_cast<double>(errors.row(o)[i]) * static_cast<double>(rows.row(r)[i]);
        squares += output * output;
      }
      ASSERT_NEAR(forms[static_cast<size_t>(o)], squares * 2 / 50, 1e-5 * squares);
    }
  }
}

TEST(CheckHessian, NamesTheFirstBadEntry) {
  TestMatrix hessian = PlainHessian(CorrelatedRows(5, 6, 8));
  EXPECT_TRUE(CheckHessian("h", hessian.view(), 6).ok());
  EXPECT_EQ(CheckHessian("h", hessian.view(), 5).message(), "h: expected [5, 5], found [6, 6]");
  hessian.row(4)[4] = -1.0f;
  EXPECT_EQ(CheckHessian("h", hessian.view(), 6).message(), "h[4][4]: expected a square, found -1");
  hessian.row(3)[5] = std::nanf("");
  EXPECT_EQ(CheckHessian("h", hessian.view(), 6).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(CheckHessian("h", hessian.view(), 6).message(), "h[3][5]: expected a finite value, found nan");
}

}  // namespace
}  // namespace pith
