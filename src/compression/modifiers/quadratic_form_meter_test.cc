#include "compression/modifiers/quadratic_form_meter.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "compression/modifiers/solver_test_fixture.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

std::vector<double> Measure(const TestMatrix& errors, const TestMatrix& gram, Isa isa, int threads, bool* uses_tiles = nullptr) {
  ThreadPool pool(threads);
  const QuadraticFormMeter meter(gram.view(), isa, pool);
  if (uses_tiles != nullptr) *uses_tiles = meter.uses_tiles();
  std::atomic<int64_t> calls = 0;
  const auto fill = [&](int64_t o, absl::Span<float> out) {
    ++calls;
    std::copy_n(errors.row(o), errors.cols, out.data());
  };
  const std::vector<double> forms = meter.Measure(errors.rows, fill, pool);
  EXPECT_EQ(calls, errors.rows);
  return forms;
}

// |difference| <= share * sum |e_i G_ij e_j|, against sums in double.
void ExpectForms(const TestMatrix& errors, const TestMatrix& gram, const std::vector<double>& found, double share) {
  ASSERT_EQ(found.size(), static_cast<size_t>(errors.rows));
  for (int64_t r = 0; r < errors.rows; ++r) {
    double form = 0, magnitude = 0;
    for (int64_t i = 0; i < errors.cols; ++i) {
      for (int64_t j = 0; j < errors.cols; ++j) {
        const double term = static_cast<double>(errors.row(r)[i]) * static_cast<double>(gram.row(i)[j]) *
                            static_cast<double>(errors.row(r)[j]);
        form += term;
        magnitude += std::fabs(term);
      }
    }
    ASSERT_NEAR(found[static_cast<size_t>(r)], form, share * magnitude) << r;
  }
}

// Widths that tiles take and others, with and without a whole chunk of columns; more rows than a job has.
TEST(QuadraticFormMeter, MeasuresForms) {
  for (const int64_t in : {1, 40, 32, 128, 160, 544}) {
    const TestMatrix gram = PlainHessian(CorrelatedRows(60, in, static_cast<uint64_t>(in)));
    const TestMatrix errors = RandomMatrix(in == 32 ? 600 : 30, in, 9);
    ExpectForms(errors, gram, Measure(errors, gram, Isa::kScalar, 1), 1e-5);
    ExpectForms(errors, gram, Measure(errors, gram, DetectIsa(), 2), 4.7e-5);
  }
}

TEST(QuadraticFormMeter, UsesTheTileUnit) {
  bool uses_tiles = true;
  const TestMatrix gram = PlainHessian(CorrelatedRows(60, 64, 1)), errors = RandomMatrix(3, 64, 2);
  Measure(errors, gram, Isa::kScalar, 1, &uses_tiles);
  EXPECT_FALSE(uses_tiles);
  Measure(errors, gram, DetectIsa(), 1, &uses_tiles);
  EXPECT_EQ(uses_tiles, DetectIsa() >= Isa::kAmx);
}

TEST(QuadraticFormMeter, SameBitsForAnyNumberOfThreads) {
  const TestMatrix gram = PlainHessian(CorrelatedRows(60, 96, 3)), errors = RandomMatrix(700, 96, 4);
  for (const Isa isa : {Isa::kScalar, DetectIsa()}) EXPECT_EQ(Measure(errors, gram, isa, 1), Measure(errors, gram, isa, 3));
}

TEST(QuadraticFormMeter, ErrorsOfZeroAreZero) {
  const TestMatrix gram = PlainHessian(CorrelatedRows(60, 64, 5)), errors(5, 64);
  EXPECT_EQ(Measure(errors, gram, DetectIsa(), 1), std::vector<double>(5));
  EXPECT_TRUE(Measure(TestMatrix(0, 64), gram, DetectIsa(), 1).empty());
}

}  // namespace
}  // namespace pith
