#include "compression/modifiers/smoothquant_solver.h"

#include <algorithm>
#include <cmath>

#include "compression/modifiers/solver_test_fixture.h"
#include "gtest/gtest.h"
#include "quantization/quantize_weight.h"
#include "rapidcheck.h"
#include "rapidcheck/gtest.h"

namespace pith {
namespace {

std::vector<float> MaxAbs(const TestMatrix& rows) {
  const std::vector<MatrixView<const float>> views = {rows.view()};
  return MaxAbsColumns(views);
}

struct Problem {
  Problem(int64_t in, std::vector<int64_t> outs, int64_t samples, uint64_t seed)
      : rows(CorrelatedRows(samples, in, seed)), max_abs(MaxAbs(rows)) {
    for (const int64_t out : outs) weights.push_back(RandomMatrix(out, in, ++seed));
    for (const TestMatrix& weight : weights) views.push_back(weight.view());
  }

  absl::StatusOr<SmoothQuantResult> Solve(const SmoothQuantOptions& options = {}, int threads = 1) const {
    ThreadPool pool(threads);
    return SolveSmoothQuant(max_abs, views, rows.view(), options, pool);
  }

  // The error of the header of rows [begin, end), product by product in double.
  double DirectError(const std::vector<float>& scales, int64_t begin, int64_t end) const {
    ThreadPool pool(1);
    std::vector<double> errors(static_cast<size_t>(rows.rows)), norms(static_cast<size_t>(rows.rows));
    for (const TestMatrix& weight : weights) {
      TestMatrix scaled = weight;
      for (int64_t o = 0; o < weight.rows; ++o) {
        for (int64_t i = 0; i < weight.cols; ++i) scaled.row(o)[i] *= scales[i];
      }
      const QuantizationArgs args{.strategy = QuantizationStrategy::kChannel};
      const TestMatrix approximation = Dequantize(*QuantizeWeight(scaled.view(), args, DType::kBF16, kNoClipSearch, pool));
      for (int64_t r = 0; r < rows.rows; ++r) {
        double largest = 0;
        for (int64_t i = 0; i < rows.cols; ++i) largest = std::max(largest, std::fabs(static_cast<double>(rows.row(r)[i]) / scales[i]));
        for (int64_t o = 0; o < weight.rows; ++o) {
          double exact = 0, difference = 0;
          for (int64_t i = 0; i < rows.cols; ++i) {
            const double x = rows.row(r)[i], step = largest / 127;
            exact += x * static_cast<double>(weight.row(o)[i]);
            if (step > 0) difference -= std::nearbyint(x / scales[i] / step) * step * static_cast<double>(approximation.row(o)[i]);
          }
          errors[r] += (exact + difference) * (exact + difference);
          norms[r] += exact * exact;
        }
      }
    }
    double error = 0;
    for (int64_t r = begin; r < end; ++r) error += errors[r] / norms[r] / static_cast<double>(end - begin);
    return error;
  }

