#include "quantization/qparams.h"

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "quantization/reference.h"
#include "rapidcheck.h"
#include "rapidcheck/gtest.h"

namespace pith {
namespace {

QuantizationArgs Args(int num_bits, bool symmetric) { return {.num_bits = num_bits, .symmetric = symmetric}; }

std::vector<float> RandomValues(size_t count, uint64_t seed, float scale = 0.02f) {
  RandomStream random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.Normal() * scale;
  return values;
}

WeightRange RangeOf(absl::Span<const float> values) {
  WeightRange range;
  EXPECT_TRUE(FindRange(values, range));
  return range;
}

// Sum of importance |w - dequantized|^norm the slow way.
double ExactError(absl::Span<const float> values, const QParams& qparams, const QuantizationArgs& args, double norm,
                  absl::Span<const float> importance = {}) {
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double error = static_cast<double>(DequantizeValue(QuantizeValue(values[i], qparams, args), qparams)) - values[i];
    sum += std::pow(std::fabs(error), norm) * (importance.empty() ? 1.0 : static_cast<double>(importance[i]));
  }
  return sum;
}

// Squares of normals, a fifth of them 0: from nothing to several times the mean.
std::vector<float> RandomImportance(size_t count, uint64_t seed) {
  RandomStream random(seed, 1);
  std::vector<float> importance(count);
  for (float& value : importance) value = std::pow(random.Normal(), 2.0f) * (random.Below(5) == 0 ? 0.0f : 1.0f);
  return importance;
}

TEST(FindRange, ContainsZero) {
  const WeightRange positive = RangeOf({1.0f, 3.0f, 2.0f});
  EXPECT_EQ(positive.min, 0.0f);
  EXPECT_EQ(positive.max, 3.0f);
  const WeightRange negative = RangeOf({-1.0f, -5.0f, -2.0f, -4.0f, -3.0f});
  EXPECT_EQ(negative.min, -5.0f);
  EXPECT_EQ(negative.max, 0.0f);
}

TEST(FindRange, SeesEveryPositionOfAnySize) {
  for (size_t size = 1; size <= 13; ++size) {
    for (size_t i = 0; i < size; ++i) {
      std::vector<float> values(size, 0.5f);
      values[i] = -2.0f;
      EXPECT_EQ(RangeOf(values).min, -2.0f) << size << " " << i;
      values[i] = 2.0f;
      EXPECT_EQ(RangeOf(values).max, 2.0f) << size << " " << i;
      for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
        values[i] = bad;
        WeightRange range;
        EXPECT_FALSE(FindRange(values, range)) << size << " " << i;
      }
    }
  }
}

TEST(ComputeQParams, SymmetricDividesByHalfTheSteps) {
  const QParams four = ComputeQParams({-3.0f, 1.5f}, Args(4, true), DType::kF32);
  EXPECT_EQ(four.scale, 3.0f / 7.5f);
  EXPECT_EQ(four.zero_point, 0);
  EXPECT_EQ(ComputeQParams({-1.0f, 2.55f}, Args(8, true), DType::kF32).scale, 2.55f / 127.5f);
  EXPECT_EQ(ComputeQParams({-3.0f, 1.5f}, Args(2, true), DType::kF32).scale, 3.0f / 1.5f);
}

TEST(ComputeQParams, AsymmetricCoversTheRange) {
  // 15 steps of 0.2 from -1 to 2; zero lies 5 steps above -1, at code -8 + 5.
  const QParams qparams = ComputeQParams({-1.0f, 2.0f}, Args(4, false), DType::kF32);
  EXPECT_EQ(qparams.scale, 3.0f / 15.0f);
  EXPECT_EQ(qparams.zero_point, -3);
  EXPECT_EQ(ComputeQParams({0.0f, 3.0f}, Args(4, false), DType::kF32).zero_point, -8);
  EXPECT_EQ(ComputeQParams({-3.0f, 0.0f}, Args(4, false), DType::kF32).zero_point, 7);
}

