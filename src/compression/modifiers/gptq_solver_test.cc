#include "compression/modifiers/gptq_solver.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

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

QuantizationArgs Args(int num_bits, bool symmetric, QuantizationStrategy strategy, int group_size = 0) {
  return {.num_bits = num_bits, .symmetric = symmetric, .strategy = strategy, .group_size = group_size};
}

GptqResult Solve(const TestMatrix& weight, const TestMatrix& hessian, const QuantizationArgs& args, const GptqOptions& options = {},
                 int threads = 1) {
  ThreadPool pool(threads);
  absl::StatusOr<GptqResult> result = SolveGptq(weight.view(), hessian.view(), args, DType::kBF16, options, pool);
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

absl::Status ErrorOf(const TestMatrix& weight, const TestMatrix& hessian, const QuantizationArgs& args, const GptqOptions& options = {}) {
  ThreadPool pool(2);
  return SolveGptq(weight.view(), hessian.view(), args, DType::kBF16, options, pool).status();
}

using Matrix64 = std::vector<std::vector<double>>;

Matrix64 Zeros(int64_t n) { return Matrix64(static_cast<size_t>(n), std::vector<double>(static_cast<size_t>(n))); }

// By Gauss and Jordan.
Matrix64 Inverse(Matrix64 a) {
  const size_t n = a.size();
  Matrix64 inverse = Zeros(static_cast<int64_t>(n));
  for (size_t i = 0; i < n; ++i) inverse[i][i] = 1;
  for (size_t i = 0; i < n; ++i) {
    const double pivot = a[i][i];
    for (size_t j = 0; j < n; ++j) {
      a[i][j] /= pivot;
      inverse[i][j] /= pivot;
    }
    for (size_t r = 0; r < n; ++r) {
      const double factor = a[r][i];
      if (r == i || factor == 0) continue;
      for (size_t j = 0; j < n; ++j) {
        a[r][j] -= factor * a[i][j];
        inverse[r][j] -= factor * inverse[i][j];
      }
    }
  }
  return inverse;
}

// Upper triangular u with u^T u = a.
Matrix64 UpperCholesky(const Matrix64& a) {
  const size_t n = a.size();
  Matrix64 u = Zeros(static_cast<int64_t>(n));
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i; j < n; ++j) {
      double sum = a[i][j];
      for (size_t k = 0; k < i; ++k) sum -= u[k][i] * u[k][j];
      u[i][j] = i == j ? std::sqrt(sum) : sum / u[i][i];
    }
  }
  return u;
}

// The paper's algorithm with its inverse, one column after the other, in double. `rtn` has the scales. Codes as stored.
std::vector<uint8_t> PlainGptq(const TestMatrix& weight, const TestMatrix& hessian, const QuantizedTensor& rtn, double damping,
                               bool activation_order) {
  const int64_t in = weight.cols;
  std::vector<int32_t> order(static_cast<size_t>(in));
  std::iota(order.begin(), order.end(), 0);
  if (activation_order) {
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return hessian.row(a)[a] > hessian.row(b)[b]; });
  }
  double mean = 0;
  int64_t live = 0;
  for (int64_t i = 0; i < in; ++i) mean += hessian.row(i)[i], live += hessian.row(i)[i] > 0;
  mean /= static_cast<double>(live);
  Matrix64 damped = Zeros(in);
  for (int64_t i = 0; i < in; ++i) {
    for (int64_t j = 0; j < in; ++j) damped[i][j] = hessian.row(order[i])[order[j]];
    damped[i][i] = (damped[i][i] == 0 ? mean : damped[i][i]) + damping * mean;
  }
  const Matrix64 u = UpperCholesky(Inverse(damped));
  std::vector<uint8_t> codes(static_cast<size_t>(weight.rows * in));
  for (int64_t o = 0; o < weight.rows; ++o) {
    std::vector<double> w(static_cast<size_t>(in));
    for (int64_t k = 0; k < in; ++k) w[k] = hessian.row(order[k])[order[k]] == 0 ? 0.0 : static_cast<double>(weight.row(o)[order[k]]);
    for (int64_t k = 0; k < in; ++k) {
      const int64_t group = o * rtn.num_groups() + order[k] / rtn.group_size;
      const double scale = rtn.scale[group], zero = rtn.zero_point.empty() ? rtn.default_zero_point() : rtn.zero_point[group];
      const double code = std::clamp(std::nearbyint(w[k] / scale + zero), 0.0, static_cast<double>((1 << rtn.bits) - 1));
      const double error = (w[k] - scale * (code - zero)) / u[k][k];
      for (int64_t j = k + 1; j < in; ++j) w[j] -= error * u[k][j];
      codes[o * in + order[k]] = static_cast<uint8_t>(code);
    }
  }
  return codes;
}

