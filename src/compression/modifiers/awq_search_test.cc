#include "compression/modifiers/awq_search.h"

#include <cmath>

#include "compression/modifiers/solver_test_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "quantization/quantize_weight.h"
#include "rapidcheck.h"
#include "rapidcheck/gtest.h"

namespace pith {
namespace {

using ::testing::HasSubstr;
using enum QuantizationStrategy;

std::vector<float> MeanAbs(const TestMatrix& rows) {
  std::vector<double> sums(static_cast<size_t>(rows.cols));
  for (int64_t r = 0; r < rows.rows; ++r) {
    for (int64_t i = 0; i < rows.cols; ++i) sums[i] += static_cast<double>(std::fabs(rows.row(r)[i]));
  }
  std::vector<float> means;
  for (const double sum : sums) means.push_back(static_cast<float>(sum / static_cast<double>(rows.rows)));
  return means;
}

struct Problem {
  Problem(int64_t in, std::vector<int64_t> outs, int64_t samples, uint64_t seed)
      : rows(CorrelatedRows(samples, in, seed)), gram(PlainHessian(rows)), mean_abs(MeanAbs(rows)) {
    for (const int64_t out : outs) weights.push_back(RandomMatrix(out, in, ++seed));
    for (const TestMatrix& weight : weights) views.push_back(weight.view());
  }

  absl::StatusOr<AwqResult> Search(const QuantizationArgs& args, const AwqOptions& options = {}, int threads = 1) const {
    ThreadPool pool(threads);
    return SearchAwqScales(mean_abs, views, gram.view(), args, options, pool);
  }

  // (2/n) sum ||X (W - Q(W s) / s)^T||^2, row of X by row of X.
  double DirectError(const std::vector<float>& scales, const QuantizationArgs& args) const {
    ThreadPool pool(1);
    double error = 0;
    for (const TestMatrix& weight : weights) {
      TestMatrix scaled = weight;
      for (int64_t o = 0; o < weight.rows; ++o) {
        for (int64_t i = 0; i < weight.cols; ++i) scaled.row(o)[i] *= scales[i];
      }
      const TestMatrix approximation = Dequantize(*QuantizeWeight(scaled.view(), args, DType::kBF16, kNoClipSearch, pool));
      for (int64_t r = 0; r < rows.rows; ++r) {
        for (int64_t o = 0; o < weight.rows; ++o) {
          double output = 0;
          for (int64_t i = 0; i < weight.cols; ++i) {
            const double difference = static_cast<double>(weight.row(o)[i]) - static_cast<double>(approximation.row(o)[i]) / scales[i];
            output += difference * static_cast<double>(rows.row(r)[i]);
          }
          error += output * output;
        }
      }
    }
    return error * 2 / static_cast<double>(rows.rows);
  }