TEST(ComputeQParams, ScaleIsRoundedToItsStoredType) {
  EXPECT_EQ(ComputeQParams({-1.0f, 0.0f}, Args(4, true), DType::kBF16).scale, 0.1337890625f);  // 0.13333 in 8 bits of mantissa
  EXPECT_EQ(ComputeQParams({-1.0f, 0.0f}, Args(4, true), DType::kF16).scale, 0.13330078125f);  // in 11 bits
}

TEST(ComputeQParams, ZeroPointComesFromTheScaleBeforeItsRounding) {
  // 258 / 255 = 1.01176 is stored as 1.015625. -128 + 127.0 / 1.01176 = -2.48, and with the stored scale it would be -2.95.
  const QParams qparams = ComputeQParams({-127.0f, 131.0f}, Args(8, false), DType::kBF16);
  EXPECT_EQ(qparams.scale, 1.015625f);
  EXPECT_EQ(qparams.zero_point, -2);
}

TEST(ComputeQParams, ZeroScaleBecomesEpsilon) {
  EXPECT_EQ(ComputeQParams({0, 0}, Args(4, true), DType::kBF16).scale, 0.0078125f);
  EXPECT_EQ(ComputeQParams({0, 0}, Args(4, true), DType::kF16).scale, 0.0009765625f);
  EXPECT_EQ(ComputeQParams({0, 0}, Args(4, true), DType::kF32).scale, 1.1920929e-07f);
  const QParams asymmetric = ComputeQParams({0, 0}, Args(4, false), DType::kBF16);
  EXPECT_EQ(asymmetric.scale, 0.0078125f);
  EXPECT_EQ(asymmetric.zero_point, -8);
  // Too small for f16.
  EXPECT_EQ(ComputeQParams({-1e-9f, 0}, Args(4, true), DType::kF16).scale, 0.0009765625f);
}

TEST(ComputeQParams, ReportsAnOverflowAsInfinity) { EXPECT_TRUE(std::isinf(ComputeQParams({-1e6f, 0}, Args(4, true), DType::kF16).scale)); }

TEST(QuantizeValues, RoundsHalfToEvenAndClamps) {
  const QParams unit{.scale = 1.0f, .zero_point = 0};
  const std::vector<float> values = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 7.5f, -8.5f, 100.0f, -100.0f};
  std::vector<uint8_t> codes(values.size());
  QuantizeValues(values, unit, Args(4, true), absl::MakeSpan(codes));
  EXPECT_EQ(codes, (std::vector<uint8_t>{8, 10, 10, 8, 6, 15, 0, 15, 0}));
  // With a zero point the sum is rounded: 0.5 - 3 = -2.5 goes to -2.
  QuantizeValues(values, {.scale = 1.0f, .zero_point = -3}, Args(4, false), absl::MakeSpan(codes));
  EXPECT_EQ(codes, (std::vector<uint8_t>{6, 6, 8, 4, 4, 12, 0, 15, 0}));
}

// Where value / scale is a tie, multiplying by the reciprocal would round some the other way.
TEST(QuantizeValues, DividesExactlyAtTies) {
  const QuantizationArgs args = Args(8, true);
  for (int s = 1; s < 200; ++s) {
    const QParams qparams{.scale = 0.001f * static_cast<float>(s)};
    std::vector<float> values;
    for (int k = -127; k < 127; ++k) values.push_back((static_cast<float>(k) + 0.5f) * qparams.scale);
    std::vector<uint8_t> codes(values.size());
    QuantizeValues(values, qparams, args, absl::MakeSpan(codes));
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(codes[i] - 128, QuantizeValue(values[i], qparams, args)) << values[i] << " / " << s;
  }
}

RC_GTEST_PROP(QuantizeValues, AgreesWithTheScalarReference, ()) {
  const QuantizationArgs args = Args(*rc::gen::inRange(1, 9), *rc::gen::arbitrary<bool>());
  const std::vector<float> values = RandomValues(*rc::gen::inRange<size_t>(1, 70), *rc::gen::arbitrary<uint64_t>());
  const DType dtype = *rc::gen::element(DType::kBF16, DType::kF16, DType::kF32);
  const WeightRange range = RangeOf(values);
  const QParams qparams = ComputeQParams({range.min * 0.9f, range.max * 0.9f}, args, dtype);
  std::vector<uint8_t> codes(values.size());
  QuantizeValues(values, qparams, args, absl::MakeSpan(codes));
  for (size_t i = 0; i < values.size(); ++i) {
    RC_ASSERT(static_cast<int>(codes[i]) == QuantizeValue(values[i], qparams, args) - args.min_code());
  }
}