// What SolveGptq promises beyond the paper: a row that the nearest codes serve better keeps them.
int64_t KeepBetterRows(const TestMatrix& weight, const TestMatrix& hessian, const QuantizedTensor& rtn, QuantizedTensor& gptq) {
  int64_t kept = 0;
  const TestMatrix nearest = Dequantize(rtn), solved = Dequantize(gptq);
  for (int64_t o = 0; o < weight.rows; ++o) {
    if (PlainRowLoss(weight, nearest, hessian, o) >= PlainRowLoss(weight, solved, hessian, o)) continue;
    std::copy_n(&rtn.code[o * rtn.in], rtn.in, &gptq.code[o * rtn.in]);
    ++kept;
  }
  return kept;
}

QuantizedTensor Rtn(const TestMatrix& weight, const TestMatrix& hessian, const QuantizationArgs& args, const GptqOptions& options) {
  ThreadPool pool(1);
  std::vector<float> diagonal;
  for (int64_t i = 0; i < hessian.rows; ++i) diagonal.push_back(hessian.row(i)[i]);
  if (!options.weighted_search) diagonal.clear();
  return *QuantizeWeight(weight.view(), args, DType::kBF16, options.clip_search, pool, diagonal);
}

// The same codes as the paper's algorithm, over strategies, symmetry, orders and widths on both sides of a block of columns.
TEST(SolveGptq, EqualsThePaperColumnByColumn) {
  uint64_t seed = 1;
  for (const int64_t in : {1, 6, 64, 130, 300}) {
    for (const bool activation_order : {false, true}) {
      for (const QuantizationArgs& args : {Args(4, true, kChannel), Args(4, false, kChannel), Args(3, true, kTensor),
                                           Args(4, false, kGroup, in % 2 == 0 ? 2 : 1), Args(8, true, kGroup, static_cast<int>(in))}) {
        const TestMatrix weight = RandomMatrix(70, in, ++seed), hessian = PlainHessian(CorrelatedRows(2 * in + 3, in, seed));
        const GptqOptions options{.damping = 0.02, .activation_order = activation_order, .weighted_search = seed % 2 == 0};
        const GptqResult found = Solve(weight, hessian, args, options, 2);
        const QuantizedTensor rtn = Rtn(weight, hessian, args, options);
        QuantizedTensor expected = rtn;
        expected.code = PlainGptq(weight, hessian, rtn, 0.02, activation_order);
        EXPECT_EQ(found.rtn_rows, KeepBetterRows(weight, hessian, rtn, expected));
        EXPECT_EQ(found.weight.code, expected.code) << in << " " << activation_order << " " << seed;
        EXPECT_EQ(found.weight.scale, rtn.scale);
        EXPECT_EQ(found.weight.zero_point, rtn.zero_point);
        EXPECT_EQ(found.damping, 0.02);
        const double loss = PlainLoss(weight, Dequantize(expected), hessian), rtn_loss = PlainLoss(weight, Dequantize(rtn), hessian);
        EXPECT_NEAR(found.loss, loss, 1e-4 * loss);
        EXPECT_NEAR(found.rtn_loss, rtn_loss, 1e-4 * rtn_loss);
      }
    }
  }
}

