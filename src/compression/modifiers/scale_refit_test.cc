#include "compression/modifiers/scale_refit.h"

#include <cmath>

#include "compression/modifiers/solver_test_fixture.h"
#include "gtest/gtest.h"
#include "quantization/quantize_weight.h"
#include "rapidcheck.h"
#include "rapidcheck/gtest.h"

namespace pith {
namespace {

using enum QuantizationStrategy;

QuantizedTensor Quantize(const TestMatrix& weight, const QuantizationArgs& args, DType scale_dtype) {
  ThreadPool pool(1);
  return *QuantizeWeight(weight.view(), args, scale_dtype, kNoClipSearch, pool);
}

ScaleRefit Refit(const TestMatrix& weight, const TestMatrix& hessian, double damping_term, QuantizedTensor& quantized, int threads = 1) {
  ThreadPool pool(threads);
  return RefitScales(weight.view(), hessian.view(), damping_term, quantized, pool);
}

// One group: the scale is the quotient of two sums.
TEST(RefitScales, HandComputed) {
  TestMatrix weight(1, 3), hessian(3, 3);
  weight.values = {1.0f, 2.25f, -3.0f};
  hessian.values = {2, 0, 0, 0, 1, 0, 0, 0, 1};
  QuantizedTensor quantized{.out = 1, .in = 3, .bits = 4, .group_size = 3, .code = {9, 10, 5}, .scale = {0.5f}};  // 1, 2, -3
  const ScaleRefit refit = Refit(weight, hessian, 0, quantized);
  // (2 * 1 * 1 + 2.25 * 2 + 3 * 3) / (2 + 4 + 9)
  EXPECT_NEAR(quantized.scale[0], 15.5f / 15.0f, 1e-5);
  EXPECT_EQ(refit.rows, 1);
  // Before: 2 * 0.25 + 1.25^2 + 1.5^2.
  const double after = 2 * std::pow(1 - 15.5 / 15, 2) + std::pow(2.25 - 31 / 15.0, 2) + std::pow(3 - 15.5 / 5, 2);
  EXPECT_NEAR(refit.gain, 4.3125 - after, 1e-5);
}

// Never raises the loss of a row, says by how much it fell, and leaves codes and the type of scales alone.
RC_GTEST_PROP(RefitScales, NeverRaisesTheLoss, ()) {
  const int64_t group_size = *rc::gen::element<int64_t>(1, 4, 16), in = group_size * *rc::gen::inRange<int64_t>(1, 6);
  const uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000000);
  const int64_t rows = *rc::gen::inRange<int64_t>(1, 70), samples = *rc::gen::element<int64_t>(1, 3, 200);
  const QuantizationArgs args{.num_bits = *rc::gen::inRange(2, 5),
                              .symmetric = *rc::gen::arbitrary<bool>(),
                              .strategy = kGroup,
                              .group_size = static_cast<int>(group_size)};
  const DType scale_dtype = *rc::gen::element(DType::kBF16, DType::kF16, DType::kF32);
  const TestMatrix weight = RandomMatrix(rows, in, seed), hessian = PlainHessian(CorrelatedRows(samples, in, seed));
  const QuantizedTensor before = Quantize(weight, args, scale_dtype);
  QuantizedTensor after = before;
  const ScaleRefit refit = Refit(weight, hessian, 0.01 * hessian.values[0], after, 2);
  RC_ASSERT(after.code == before.code);
  RC_ASSERT(after.zero_point == before.zero_point);
  for (const float scale : after.scale) RC_ASSERT(scale > 0 && scale == RoundToDType(scale, scale_dtype));
  const TestMatrix old_weight = Dequantize(before), new_weight = Dequantize(after);
  double gain = 0, slack_sum = 0;
  for (int64_t o = 0; o < rows; ++o) {
    const double old_loss = PlainRowLoss(weight, old_weight, hessian, o), new_loss = PlainRowLoss(weight, new_weight, hessian, o);
    // Errors are differences of f32 numbers of the size of the weights.
    const double slack = 1e-4 * old_loss + 1e-9 * PlainRowLoss(weight, TestMatrix(rows, in), hessian, o);
    RC_ASSERT(new_loss <= old_loss + slack);
    gain += old_loss - new_loss;
    slack_sum += slack;
  }
  RC_ASSERT(std::fabs(refit.gain - gain) <= slack_sum + 1e-9);
  RC_ASSERT(refit.rows <= rows && refit.gain >= 0);
}

// Scales in f32 reach the minimum: no small change of one scale lowers the loss.
TEST(RefitScales, ReachesTheMinimum) {
  const TestMatrix weight = RandomMatrix(5, 24, 1), hessian = PlainHessian(CorrelatedRows(300, 24, 2));
  QuantizedTensor quantized = Quantize(weight, {.num_bits = 3, .strategy = kGroup, .group_size = 8}, DType::kF32);
  const double before = PlainLoss(weight, Dequantize(quantized), hessian);
  EXPECT_EQ(Refit(weight, hessian, 0, quantized).rows, 5);
  const double after = PlainLoss(weight, Dequantize(quantized), hessian);
  EXPECT_LT(after, 0.95 * before);
  for (size_t i = 0; i < quantized.scale.size(); ++i) {
    for (const float factor : {0.999f, 1.001f}) {
      QuantizedTensor moved = quantized;
      moved.scale[i] *= factor;
      EXPECT_GE(PlainLoss(weight, Dequantize(moved), hessian), after * (1 - 1e-6));
    }
  }
}

// A group whose codes are all zero has no scale to fit.
TEST(RefitScales, LeavesGroupsOfZerosAlone) {
  TestMatrix weight = RandomMatrix(2, 16, 3);
  std::fill_n(weight.row(0), 8, 0.0f);
  QuantizedTensor quantized = Quantize(weight, {.num_bits = 3, .strategy = kGroup, .group_size = 8}, DType::kBF16);
  const float scale = quantized.scale[0];
  Refit(weight, PlainHessian(CorrelatedRows(40, 16, 4)), 0, quantized);
  EXPECT_EQ(quantized.scale[0], scale);
}

}  // namespace
}  // namespace pith
