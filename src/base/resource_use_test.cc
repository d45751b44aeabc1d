#include "base/resource_use.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/aligned_buffer.h"

namespace pith {
namespace {

constexpr size_t kBytes = size_t{96} << 20;

// Works until the process has used so much CPU time.
void Spin(double cpu_seconds) {
  const double end = ProcessCpuSeconds() + cpu_seconds;
  volatile uint64_t sum = 0;
  while (ProcessCpuSeconds() < end) {
    for (int i = 0; i < 1000; ++i) sum = sum + static_cast<uint64_t>(i);
  }
}

TEST(ResourceUseTest, APeakIsSeenAfterItIsOver) {
  const int64_t before = AnonymousMemory();
  ASSERT_GT(before, 0);
  ResourceMeter meter;
  {
    AlignedBuffer buffer(kBytes);
    std::memset(buffer.data(), 1, kBytes);
    Spin(0.05);
    EXPECT_GE(AnonymousMemory() - before, static_cast<int64_t>(kBytes * 9 / 10));
  }
  const ResourceUse use = meter.Lap();
  EXPECT_GE(use.peak_memory_bytes - before, static_cast<int64_t>(kBytes * 9 / 10));
  EXPECT_GE(use.cpu_seconds, 0.05);
  EXPECT_GE(use.seconds, 0.0);
  // The next lap begins anew.
  EXPECT_LT(meter.Lap().peak_memory_bytes - before, static_cast<int64_t>(kBytes / 2));
}

TEST(ResourceUseTest, FreedMemoryIsReturned) {
  const int64_t before = AnonymousMemory();
  std::vector<std::vector<char>> blocks;
  for (int i = 0; i < 600; ++i) blocks.emplace_back(size_t{100} << 10, 'x');  // too small for mappings of their own
  EXPECT_GE(AnonymousMemory() - before, int64_t{50} << 20);
  blocks.clear();
  ReturnFreeMemory();
  EXPECT_LT(AnonymousMemory() - before, int64_t{30} << 20);
}

TEST(ResourceUseTest, CpuTimeIsThatOfTheLap) {
  ResourceMeter meter;
  Spin(0.05);
  EXPECT_GE(meter.Lap().cpu_seconds, 0.05);
  EXPECT_LT(meter.Lap().cpu_seconds, 0.05);
}

}  // namespace
}  // namespace pith