// Smallest loss of row o over all codes.
double BestRowLoss(const TestMatrix& weight, const TestMatrix& hessian, QuantizedTensor quantized, int64_t o) {
  const int64_t in = weight.cols;
  double best = std::numeric_limits<double>::infinity();
  for (int64_t codes = 0; codes < int64_t{1} << (in * quantized.bits); ++codes) {
    for (int64_t i = 0; i < in; ++i) {
      quantized.code[o * in + i] = static_cast<uint8_t>(codes >> (i * quantized.bits) & ((1 << quantized.bits) - 1));
    }
    best = std::min(best, PlainRowLoss(weight, Dequantize(quantized), hessian, o));
  }
  return best;
}

// Two bits, up to four columns: never worse than the nearest codes and never better than the best of all codes.
RC_GTEST_PROP(SolveGptq, LiesBetweenTheBestCodesAndTheNearest, ()) {
  const int64_t in = *rc::gen::inRange(1, 5);
  const uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000000);
  const QuantizationArgs args = Args(2, *rc::gen::arbitrary<bool>(), kChannel);
  const GptqOptions options{.activation_order = *rc::gen::arbitrary<bool>(), .refit_scales = *rc::gen::arbitrary<bool>()};
  const TestMatrix weight = RandomMatrix(3, in, seed);
  const TestMatrix hessian = PlainHessian(CorrelatedRows(*rc::gen::inRange(1, 8), in, seed, 2));
  const GptqResult found = Solve(weight, hessian, args, options);
  const QuantizedTensor rtn = Rtn(weight, hessian, args, options);
  const TestMatrix nearest = Dequantize(rtn), solved = Dequantize(found.weight);
  for (int64_t o = 0; o < 3; ++o) {
    const double loss = PlainRowLoss(weight, solved, hessian, o), rtn_loss = PlainRowLoss(weight, nearest, hessian, o);
    const double slack = 1e-5 * rtn_loss + 1e-6 * PlainRowLoss(weight, TestMatrix(3, in), hessian, o);
    RC_ASSERT(loss <= rtn_loss + slack);
    RC_ASSERT(loss >= BestRowLoss(weight, hessian, found.weight, o) - slack);
  }
}

TEST(SolveGptq, LowersTheLossOfCorrelatedInputs) {
  const TestMatrix weight = RandomMatrix(96, 256, 11), hessian = PlainHessian(CorrelatedRows(1000, 256, 12));
  for (const QuantizationArgs& args :
       {Args(4, true, kGroup, 64), Args(4, false, kGroup, 64), Args(4, true, kChannel), Args(8, true, kChannel), Args(3, false, kTensor)}) {
    const GptqResult found = Solve(weight, hessian, args);
    EXPECT_LT(found.loss, 0.5 * found.rtn_loss) << args.num_bits << StrategyName(args.strategy);
    EXPECT_EQ(found.rtn_rows, 0);
    EXPECT_EQ(found.damping, 0.01);
    EXPECT_EQ(found.dead_columns, 0);
    EXPECT_EQ(found.refitted_rows, 0);
    EXPECT_EQ(found.weight.scale_dtype, DType::kBF16);
  }
}

// Where columns dominate, coding them first pays.
TEST(SolveGptq, ActivationOrderLowersTheLoss) {
  const TestMatrix weight = RandomMatrix(128, 256, 13), hessian = PlainHessian(CorrelatedRows(1000, 256, 14));
  const GptqResult ordered = Solve(weight, hessian, Args(3, true, kGroup, 32), {.activation_order = true});
  const GptqResult plain = Solve(weight, hessian, Args(3, true, kGroup, 32), {.activation_order = false});
  EXPECT_LT(ordered.loss, plain.loss);
  EXPECT_EQ(ordered.weight.scale, plain.weight.scale);  // static groups: the same, and contiguous
}

