#include "base/aligned_buffer.h"

#include <algorithm>
#include <new>

#include "gtest/gtest.h"

namespace pith {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

TEST(AlignedBuffer, IsAlignedAndZeroedAtEverySize) {
  for (const size_t size : {size_t{1}, size_t{63}, size_t{64}, size_t{65}, kHugePage - 1, kHugePage, kHugePage + 1, 5 * kHugePage - 3}) {
    for (int round = 0; round < 2; ++round) {  // the second one is likely to get the first one's memory
      AlignedBuffer buffer(size);
      ASSERT_EQ(buffer.size(), size);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % (size >= kHugePage ? kHugePage : 64), 0u) << size;
      EXPECT_TRUE(std::all_of(buffer.data(), buffer.data() + size, [](uint8_t byte) { return byte == 0; })) << size;
      std::fill_n(buffer.data(), size, uint8_t{0xAB});
    }
  }
}

TEST(AlignedBuffer, EmptyHasNoData) {
  EXPECT_EQ(AlignedBuffer().data(), nullptr);
  EXPECT_EQ(AlignedBuffer(0).data(), nullptr);
  EXPECT_EQ(AlignedBuffer(0).size(), 0u);
}

TEST(AlignedBuffer, MovesLeaveTheSourceEmpty) {
  for (const size_t size : {size_t{100}, kHugePage + 100}) {
    AlignedBuffer a(size);
    a.data()[size - 1] = 7;
    AlignedBuffer b(std::move(a));
    EXPECT_EQ(a.data(), nullptr);
    EXPECT_EQ(a.size(), 0u);
    AlignedBuffer c(kHugePage);
    c = std::move(b);
    EXPECT_EQ(c.size(), size);
    EXPECT_EQ(c.data()[size - 1], 7);
    EXPECT_EQ(b.size(), 0u);
    AlignedBuffer& self = c;
    c = std::move(self);
    EXPECT_EQ(c.data()[size - 1], 7);
  }
}

TEST(AlignedBuffer, ReserveOnlyGrows) {
  AlignedBuffer buffer;
  buffer.Reserve(100);
  EXPECT_EQ(buffer.size(), 100u);
  buffer.data()[99] = 7;
  const uint8_t* data = buffer.data();
  buffer.Reserve(100);
  buffer.Reserve(10);
  EXPECT_EQ(buffer.data(), data);
  EXPECT_EQ(buffer.data()[99], 7);
  buffer.Reserve(kHugePage + 1);
  EXPECT_EQ(buffer.size(), kHugePage + 1);
  EXPECT_EQ(buffer.data()[99], 0);
  EXPECT_THROW(buffer.Reserve(size_t{1} << 60), std::bad_alloc);
  EXPECT_EQ(buffer.size(), 0u);
}

TEST(AlignedBuffer, ImpossibleSizesThrow) {
  EXPECT_THROW(AlignedBuffer(SIZE_MAX), std::bad_alloc);
  EXPECT_THROW(AlignedBuffer(SIZE_MAX - kHugePage), std::bad_alloc);
  EXPECT_THROW(AlignedBuffer(size_t{1} << 60), std::bad_alloc);
}

}  // namespace
}  // namespace pith
