#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <immintrin.h>

#include "base/cpu_features.h"

// Only what lies between the options is compiled for the instruction set: nothing the linker could share with other code.
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "kernels/cpu/avx2/vector_math.h"

namespace pith {
namespace {

void ExpOf(float* x) { _mm256_storeu_ps(x, Exp(_mm256_loadu_ps(x))); }
float MaxOf(const float* x) { return ReduceMax(_mm256_loadu_ps(x)); }
float SumOf(const float* x) { return ReduceAdd(_mm256_loadu_ps(x)); }

}  // namespace
}  // namespace pith
#pragma GCC pop_options

namespace pith {
namespace {

constexpr int kLanes = 8;
constexpr float kInf = std::numeric_limits<float>::infinity();

class Avx2VectorMathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (DetectIsa() < Isa::kAvx2) GTEST_SKIP() << "this CPU has no avx2";
  }
};

float ExpOfOne(float x) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = x;
  ExpOf(lanes);
  for (float lane : lanes) EXPECT_EQ(std::bit_cast<uint32_t>(lane), std::bit_cast<uint32_t>(lanes[0]));
  return lanes[0];
}

TEST_F(Avx2VectorMathTest, ExpIsAccurateWhereItIsNotZero) {
  double worst = 0.0;
  for (int i = 0; i < 400000; ++i) {
    const float x = -87.0f + 175.0f / 400000.0f * static_cast<float>(i);
    worst = std::max(worst, std::fabs(ExpOfOne(x) / std::exp(static_cast<double>(x)) - 1.0));
  }
  EXPECT_LT(worst, 2e-7);
  EXPECT_EQ(ExpOfOne(0.0f), 1.0f);
  EXPECT_EQ(ExpOfOne(-0.0f), 1.0f);
}

TEST_F(Avx2VectorMathTest, ExpEndsInZeroInfinityAndNaN) {
  for (float x : {-87.1f, -100.0f, -1e10f, -std::numeric_limits<float>::max(), -kInf}) EXPECT_EQ(ExpOfOne(x), 0.0f) << x;
  EXPECT_GT(ExpOfOne(-87.0f), 0.0f);
  EXPECT_EQ(ExpOfOne(88.75f), kInf);
  for (uint32_t nan : {0x7FC00000u, 0x7FFFFFFFu, 0xFFC00001u}) EXPECT_TRUE(std::isnan(ExpOfOne(std::bit_cast<float>(nan))));
}

TEST_F(Avx2VectorMathTest, ReductionsTakeEveryLane) {
  for (int lane = 0; lane < kLanes; ++lane) {
    float x[kLanes] = {};
    x[lane] = 3.0f;
    EXPECT_EQ(MaxOf(x), 3.0f) << lane;
    EXPECT_EQ(SumOf(x), 3.0f) << lane;
    for (int other = 0; other < kLanes; ++other) x[other] = -static_cast<float>(2 + (other + lane) % kLanes);
    EXPECT_EQ(MaxOf(x), -2.0f) << lane;
    EXPECT_EQ(SumOf(x), -static_cast<float>(2 * kLanes + kLanes * (kLanes - 1) / 2)) << lane;
  }
}

}  // namespace
}  // namespace pith