// In activation order it does not matter how the columns were numbered.
TEST(SolveGptq, ActivationOrderIgnoresTheNumberingOfColumns) {
  const int64_t in = 150;
  const TestMatrix weight = RandomMatrix(20, in, 15), hessian = PlainHessian(CorrelatedRows(400, in, 16));
  TestMatrix mixed_weight(20, in), mixed_hessian(in, in);
  const auto mixed = [&](int64_t i) { return i * 7 % in; };  // 7 and 150 share no factor
  for (int64_t i = 0; i < in; ++i) {
    for (int64_t o = 0; o < 20; ++o) mixed_weight.row(o)[i] = weight.row(o)[mixed(i)];
    for (int64_t j = 0; j < in; ++j) mixed_hessian.row(i)[j] = hessian.row(mixed(i))[mixed(j)];
  }
  const GptqOptions options{.clip_search = kNoClipSearch};
  const GptqResult one = Solve(weight, hessian, Args(4, true, kChannel), options);
  const GptqResult other = Solve(mixed_weight, mixed_hessian, Args(4, true, kChannel), options);
  EXPECT_EQ(one.weight.scale, other.weight.scale);
  for (int64_t o = 0; o < 20; ++o) {
    for (int64_t i = 0; i < in; ++i) ASSERT_EQ(other.weight.code[o * in + i], one.weight.code[o * in + mixed(i)]);
  }
}

TEST(SolveGptq, DiagonalHessianIsRoundingToNearest) {
  const TestMatrix weight = RandomMatrix(10, 140, 17);
  TestMatrix hessian(140, 140);
  for (int64_t i = 0; i < 140; ++i) hessian.row(i)[i] = 1.0f + static_cast<float>(i % 9);
  const QuantizationArgs args = Args(4, false, kGroup, 28);
  EXPECT_EQ(Solve(weight, hessian, args).weight.code, Rtn(weight, hessian, args, {}).code);
}

TEST(SolveGptq, SameBitsForAnyNumberOfThreads) {
  const TestMatrix weight = RandomMatrix(200, 384, 18), hessian = PlainHessian(CorrelatedRows(500, 384, 19));
  for (const QuantizationArgs& args : {Args(4, true, kGroup, 128), Args(3, false, kChannel)}) {
    const GptqResult one = Solve(weight, hessian, args, {.refit_scales = true}, 1);
    for (const int threads : {2, 3}) {
      const GptqResult other = Solve(weight, hessian, args, {.refit_scales = true}, threads);
      EXPECT_EQ(one.weight.code, other.weight.code);
      EXPECT_EQ(one.weight.scale, other.weight.scale);
      EXPECT_EQ(one.weight.zero_point, other.weight.zero_point);
      EXPECT_EQ(one.loss, other.loss);
      EXPECT_EQ(one.rtn_loss, other.rtn_loss);
    }
  }
}

TEST(SolveGptq, DeadColumnsBecomeZeroOrStayAsTheyAre) {
  TestMatrix rows = CorrelatedRows(200, 64, 20);
  for (int64_t r = 0; r < rows.rows; ++r) rows.row(r)[5] = rows.row(r)[40] = 0;
  const TestMatrix weight = RandomMatrix(30, 64, 21), hessian = PlainHessian(rows);
  const QuantizationArgs args = Args(4, true, kGroup, 32);
  const GptqResult zeroed = Solve(weight, hessian, args), kept = Solve(weight, hessian, args, {.zero_dead_columns = false});
  EXPECT_EQ(zeroed.dead_columns, 2);
  EXPECT_EQ(kept.dead_columns, 2);
  const QuantizedTensor rtn = Rtn(weight, hessian, args, {});
  for (int64_t o = 0; o < 30; ++o) {
    for (const int64_t i : {5, 40}) {
      EXPECT_EQ(zeroed.weight.code[o * 64 + i], 8);
      EXPECT_EQ(kept.weight.code[o * 64 + i], rtn.code[o * 64 + i]);
    }
  }
  EXPECT_LT(zeroed.loss, 0.5 * zeroed.rtn_loss);
  EXPECT_LT(kept.loss, 0.5 * kept.rtn_loss);
}

