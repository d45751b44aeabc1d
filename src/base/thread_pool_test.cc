#include "base/thread_pool.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <new>
#include <numeric>
#include <system_error>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(ThreadPool, RunCallsEveryIndexOnceOnItsOwnThread) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.num_threads(), threads);
    std::vector<int> calls(threads, 0);
    std::vector<std::thread::id> ids(threads);
    pool.Run([&](int thread) {
      ++calls[thread];
      ids[thread] = std::this_thread::get_id();
    });
    EXPECT_EQ(calls, std::vector<int>(threads, 1));
    EXPECT_EQ(ids[0], std::this_thread::get_id());
  }
}

TEST(ThreadPool, ZeroMeansTheUsableCpus) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(ThreadPool(0).num_threads(), CPU_COUNT(&before));
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(UsableCpus(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

// Unsynchronised writes before, in and after each job: the sanitizer sees a missing happens-before edge in either direction.
TEST(ThreadPool, ManyShortJobsSeeEachOthersWrites) {
  ThreadPool pool(4);
  std::vector<int64_t> slots(4, 0);
  int64_t input = 0, total = 0;
  for (int round = 0; round < 4000; ++round) {
    input = round;
    pool.Run([&](int thread) { slots[thread] += input; });
    total = std::accumulate(slots.begin(), slots.end(), int64_t{0});
  }
  EXPECT_EQ(total, int64_t{4} * 3999 * 4000 / 2);
}

TEST(ThreadPool, ParkedWorkersWakeUp) {
  ThreadPool pool(3);
  std::atomic<int> calls{0};
  for (int round = 0; round < 10; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pool.Run([&](int) { calls.fetch_add(1); });
  }
  EXPECT_EQ(calls.load(), 30);
}

TEST(ThreadPool, UnevenJobsAreWaitedFor) {
  ThreadPool pool(3);
  std::atomic<int> done{0};
  pool.Run([&](int thread) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10 * thread));
    done.fetch_add(1);
  });
  EXPECT_EQ(done.load(), 3);
}

TEST(ThreadPool, CreatedAndDestroyedWithoutAndWithWork) {
  for (int i = 0; i < 200; ++i) {
    ThreadPool pool(4);
    if (i % 2 == 0) pool.Run([](int) {});
  }
}

struct Range {
  int64_t begin, end;
  int thread;
  bool operator==(const Range&) const = default;
};

std::vector<Range> SortedRanges(ThreadPool& pool, int64_t count, int64_t grain, bool dynamic) {
  std::mutex mutex;
  std::vector<Range> ranges;
  const auto body = [&](int64_t begin, int64_t end, int thread) {
    const std::lock_guard lock(mutex);
    ranges.push_back({begin, end, thread});
  };
  if (dynamic) {
    pool.ParallelForDynamic(count, grain, body);
  } else {
    pool.ParallelFor(count, grain, body);
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  return ranges;
}

TEST(ParallelFor, CoversTheRangeOnceInNearlyEqualMultiplesOfTheGrain) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    for (const int64_t count : {0, 1, 5, 16, 17, 100, 1000}) {
      for (const int64_t grain : {1, 4, 16, 2000}) {
        const auto ranges = SortedRanges(pool, count, grain, false);
        int64_t next = 0, smallest = count, largest = 0;
        for (const Range& range : ranges) {
          EXPECT_EQ(range.begin, next);
          EXPECT_EQ(range.begin % grain, 0);
          EXPECT_LT(range.begin, range.end);
          smallest = std::min(smallest, (range.end - range.begin + grain - 1) / grain);
          largest = std::max(largest, (range.end - range.begin + grain - 1) / grain);
          next = range.end;
        }
        EXPECT_EQ(next, count);
        if (count >= grain * threads) {
          EXPECT_LE(largest - smallest, 1) << count << " " << grain << " " << threads;
        }
        EXPECT_EQ(SortedRanges(pool, count, grain, false), ranges) << "the split must not vary";
      }
    }
  }
}

TEST(ParallelForDynamic, CoversTheRangeOnceInChunksOfTheGrain) {
  ThreadPool pool(3);
  for (const int64_t count : {0, 1, 10, 64, 65}) {
    int64_t next = 0;
    for (const Range& range : SortedRanges(pool, count, 8, true)) {
      EXPECT_EQ(range.begin, next);
      EXPECT_EQ(range.end, std::min(count, range.begin + 8));
      next = range.end;
    }
    EXPECT_EQ(next, count);
  }
}

TEST(ThreadPool, WhatAJobThrowsReachesTheCallerAndThePoolLivesOn) {
  ThreadPool pool(3);
  for (const int thrower : {0, 1, 2}) {
    std::atomic<int> calls{0};
    EXPECT_THROW(pool.Run([&](int thread) {
      ++calls;
      if (thread == thrower) throw std::bad_alloc();
    }),
                 std::bad_alloc);
    EXPECT_EQ(calls, 3);
  }
  EXPECT_THROW(pool.Run([](int) { throw std::bad_alloc(); }), std::bad_alloc);
  std::atomic<int> calls{0};
  pool.Run([&](int) { ++calls; });
  EXPECT_EQ(calls, 3);
}

TEST(ThreadPoolDeathTest, ThreadsThatCannotBeStartedAreAnException) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs more address space than the limit leaves";
#endif
  const auto start = [] {
    const rlimit limit = {64 << 20, 64 << 20};
    setrlimit(RLIMIT_AS, &limit);
    try {
      const ThreadPool pool(200);
    } catch (const std::system_error& error) {
      std::exit(error.code() == std::errc::resource_unavailable_try_again ? 0 : 1);
    }
    std::exit(2);
  };
  EXPECT_EXIT(start(), testing::ExitedWithCode(0), "");
}

TEST(ThreadPoolDeathTest, NestedRunsAreABugThatIsCaught) {
  EXPECT_DEATH(
      {
        ThreadPool pool(2);
        pool.Run([&](int) { pool.Run([](int) {}); });
      },
      "CHECK failed");
  EXPECT_DEATH(
      {
        ThreadPool pool(1);
        pool.Run([&](int) { pool.Run([](int) {}); });
      },
      "CHECK failed");
}

}  // namespace
}  // namespace pith