RC_GTEST_PROP(QuantizeValues, ErrorIsAtMostHalfAStepInsideTheRange, ()) {
  const QuantizationArgs args = Args(*rc::gen::inRange(2, 9), *rc::gen::arbitrary<bool>());
  const std::vector<float> values = RandomValues(*rc::gen::inRange<size_t>(1, 70), *rc::gen::arbitrary<uint64_t>(), 3.0f);
  const QParams qparams = ComputeQParams(RangeOf(values), args, *rc::gen::element(DType::kBF16, DType::kF16, DType::kF32));
  std::vector<uint8_t> codes(values.size());
  QuantizeValues(values, qparams, args, absl::MakeSpan(codes));
  const float low = DequantizeValue(args.min_code(), qparams), high = DequantizeValue(args.max_code(), qparams);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < low || values[i] > high) continue;
    const float error = std::fabs(DequantizeValue(codes[i] + args.min_code(), qparams) - values[i]);
    RC_ASSERT(error <= qparams.scale * 0.5001f);  // value / scale, up to 128, is rounded to f32
  }
}

RC_GTEST_PROP(ClipError, IsThePowerSum, ()) {
  const QuantizationArgs args = Args(*rc::gen::inRange(2, 9), *rc::gen::arbitrary<bool>());
  const double norm = *rc::gen::element(1.0, 2.0, 2.4, 3.0);
  const float magnitude = *rc::gen::element(1e-20f, 1e-3f, 1.0f, 1e15f);
  const std::vector<float> values = RandomValues(*rc::gen::inRange<size_t>(1, 150), *rc::gen::arbitrary<uint64_t>(), magnitude);
  const WeightRange range = RangeOf(values);
  const QParams qparams = ComputeQParams({range.min * 0.8f, range.max * 0.8f}, args, DType::kF32);
  const double exact = ExactError(values, qparams, args, norm);
  const double found = ClipError(values, qparams, args, norm);
  // The reciprocal of the scale moves each error by an ulp or two of the weight; that shows where errors are tiny.
  const double rounding = 1e-6 * std::pow(static_cast<double>(qparams.scale), norm) * static_cast<double>(values.size());
  RC_ASSERT(std::fabs(found - exact) <= 1e-4 * exact + 40 * rounding);
}

TEST(ClipSearch, TriesTwentyRangesByDefault) {
  EXPECT_EQ(ClipSearch().num_candidates(), 20);
  EXPECT_EQ(kNoClipSearch.num_candidates(), 1);
  EXPECT_EQ((ClipSearch{.grid = 20, .max_shrink = 0.95}).num_candidates(), 19);
}

TEST(SearchQParams, WithoutCandidatesIsTheFullRange) {
  const std::vector<float> values = RandomValues(64, 3);
  const QParams full = ComputeQParams(RangeOf(values), Args(4, true), DType::kBF16);
  EXPECT_EQ(SearchQParams(values, RangeOf(values), Args(4, true), DType::kBF16, kNoClipSearch).scale, full.scale);
}