// One row, few rows, fewer rows than columns: the damping makes up for the rank.
TEST(SolveGptq, WorksOnTinyCalibrationSets) {
  const TestMatrix weight = RandomMatrix(40, 192, 22);
  for (const int64_t n : {1, 2, 20, 191}) {
    const TestMatrix hessian = PlainHessian(CorrelatedRows(n, 192, 23));
    for (const bool refit_scales : {false, true}) {
      const GptqResult found = Solve(weight, hessian, Args(4, true, kGroup, 64), {.refit_scales = refit_scales});
      EXPECT_LT(found.loss, 0.5 * found.rtn_loss) << n;
      EXPECT_EQ(found.damping, 0.01);
      // The weights are still themselves: feedback stays near a step.
      const TestMatrix solved = Dequantize(found.weight);
      double error = 0, signal = 0;
      for (size_t i = 0; i < weight.values.size(); ++i) {
        error += std::pow(static_cast<double>(weight.values[i]) - static_cast<double>(solved.values[i]), 2);
        signal += std::pow(static_cast<double>(weight.values[i]), 2);
      }
      EXPECT_LT(error, 0.05 * signal) << n;
    }
  }
}

TEST(SolveGptq, RankOneHessian) {
  const TestMatrix weight = RandomMatrix(8, 32, 24);
  TestMatrix hessian(32, 32);
  for (float& value : hessian.values) value = 1.0f;
  const GptqResult found = Solve(weight, hessian, Args(4, true, kChannel));
  // Sums of a row of weights: all but a step of the last columns can be made up for.
  EXPECT_LT(found.loss, 0.1 * found.rtn_loss);
}

TEST(FactorizeHessian, RaisesTheDampingUntilItHolds) {
  ThreadPool pool(2);
  // Eigenvalues 1.3 and -0.3 plus identity's share: a damping of 0.3 and more makes it definite.
  TestMatrix hessian(2, 2);
  hessian.values = {0.5f, 0.8f, 0.8f, 0.5f};
  const GptqFactors raised = *FactorizeHessian(hessian.view(), {.damping = 0.01}, pool);
  EXPECT_DOUBLE_EQ(raised.damping, 0.64);
  EXPECT_DOUBLE_EQ(raised.damping_term, 0.32);
  const GptqFactors zero = *FactorizeHessian(hessian.view(), {.damping = 0}, pool);
  EXPECT_DOUBLE_EQ(zero.damping, 1.0);  // 0.001 * 2^10, at most 1
  // Singular without damping: 0 is tried and refused.
  for (float& value : hessian.values) value = 1.0f;
  EXPECT_DOUBLE_EQ(FactorizeHessian(hessian.view(), {.damping = 0}, pool)->damping, 0.001);
  hessian.values = {1.0f, 0.5f, 0.5f, 1.0f};
  EXPECT_EQ(FactorizeHessian(hessian.view(), {.damping = 0}, pool)->damping, 0);
  hessian.values = {1.0f, 9.0f, 9.0f, 1.0f};
  const absl::Status status = FactorizeHessian(hessian.view(), {}, pool).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("expected a positive semidefinite matrix"));
}

