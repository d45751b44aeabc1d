#include "base/heap_reuse.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <vector>

namespace pith {
namespace {

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr bool kGlibcHeap = true;
#else
constexpr bool kGlibcHeap = false;
#endif

long PageFaults() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

long FaultsOfRounds(int rounds) {
  const long before = PageFaults();
  for (int i = 0; i < rounds; ++i) {
    std::vector<char> buffer(8 << 20, static_cast<char>(i + 1));
    volatile char sink = buffer[static_cast<size_t>(i) * 4096];
    (void)sink;
  }
  return PageFaults() - before;
}

// Buffers of 8 MiB are 2048 pages: only the first round touches new ones.
TEST(HeapReuseTest, FreedBuffersAreUsedAgain) {
  if (!kGlibcHeap) GTEST_SKIP() << "the allocator is not glibc's";
  const HeapReuse reuse;
  FaultsOfRounds(1);
  EXPECT_LT(FaultsOfRounds(8), 2048);
}

}  // namespace
}  // namespace pith