  TestMatrix rows, gram;
  std::vector<float> mean_abs;
  std::vector<TestMatrix> weights;
  std::vector<MatrixView<const float>> views;
};

TEST(AwqScales, HandComputed) {
  const std::vector<float> input = {4.0f, 1.0f, 0.0f}, weight = {0.25f, 1.0f, 0.5f};
  // r = 1: 4 and 1, less 1e-4 of them, over 2; a channel without input keeps 1.
  std::vector<float> scales = AwqScales(input, weight, 1.0);
  EXPECT_NEAR(scales[0], 2.0, 1e-4);
  EXPECT_NEAR(scales[1], 0.5, 1e-4);
  EXPECT_EQ(scales[2], 1.0f);
  // r = 0.5: 2 / 0.5 and 1 / 1; r = 0: 1 / 0.25 and 1 / 1.
  scales = AwqScales(input, weight, 0.5);
  EXPECT_NEAR(scales[0], 2.0, 1e-3);
  EXPECT_NEAR(scales[1], 0.5, 1e-3);
  scales = AwqScales(input, weight, 0.0);
  EXPECT_NEAR(scales[0], 2.0, 1e-3);
  // Of the input alone: 2 and 1 over sqrt(2).
  scales = AwqScales(input, {}, 0.5);
  EXPECT_NEAR(scales[0], std::sqrt(2.0), 1e-6);
  EXPECT_NEAR(scales[1], std::sqrt(0.5), 1e-6);
  EXPECT_EQ(scales[2], 1.0f);
}

TEST(NormalizedWeightMeans, HandComputed) {
  const std::vector<float> first = {1, -2, 0.5f, 0.25f}, second = {4, 1, 0, 0, -3, 3, 1, 2};
  const std::vector<MatrixView<const float>> weights = {{first.data(), 1, 4}, {second.data(), 2, 4}};
  const std::vector<float> groups = NormalizedWeightMeans(weights, 2), whole = NormalizedWeightMeans(weights, 4);
  EXPECT_NEAR(groups[0], (0.5 + 1 + 1) / 3, 1e-5);
  EXPECT_NEAR(groups[1], (1 + 0.25 + 1) / 3, 1e-5);
  EXPECT_NEAR(groups[2], (1 + 0 + 0.5) / 3, 1e-5);
  EXPECT_NEAR(groups[3], (0.5 + 0 + 1) / 3, 1e-5);
  EXPECT_NEAR(whole[3], (0.125 + 0 + 2.0 / 3) / 3, 1e-5);
}

// The errors along the curve are those of the outputs, and the result is the first of the smallest.
TEST(SearchAwqScales, ErrorsAreThoseOfTheOutputs) {
  for (const bool symmetric : {true, false}) {
    const Problem problem(64, {20, 7}, 50, 1);
    const QuantizationArgs args{.num_bits = 3, .symmetric = symmetric, .strategy = kGroup, .group_size = 16};
    const AwqResult found = *problem.Search(args, {.grid = 5}, 2);
    ASSERT_EQ(found.curve.size(), 7u);
    EXPECT_TRUE(found.curve[0].identity);
    EXPECT_EQ(found.curve[6].ratio, 1.0);
    const std::vector<float> weight_means = NormalizedWeightMeans(problem.views, 16);
    for (const AwqPoint& point : found.curve) {
      const std::vector<float> scales = point.identity ? std::vector<float>(64, 1.0f)
                                                       : AwqScales(problem.mean_abs, weight_means, point.ratio);
      const double direct = problem.DirectError(scales, args);
      EXPECT_NEAR(point.error, direct, 1e-4 * direct) << point.ratio;
      EXPECT_LE(found.best.error, point.error);
    }
    const double direct = problem.DirectError(found.scales, args);
    EXPECT_NEAR(found.best.error, direct, 1e-4 * direct);
    EXPECT_FALSE(found.best.identity);
    EXPECT_LT(found.best.error, 0.9 * found.curve[0].error);
  }
}

TEST(SearchAwqScales, DuoScalingDecidesWhichScalesAreTried) {
  const Problem problem(64, {40}, 60, 8);
  const QuantizationArgs args{.num_bits = 3, .strategy = kGroup, .group_size = 16};
  const std::vector<float> weight_means = NormalizedWeightMeans(problem.views, 16);
  const AwqResult off = *problem.Search(args, {.grid = 8, .duo_scaling = DuoScaling::kOff});
  ASSERT_EQ(off.curve.size(), 9u);
  for (size_t i = 1; i <= 8; ++i) {
    EXPECT_FALSE(off.curve[i].duo);
    const double direct = problem.DirectError(AwqScales(problem.mean_abs, {}, static_cast<double>(i) / 8), args);
    EXPECT_NEAR(off.curve[i].error, direct, 1e-4 * direct) << i;
  }
  const AwqResult on = *problem.Search(args, {.grid = 8}), half = *problem.Search(args, {.grid = 4});
  const AwqResult both = *problem.Search(args, {.grid = 8, .duo_scaling = DuoScaling::kBoth});
  ASSERT_EQ(both.curve.size(), 10u);
  for (size_t i = 1; i <= 4; ++i) EXPECT_EQ(both.curve[i].error, off.curve[2 * i].error);
  for (size_t i = 0; i <= 4; ++i) {
    EXPECT_TRUE(both.curve[5 + i].duo);
    EXPECT_EQ(both.curve[5 + i].error, on.curve[1 + 2 * i].error);
  }
  EXPECT_LE(both.best.error, half.best.error);
  EXPECT_EQ(problem.Search(args, {.grid = 1, .duo_scaling = DuoScaling::kBoth})->curve.size(), 4u);
}

RC_GTEST_PROP(SearchAwqScales, IsNeverWorseThanNoScaling, ()) {
  const uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000000);
  const Problem problem(*rc::gen::element<int64_t>(1, 8, 24), {*rc::gen::inRange<int64_t>(1, 10)}, *rc::gen::inRange<int64_t>(1, 20), seed);
  const QuantizationArgs args{
      .num_bits = *rc::gen::inRange(2, 9), .symmetric = *rc::gen::arbitrary<bool>(), .strategy = *rc::gen::element(kChannel, kTensor)};
  const AwqResult found = *problem.Search(args);
  RC_ASSERT(found.curve.size() == 22u);
  RC_ASSERT(found.best.error <= found.curve[0].error);
  for (const float scale : found.scales) RC_ASSERT(scale > 0 && std::isfinite(scale));
  const double direct = problem.DirectError(found.scales, args);
  const double identity = problem.DirectError(std::vector<float>(found.scales.size(), 1.0f), args);
  RC_ASSERT(direct <= identity * (1 + 1e-4) + 1e-9 * problem.gram.values[0]);
}

TEST(SearchAwqScales, SameBitsForAnyNumberOfThreads) {
  const Problem problem(96, {150, 30}, 40, 2);
  const QuantizationArgs args{.num_bits = 4, .strategy = kGroup, .group_size = 32};
  const AwqResult one = *problem.Search(args, {.clip_search = ClipSearch()}, 1);
  const AwqResult three = *problem.Search(args, {.clip_search = ClipSearch()}, 3);
  EXPECT_EQ(one.scales, three.scales);
  for (size_t i = 0; i < one.curve.size(); ++i) EXPECT_EQ(one.curve[i].error, three.curve[i].error);
}

TEST(SearchAwqScales, ClipSearchAndFloatCodes) {
  const Problem problem(64, {40}, 60, 3);
  const QuantizationArgs args{.num_bits = 3, .strategy = kGroup, .group_size = 16};
  EXPECT_LT(problem.Search(args, {.clip_search = ClipSearch()})->best.error, problem.Search(args)->best.error);
  const QuantizationArgs float8{.type = QuantizationType::kFloat, .strategy = kChannel};
  const AwqResult found = *problem.Search(float8);
  EXPECT_LE(found.best.error, found.curve[0].error);
}

TEST(SearchAwqScales, DeadChannelsAreLeftAlone) {
  Problem problem(32, {10}, 30, 4);
  for (int64_t r = 0; r < 30; ++r) problem.rows.row(r)[9] = 0;
  problem.gram = PlainHessian(problem.rows);
  problem.mean_abs = MeanAbs(problem.rows);
  const AwqResult found = *problem.Search({.num_bits = 3, .strategy = kChannel});
  EXPECT_FALSE(found.best.identity);
  EXPECT_EQ(found.scales[9], 1.0f);
}

// As for v_proj to o_proj with two query heads of 8 per key head.
TEST(SearchAwqScales, TiedColumnsShareTheirScale) {
  const Problem problem(32, {40}, 60, 6);
  const QuantizationArgs args{.num_bits = 3, .strategy = kChannel};
  AwqOptions options;
  for (int32_t i = 0; i < 32; ++i) options.tied_columns.push_back(i / 16 * 8 + i % 8);
  const AwqResult found = *problem.Search(args, options);
  EXPECT_FALSE(found.best.identity);
  EXPECT_NE(found.scales[0], found.scales[1]);
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(found.scales[i], found.scales[i / 16 * 16 + i % 8]);
  const double direct = problem.DirectError(found.scales, args);
  EXPECT_NEAR(found.best.error, direct, 1e-4 * direct);
  // Tied to itself alone a column is free.
  for (int32_t i = 0; i < 32; ++i) options.tied_columns[static_cast<size_t>(i)] = 31 - i;
  EXPECT_EQ(problem.Search(args, options)->scales, problem.Search(args)->scales);
}

TEST(SearchAwqScales, RefusesWhatDoesNotFit) {
  const Problem problem(32, {4}, 20, 5);
  const QuantizationArgs args{.num_bits = 4, .strategy = kGroup, .group_size = 16};
  const auto message = [](const Problem& bad, const QuantizationArgs& bad_args, const AwqOptions& options = {}) {
    const absl::StatusOr<AwqResult> result = bad.Search(bad_args, options);
    EXPECT_FALSE(result.ok());
    return std::string(result.status().message());
  };
  EXPECT_EQ(message(problem, args, {.grid = 0}), "grid: expected at least 1, found 0");
  EXPECT_EQ(message(problem, args, {.tied_columns = {0, 1}}), "tied_columns: expected a number per column, in=32, found 2");
  EXPECT_EQ(message(problem, args, {.tied_columns = std::vector<int32_t>(32, 32)}), "tied_columns[0]: expected 0 to 31, found 32");
  EXPECT_THAT(message(problem, {.num_bits = 4, .strategy = kGroup, .group_size = 12}), HasSubstr("expected a divisor of in=32"));
  Problem bad = problem;
  bad.views.clear();
  EXPECT_EQ(message(bad, args), "weights: expected at least one, found none");
  bad = problem;
  bad.views[0].cols = 31;
  EXPECT_EQ(message(bad, args), "weights[0]: expected in=32, found 31");
  bad = problem;
  bad.mean_abs[3] = -1;
  EXPECT_EQ(message(bad, args), "mean_abs_input[3]: expected a finite number >= 0, found -1");
  bad = problem;
  bad.gram.values[33] = std::nanf("");
  EXPECT_EQ(message(bad, args), "gram[1][1]: expected a finite value, found nan");
  Problem poisoned(32, {4}, 20, 5);
  poisoned.weights[0].row(2)[3] = std::nanf("");
  EXPECT_EQ(poisoned.Search(args).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace pith