// R R^T is the damped Hessian in the order of coding.
TEST(FactorizeHessian, FactorsMultiplyBack) {
  ThreadPool pool(2);
  const int64_t in = 37;
  const TestMatrix hessian = PlainHessian(CorrelatedRows(90, in, 25));
  const GptqFactors factors = *FactorizeHessian(hessian.view(), {.damping = 0.05}, pool);
  const absl::Span<const float> feedback = factors.feedback.as<float>();
  const auto r = [&](int64_t j, int64_t k) {
    return (j == k ? 1.0 : j < k ? static_cast<double>(feedback[j * in + k]) : 0.0) * std::sqrt(static_cast<double>(factors.pivot[k]));
  };
  for (int64_t i = 0; i + 1 < in; ++i) EXPECT_GE(factors.diagonal[factors.order[i]], factors.diagonal[factors.order[i + 1]]);
  for (int64_t i = 0; i < in; ++i) {
    for (int64_t j = 0; j < in; ++j) {
      double product = 0;
      for (int64_t k = 0; k < in; ++k) product += r(i, k) * r(j, k);
      const double expected = static_cast<double>(hessian.row(factors.order[i])[factors.order[j]]) + (i == j ? factors.damping_term : 0);
      ASSERT_NEAR(product, expected, 1e-5 * factors.diagonal[factors.order[0]]);
    }
  }
}

TEST(SolveGptq, FactorsServeAllLayersOfOneInput) {
  const TestMatrix hessian = PlainHessian(CorrelatedRows(100, 48, 26));
  ThreadPool pool(2);
  const GptqFactors factors = *FactorizeHessian(hessian.view(), {}, pool);
  for (const int64_t out : {3, 64, 65}) {
    const TestMatrix weight = RandomMatrix(out, 48, 27);
    const QuantizationArgs args = Args(4, true, kGroup, 16);
    EXPECT_EQ(SolveGptq(weight.view(), factors, args, DType::kBF16, {}, pool)->weight.code, Solve(weight, hessian, args).weight.code);
  }
}

TEST(SolveGptq, NamesWhatIsNotFinite) {
  TestMatrix weight = RandomMatrix(4, 32, 28), hessian = PlainHessian(CorrelatedRows(50, 32, 29));
  const QuantizationArgs args = Args(4, true, kGroup, 16);
  hessian.row(3)[7] = std::nanf("");
  EXPECT_EQ(ErrorOf(weight, hessian, args).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ErrorOf(weight, hessian, args).message(), "hessian[3][7]: expected a finite value, found nan");
  hessian = PlainHessian(CorrelatedRows(50, 32, 29));
  for (int64_t i = 0; i < 32; ++i) hessian.row(5)[i] = hessian.row(i)[5] = 0;
  for (const int64_t column : {5, 9}) {  // also in a dead column
    weight.row(2)[column] = std::numeric_limits<float>::infinity();
    const absl::Status status = ErrorOf(weight, hessian, args);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr("expected a finite value, found inf"));
    weight.row(2)[column] = 1.0f;
  }
}

TEST(SolveGptq, RefusesWhatItCannotDo) {
  const TestMatrix weight = RandomMatrix(4, 32, 30), hessian = PlainHessian(CorrelatedRows(50, 32, 31));
  const QuantizationArgs args = Args(4, true, kGroup, 16);
  EXPECT_EQ(ErrorOf(weight, PlainHessian(CorrelatedRows(9, 31, 1)), args).message(), "hessian: expected [32, 32], found [31, 31]");
  EXPECT_EQ(ErrorOf(weight, hessian, Args(4, true, kGroup, 12)).message(), "group_size: expected a divisor of in=32, found 12");
  const QuantizationArgs float8{.type = QuantizationType::kFloat, .strategy = kChannel};
  EXPECT_EQ(ErrorOf(weight, hessian, float8).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ErrorOf(weight, hessian, args, {.damping = -1}).message(), "damping: expected 0 to 1, found -1");
  EXPECT_EQ(ErrorOf(weight, hessian, args, {.damping = std::nan("")}).code(), absl::StatusCode::kInvalidArgument);
  const absl::Status dead = ErrorOf(weight, TestMatrix(32, 32), args);
  EXPECT_EQ(dead.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(dead.message(), "hessian: expected a column whose input was not always 0, found none of 32");
}

}  // namespace
}  // namespace pith
