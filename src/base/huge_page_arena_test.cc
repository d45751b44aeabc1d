#include "base/huge_page_arena.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace pith {
namespace {

bool IsZero(const uint8_t* data, size_t size) {
  return std::all_of(data, data + size, [](uint8_t byte) { return byte == 0; });
}

TEST(HugePageArena, PiecesAreZeroedAlignedAndApart) {
  HugePageArena arena(size_t{4} << 20);
  std::vector<std::pair<uint8_t*, size_t>> pieces;
  for (const size_t size : {1, 64, 65, 100000, 3 << 20, 5 << 20, 7}) {
    uint8_t* data = arena.Allocate(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    EXPECT_TRUE(IsZero(data, size)) << size;
    std::memset(data, 0xAA, size);  // what a later piece would see if they overlapped
    pieces.push_back({data, size});
  }
  std::sort(pieces.begin(), pieces.end());
  for (size_t i = 1; i < pieces.size(); ++i) EXPECT_GE(pieces[i].first, pieces[i - 1].first + pieces[i - 1].second);
}

TEST(HugePageArena, SmallPiecesFollowEachOther) {
  HugePageArena arena;
  uint8_t* first = arena.Allocate(100);
  EXPECT_EQ(arena.Allocate(100), first + 128);
  EXPECT_EQ(arena.Allocate(1), first + 256);
}

TEST(HugePageArena, ThreadsShareIt) {
  HugePageArena arena(size_t{2} << 20);
  std::vector<std::vector<uint8_t*>> pieces(4);
  std::vector<std::thread> threads;
  for (std::vector<uint8_t*>& own : pieces) {
    threads.emplace_back([&arena, &own] {
      for (int i = 0; i < 500; ++i) own.push_back(arena.Allocate(10000));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint8_t*> all;
  for (const std::vector<uint8_t*>& own : pieces) all.insert(own.begin(), own.end());
  EXPECT_EQ(all.size(), 2000u);
}

TEST(HugePageArena, AbsurdSizesThrow) {
  HugePageArena arena;
  EXPECT_THROW(arena.Allocate(SIZE_MAX), std::bad_alloc);
  EXPECT_THROW(arena.Allocate(size_t{1} << 60), std::bad_alloc);
  EXPECT_NE(arena.Allocate(10), nullptr);
}

}  // namespace
}  // namespace pith