TEST(SearchQParams, ClipsALoneOutlier) {
  // 63 values on a grid of 0.1 and one a little beyond it: giving up the outlier keeps the others exact.
  std::vector<float> values(64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.1f * static_cast<float>(static_cast<int>(i % 15) - 7);
  values[13] = 0.85f;
  const QParams found = SearchQParams(values, RangeOf(values), Args(4, true), DType::kF32, ClipSearch());
  EXPECT_NEAR(found.scale, 0.1f, 0.003f);
  EXPECT_LT(found.scale, 0.85f / 7.5f * 0.91f);
}

RC_GTEST_PROP(SearchQParams, FindsTheBestOfTheGrid, ()) {
  const QuantizationArgs args = Args(*rc::gen::inRange(2, 9), *rc::gen::arbitrary<bool>());
  const std::vector<float> values = RandomValues(*rc::gen::inRange<size_t>(1, 140), *rc::gen::arbitrary<uint64_t>());
  const ClipSearch search{.grid = 50, .max_shrink = 0.6, .norm = *rc::gen::element(2.0, 2.4)};
  const WeightRange range = RangeOf(values);
  const QParams found = SearchQParams(values, range, args, DType::kBF16, search);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 30; ++i) {
    const float p = 1.0f - static_cast<float>(i) / 50.0f;
    const QParams candidate = ComputeQParams({range.min * p, range.max * p}, args, DType::kBF16);
    best = std::min(best, ExactError(values, candidate, args, search.norm));
  }
  const double error = ExactError(values, found, args, search.norm);
  const double rounding = 1e-6 * std::pow(static_cast<double>(found.scale), search.norm) * static_cast<double>(values.size());
  RC_ASSERT(error <= best * (1 + 5e-4) + 40 * rounding);
}

RC_GTEST_PROP(SearchQParams, FindsTheBestOfTheGridByImportance, ()) {
  const QuantizationArgs args = Args(*rc::gen::inRange(2, 9), *rc::gen::arbitrary<bool>());
  const uint64_t seed = *rc::gen::arbitrary<uint64_t>();
  const std::vector<float> values = RandomValues(*rc::gen::inRange<size_t>(1, 140), seed);
  const std::vector<float> importance = RandomImportance(values.size(), seed);
  const ClipSearch search{.grid = 20, .max_shrink = 0.95, .norm = *rc::gen::element(2.0, 3.0)};
  const WeightRange range = RangeOf(values);
  const QParams found = SearchQParams(values, range, args, DType::kBF16, search, importance);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 19; ++i) {
    const float p = 1.0f - static_cast<float>(i) / 20.0f;
    const QParams candidate = ComputeQParams({range.min * p, range.max * p}, args, DType::kBF16);
    best = std::min(best, ExactError(values, candidate, args, search.norm, importance));
  }
  const double error = ExactError(values, found, args, search.norm, importance);
  const double rounding = 1e-6 * std::pow(static_cast<double>(found.scale), search.norm) * static_cast<double>(values.size());
  RC_ASSERT(error <= best * (1 + 5e-4) + 40 * rounding);
  RC_ASSERT(std::fabs(ClipError(values, found, args, search.norm, importance) - error) <= 1e-4 * error + 40 * rounding);
}

// Ones are the same bits as none, and where nothing matters nothing is clipped.
TEST(SearchQParams, ImportanceOfOnesIsNone) {
  for (const size_t size : {5, 32, 77}) {
    const std::vector<float> values = RandomValues(size, size), ones(size, 1.0f), zeros(size);
    const QParams none = SearchQParams(values, RangeOf(values), Args(4, false), DType::kF32, ClipSearch());
    const QParams one = SearchQParams(values, RangeOf(values), Args(4, false), DType::kF32, ClipSearch(), ones);
    EXPECT_EQ(one.scale, none.scale);
    EXPECT_EQ(one.zero_point, none.zero_point);
    EXPECT_EQ(ClipError(values, none, Args(4, false), 2.4, ones), ClipError(values, none, Args(4, false), 2.4));
    const QParams zero = SearchQParams(values, RangeOf(values), Args(4, false), DType::kF32, ClipSearch(), zeros);
    EXPECT_EQ(zero.scale, ComputeQParams(RangeOf(values), Args(4, false), DType::kF32).scale);
  }
}

TEST(RoundToDType, RoundsOnce) {
  EXPECT_EQ(RoundToDType(1.00390625f, DType::kBF16), 1.0f);  // 1 + 2^-8: a tie, to even
  EXPECT_EQ(RoundToDType(1.00390625f, DType::kF16), 1.00390625f);
  EXPECT_EQ(RoundToDType(0.1f, DType::kF32), 0.1f);
}

}  // namespace
}  // namespace pith
