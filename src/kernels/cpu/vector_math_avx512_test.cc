#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <immintrin.h>

#include "base/cpu_features.h"

// Only what lies between the options is compiled for the instruction set: nothing the linker could share with other code.
// The intrinsics headers of GCC 12 trip its uninitialized warnings (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")
#include "kernels/cpu/avx512/vector_math.h"

namespace pith {
namespace {

void ExpOf(float* x) { _mm512_storeu_ps(x, Exp(_mm512_loadu_ps(x))); }
void Exp2Of(float* x) { _mm512_storeu_ps(x, Exp2(_mm512_loadu_ps(x))); }
float MaxOf(const float* x) { return ReduceMax(_mm512_loadu_ps(x)); }
float SumOf(const float* x) { return ReduceAdd(_mm512_loadu_ps(x)); }

}  // namespace
}  // namespace pith
#pragma GCC pop_options

namespace pith {
namespace {

constexpr int kLanes = 16;
constexpr float kInf = std::numeric_limits<float>::infinity();

class Avx512VectorMathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (DetectIsa() < Isa::kAvx512) GTEST_SKIP() << "this CPU has no avx512";
  }
};

float OfOne(void (*function)(float*), float x) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = x;
  function(lanes);
  for (float lane : lanes) EXPECT_EQ(std::bit_cast<uint32_t>(lane), std::bit_cast<uint32_t>(lanes[0]));
  return lanes[0];
}

float ExpOfOne(float x) { return OfOne(ExpOf, x); }
float Exp2OfOne(float x) { return OfOne(Exp2Of, x); }

TEST_F(Avx512VectorMathTest, Exp2IsAccurateAndEndsInZeroInfinityAndNaN) {
  double worst = 0.0;
  for (int i = 0; i < 400000; ++i) {
    const float x = -100.0f + 227.0f / 400000.0f * static_cast<float>(i);
    worst = std::max(worst, std::fabs(Exp2OfOne(x) / std::exp2(static_cast<double>(x)) - 1.0));
  }
  EXPECT_LT(worst, 2e-7);
  for (int n = -100; n < 128; ++n) EXPECT_EQ(Exp2OfOne(static_cast<float>(n)), std::ldexp(1.0f, n)) << n;
  for (float x : {-100.1f, -126.5f, -200.0f, -201.0f, -1e10f, -kInf}) EXPECT_EQ(Exp2OfOne(x), 0.0f) << x;
  EXPECT_EQ(Exp2OfOne(128.0f), kInf);
  for (uint32_t nan : {0x7FC00000u, 0x7FFFFFFFu, 0xFFC00001u}) EXPECT_TRUE(std::isnan(Exp2OfOne(std::bit_cast<float>(nan))));
}

TEST_F(Avx512VectorMathTest, ExpIsAccurateWhereItIsNotZero) {
  double worst = 0.0;
  for (int i = 0; i < 400000; ++i) {
    const float x = -87.0f + 175.0f / 400000.0f * static_cast<float>(i);
    worst = std::max(worst, std::fabs(ExpOfOne(x) / std::exp(static_cast<double>(x)) - 1.0));
  }
  EXPECT_LT(worst, 2e-7);
  EXPECT_EQ(ExpOfOne(0.0f), 1.0f);
  EXPECT_EQ(ExpOfOne(-0.0f), 1.0f);
}

TEST_F(Avx512VectorMathTest, ExpEndsInZeroInfinityAndNaN) {
  for (float x : {-87.1f, -100.0f, -1e10f, -std::numeric_limits<float>::max(), -kInf}) EXPECT_EQ(ExpOfOne(x), 0.0f) << x;
  EXPECT_GT(ExpOfOne(-87.0f), 0.0f);
  EXPECT_EQ(ExpOfOne(88.75f), kInf);
  for (uint32_t nan : {0x7FC00000u, 0x7FFFFFFFu, 0xFFC00001u}) EXPECT_TRUE(std::isnan(ExpOfOne(std::bit_cast<float>(nan))));
}

TEST_F(Avx512VectorMathTest, ReductionsTakeEveryLane) {
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
