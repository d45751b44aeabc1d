#include "kernels/activation.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/operator_test_fixture.h"

namespace pith {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// The logit of the sigmoid that x is multiplied with: 0.5 (1 + tanh(z)) = 1 / (1 + exp(-2 z)), which does not cancel far below 0.
double Logit(Activation activation, double x) {
  return activation == Activation::kSilu ? x : 2.0 * std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x);
}

double Reference(Activation activation, double x) { return x / (1.0 + std::exp(-Logit(activation, x))); }

std::vector<uint16_t> RunOne(void (*run)(const GatedActivationParams&), Activation activation, const std::vector<float>& gate,
                             const std::vector<float>& up) {
  const int64_t dim = static_cast<int64_t>(gate.size());
  GuardedBuffer<uint16_t> out(dim);
  const PageEndBuffer<float> readable_gate(gate), readable_up(up);
  run({.gate = readable_gate.data(), .up = readable_up.data(), .out = out.data(), .num_rows = 1, .dim = dim, .activation = activation});
  EXPECT_TRUE(out.Intact());
  return out.values();
}

TEST(GatedActivationTest, MatchesTheDefinition) {
  // The whole range in which a result is neither 0 nor x, densely, and normal values; 3 rows with strides of their own.
  constexpr int64_t kDim = 4099, kRows = 3, kStride = kDim + 6;
  std::vector<float> gate = NormalValues(kRows * kStride, 1, 2.0f);
  for (int64_t i = 0; i < kDim; ++i) gate[kStride + i] = -100.0f + 0.05f * static_cast<float>(i);
  const std::vector<float> up = NormalValues(kRows * (kStride + 1), 2);
  for (const auto& row : RunnableRows(&OperatorEntry::gated_activation)) {
    for (Activation activation : {Activation::kSilu, Activation::kGeluTanh}) {
      GuardedBuffer<uint16_t> out(kRows * (kStride + 2), 0xBEEF);
      row.run({.gate = gate.data(),
               .up = up.data(),
               .gate_stride = kStride,
               .up_stride = kStride + 1,
               .out = out.data(),
               .out_stride = kStride + 2,
               .num_rows = kRows,
               .dim = kDim,
               .activation = activation});
      EXPECT_TRUE(out.Intact()) << row.name;
      for (int64_t r = 0; r < kRows; ++r) {
        for (int64_t i = 0; i < kDim; ++i) {
          const double x = gate[r * kStride + i], u = up[r * (kStride + 1) + i], expected = Reference(activation, x) * u;
          // At most 4 roundings of the logit t give exp(-t) a relative error of 4 |t| u; then exp itself, sum, quotient, product.
          // Below t = -88.3 the kernels may give 0: the value is less than 89 exp(-88.3).
          const double f32_error = std::fabs(expected) * (2e-7 + (4 * std::fabs(Logit(activation, x)) + 4) * kF32Unit) +
                                   4.1e-37 * std::fabs(u);
          const double tolerance = f32_error + kBf16Unit * (std::fabs(expected) + f32_error);
          ASSERT_NEAR(FromBits(out[r * (kStride + 2) + i]), expected, tolerance)
              << row.name << " row " << r << " gate " << x << " up " << u;
        }
        for (int64_t i = kDim; i < kStride + 2; ++i) ASSERT_EQ(out[r * (kStride + 2) + i], 0xBEEF) << row.name;
      }
    }
  }
}

TEST(GatedActivationTest, KnownValues) {  // from the definitions with tanh, to 7 digits
  for (const auto& row : RunnableRows(&OperatorEntry::gated_activation)) {
    const std::vector<uint16_t> silu = RunOne(row.run, Activation::kSilu, {1.0f, -2.0f, 4.0f}, {1.0f, 1.0f, -0.5f});
    EXPECT_THAT(silu, testing::ElementsAre(ToBits(0.7310586f), ToBits(-0.2384058f), ToBits(-1.9640276f))) << row.name;
    const std::vector<uint16_t> gelu = RunOne(row.run, Activation::kGeluTanh, {1.0f, -0.5f, 2.0f}, {1.0f, 1.0f, -0.5f});
    EXPECT_THAT(gelu, testing::ElementsAre(ToBits(0.8411920f), ToBits(-0.1542860f), ToBits(-0.9772988f))) << row.name;
  }
}

TEST(GatedActivationTest, BitsOfAnElementDoNotDependOnItsPlace) {
  const std::vector<float> values = NormalValues(40, 5, 3.0f), ups = NormalValues(40, 6);
  for (const auto& row : RunnableRows(&OperatorEntry::gated_activation)) {
    for (Activation activation : {Activation::kSilu, Activation::kGeluTanh}) {
      const std::vector<uint16_t> whole = RunOne(row.run, activation, values, ups);
      for (size_t begin = 0; begin < 40; ++begin) {
        for (size_t end = begin + 1; end <= 40; ++end) {
          const std::vector<uint16_t> part = RunOne(row.run, activation, {values.begin() + begin, values.begin() + end},
                                                    {ups.begin() + begin, ups.begin() + end});
          ASSERT_EQ(part, std::vector<uint16_t>(whole.begin() + begin, whole.begin() + end)) << row.name << " " << begin << ".." << end;
        }
      }
    }
  }
}

TEST(GatedActivationTest, SpecialValues) {
  const std::vector<float> gate = {0.0f, -0.0f, 1e30f, -1e30f, 200.0f, -200.0f, kInf, std::nanf(""), 1.0f, 1.0f};
  const std::vector<float> up = {2.0f, 2.0f, 2.0f, 2.0f, 2.0f, 2.0f, 2.0f, 2.0f, kInf, std::nanf("")};
  for (const auto& row : RunnableRows(&OperatorEntry::gated_activation)) {
    for (Activation activation : {Activation::kSilu, Activation::kGeluTanh}) {
      const std::vector<uint16_t> out = RunOne(row.run, activation, gate, up);
      EXPECT_EQ(out[0], 0) << row.name;
      EXPECT_EQ(out[1], 0x8000) << row.name;
      EXPECT_EQ(out[2], ToBits(2e30f)) << row.name;
      EXPECT_EQ(FromBits(out[3]), 0.0f) << row.name;
      EXPECT_EQ(FromBits(out[4]), 400.0f) << row.name;
      EXPECT_EQ(FromBits(out[5]), 0.0f) << row.name;
      EXPECT_EQ(FromBits(out[6]), kInf) << row.name;
      EXPECT_TRUE(std::isnan(FromBits(out[7]))) << row.name;
      EXPECT_EQ(FromBits(out[8]), kInf) << row.name;
      EXPECT_TRUE(std::isnan(FromBits(out[9]))) << row.name;
    }
  }
}

}  // namespace
}  // namespace pith