  TestMatrix rows;
  std::vector<float> max_abs;
  std::vector<TestMatrix> weights;
  std::vector<MatrixView<const float>> views;
};

TEST(SmoothingScales, HandComputed) {
  const std::vector<float> input = {16.0f, 4.0f, 0.0f, 1.0f, 1e-9f}, weight = {0.25f, 1.0f, 1.0f, 0.0f, 1.0f};
  EXPECT_EQ(SmoothingScales(input, weight, 0.5), (std::vector<float>{8.0f, 2.0f, 1.0f, 1.0f, std::sqrt(1e-9f)}));
  EXPECT_EQ(SmoothingScales(input, weight, 1.0), (std::vector<float>{16.0f, 4.0f, 1.0f, 1.0f, 1e-5f}));
  EXPECT_EQ(SmoothingScales(input, weight, 0.0), (std::vector<float>{4.0f, 1.0f, 1.0f, 1.0f, 1.0f}));
}

TEST(MaxAbsColumns, IsOverAllLayers) {
  const std::vector<float> first = {1, -2, 0}, second = {-4, 1, 0, 3, 1, -0.5f};
  const std::vector<MatrixView<const float>> weights = {{first.data(), 1, 3}, {second.data(), 2, 3}};
  EXPECT_EQ(MaxAbsColumns(weights), (std::vector<float>{4, 2, 0.5f}));
}

// Layers and samples on both sides of a tile.
TEST(SolveSmoothQuant, ErrorsAreThoseOfTheOutputs) {
  const Problem problem(40, {130, 5}, 260, 1);
  const SmoothQuantResult found = *problem.Solve({.grid = 4}, 2);
  ASSERT_EQ(found.curve.size(), 6u);
  EXPECT_TRUE(found.curve[0].identity);
  const std::vector<float> max_abs_weight = MaxAbsColumns(problem.views);
  for (const SmoothQuantPoint& point : found.curve) {
    const std::vector<float> scales = point.identity ? std::vector<float>(40, 1.0f)
                                                     : SmoothingScales(problem.max_abs, max_abs_weight, point.alpha);
    const double direct = problem.DirectError(scales, 0, 260);
    EXPECT_NEAR(point.error, direct, 2e-3 * direct) << point.alpha;  // codes at ties
    EXPECT_LE(found.best.error, point.error);
  }
  // Outlier channels are what it is for.
  EXPECT_LT(found.best.error, 0.5 * found.curve[0].error);
  EXPECT_EQ(found.scales, SmoothingScales(problem.max_abs, max_abs_weight, found.best.alpha));
}

// The first token of a text has outputs a thousand times as large as the others' in real models.
TEST(SolveSmoothQuant, AGiantTokenDoesNotDecideForTheOthers) {
  Problem problem(40, {64}, 100, 3);
  for (int64_t i = 0; i < 4; ++i) problem.rows.row(0)[7 * i] = 3e4f;
  problem.max_abs = MaxAbs(problem.rows);
  const SmoothQuantResult found = *problem.Solve();
  EXPECT_LE(problem.DirectError(found.scales, 1, 100), problem.DirectError(std::vector<float>(40, 1.0f), 1, 100));
}

// As for v_proj to o_proj with two query heads of 8 per key head.
TEST(SolveSmoothQuant, TiedColumnsShareTheirScale) {
  const Problem problem(32, {40}, 60, 6);
  SmoothQuantOptions options{.alpha = 0.5};
  for (int32_t i = 0; i < 32; ++i) options.tied_columns.push_back(i / 16 * 8 + i % 8);
  const SmoothQuantResult found = *problem.Solve(options);
  EXPECT_NE(found.scales[0], found.scales[1]);
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(found.scales[i], found.scales[i / 16 * 16 + i % 8]);
  const std::vector<float> weight = MaxAbsColumns(problem.views);
  const float input = std::max(problem.max_abs[2], problem.max_abs[10]), column = std::max(weight[2], weight[10]);
  EXPECT_EQ(found.scales[2], SmoothingScales({&input, 1}, {&column, 1}, 0.5)[0]);
  const double direct = problem.DirectError(found.scales, 0, 60);
  EXPECT_NEAR(found.best.error, direct, 2e-3 * direct);
  EXPECT_FALSE(problem.Solve({.tied_columns = {0, 1}}).ok());
}

TEST(SolveSmoothQuant, AGivenAlphaIsTaken) {
  const Problem problem(24, {9}, 30, 2);
  const SmoothQuantResult found = *problem.Solve({.alpha = 0.8});
  EXPECT_EQ(found.scales, SmoothingScales(problem.max_abs, MaxAbsColumns(problem.views), 0.8));
  EXPECT_EQ(found.best.alpha, 0.8);
  EXPECT_FALSE(found.best.identity);
  ASSERT_EQ(found.curve.size(), 2u);
  EXPECT_GT(found.curve[1].error, 0);
  // It needs no rows.
  ThreadPool pool(1);
  const absl::StatusOr<SmoothQuantResult> without = SolveSmoothQuant(problem.max_abs, problem.views, {}, {.alpha = 0.8}, pool);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->scales, found.scales);
  EXPECT_EQ(without->best.error, 0);
}

RC_GTEST_PROP(SolveSmoothQuant, IsNeverWorseThanNoSmoothing, ()) {
  const Problem problem(*rc::gen::element<int64_t>(1, 8, 24), {*rc::gen::inRange<int64_t>(1, 10)}, *rc::gen::inRange<int64_t>(1, 20),
                        *rc::gen::inRange<uint64_t>(0, 1000000));
  const SmoothQuantResult found = *problem.Solve();
  RC_ASSERT(found.curve.size() == 22u);
  RC_ASSERT(found.best.error <= found.curve[0].error);
  for (const float scale : found.scales) RC_ASSERT(scale >= 1e-5f && std::isfinite(scale));
}

TEST(SolveSmoothQuant, SameBitsForAnyNumberOfThreads) {
  const Problem problem(48, {200, 30}, 300, 3);
  const SmoothQuantResult one = *problem.Solve({.grid = 3}, 1), three = *problem.Solve({.grid = 3}, 3);
  EXPECT_EQ(one.scales, three.scales);
  for (size_t i = 0; i < one.curve.size(); ++i) EXPECT_EQ(one.curve[i].error, three.curve[i].error);
}

TEST(SolveSmoothQuant, RefusesWhatDoesNotFit) {
  const Problem problem(16, {4}, 20, 5);
  const auto message = [](const Problem& bad, const SmoothQuantOptions& options = {}) {
    const absl::StatusOr<SmoothQuantResult> result = bad.Solve(options);
    EXPECT_FALSE(result.ok());
    return std::string(result.status().message());
  };
  EXPECT_EQ(message(problem, {.grid = 0}), "grid: expected at least 1, found 0");
  EXPECT_EQ(message(problem, {.alpha = 1.5}), "alpha: expected 0 to 1, found 1.5");
  Problem bad = problem;
  bad.views.clear();
  EXPECT_EQ(message(bad), "weights: expected at least one, found none");
  bad = problem;
  bad.views[0].cols = 15;
  EXPECT_EQ(message(bad), "weights[0]: expected in=16, found 15");
  bad = problem;
  bad.max_abs[3] = std::nanf("");
  EXPECT_EQ(message(bad), "max_abs_input[3]: expected a finite number >= 0, found nan");
  bad = problem;
  bad.rows.row(7)[2] = std::nanf("");
  EXPECT_EQ(message(bad), "rows[7]: expected finite values");
  bad = problem;
  bad.rows.rows = 0;
  EXPECT_EQ(message(bad), "rows: expected some to search alpha with, found none");
  Problem poisoned(16, {4}, 20, 5);
  poisoned.weights[0].row(2)[3] = std::nanf("");
  EXPECT_EQ(poisoned.Solve().status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace pith
