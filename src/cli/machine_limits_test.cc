#include "cli/machine_limits.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(MachineLimitsTest, EveryLimitOfTheInstructionSet) {
  ThreadPool pool(2);
  const MachineLimits limits = MeasureMachineLimits(pool, DetectIsa(), int64_t{3} << 20, 2);
  EXPECT_EQ(limits.threads, 2);
  EXPECT_EQ(limits.read_bytes, int64_t{3} << 20);
  EXPECT_GT(limits.read_gb_per_s, 0);
  EXPECT_GT(limits.f32_gops, 0);
  EXPECT_EQ(limits.bf16_gops > 0, DetectIsa() >= Isa::kAvx512Vnni);
  EXPECT_GT(limits.int8_gops, 0);
  EXPECT_EQ(limits.gops(ProbeLimit::kF32), limits.f32_gops);
  EXPECT_EQ(limits.gops(ProbeLimit::kBf16), limits.bf16_gops);
  EXPECT_EQ(limits.gops(ProbeLimit::kInt8), limits.int8_gops);
}

TEST(MachineLimitsTest, AForcedInstructionSetIsWhatIsMeasured) {
  ThreadPool pool(1);
  const MachineLimits limits = MeasureMachineLimits(pool, Isa::kScalar, 1, 1);
  EXPECT_EQ(limits.read_bytes, int64_t{1} << 20);  // at least
  EXPECT_EQ(limits.bf16_gops, 0);
  EXPECT_TRUE(ToJson(limits)["bf16_gops"].is_null());
  EXPECT_THAT(LimitsText(limits), testing::MatchesRegex("read .* GB/s over 1.0 MB; f32 [0-9]*, int8 [0-9]* GOPS \\(1 thread\\)"));
}

TEST(MachineLimitsTest, AMultiplyAddIsTwoOperations) {
  EXPECT_DOUBLE_EQ(Gops(3'000'000'000, 2.0), 3.0);
  EXPECT_DOUBLE_EQ(Gops(0, 1.0), 0.0);
}

TEST(MachineLimitsTest, ClearForgetsTheSamples) {
  ThreadPool pool(1);
  MachineProbe probe(pool, Isa::kScalar, 1 << 20);
  probe.Sample();
  probe.Clear();
  probe.Sample();
  EXPECT_GT(probe.limits().read_gb_per_s, 0);
}

}  // namespace
}  // namespace pith
