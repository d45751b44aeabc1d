#include "cli/process_memory.h"

#include <cstring>
#include <vector>

#include "base/aligned_buffer.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(ProcessMemoryTest, TouchedMemoryCountsAndFreedMemoryDoesNot) {
  constexpr int64_t kBytes = int64_t{64} << 20;
  const int64_t before = AnonymousMemoryBytes();
  ASSERT_GT(before, 0);
  {
    AlignedBuffer buffer(kBytes);
    std::memset(buffer.data(), 1, buffer.size());
    EXPECT_NEAR(static_cast<double>(AnonymousMemoryBytes() - before), static_cast<double>(kBytes), 4e6);
  }
  EXPECT_LT(AnonymousMemoryBytes() - before, int64_t{4} << 20);
}

TEST(ProcessMemoryTest, SomeMemoryIsAvailable) { EXPECT_GT(AvailableMemoryBytes(), int64_t{1} << 20); }

}  // namespace
}  // namespace pith
