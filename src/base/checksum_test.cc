#include "base/checksum.h"

#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace pith {
namespace {

std::vector<uint8_t> Bytes(size_t size) {
  std::vector<uint8_t> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + (i >> 8));
  return bytes;
}

// Of the empty message Poly1305 is the second half of its key.
TEST(Checksum, IsPoly1305) {
  const Checksum sum = ComputeChecksum({});
  EXPECT_EQ(std::string(sum.begin(), sum.end()), " prepacked bytes");
}

TEST(Checksum, EveryBitAndTheLengthCount) {
  std::vector<uint8_t> bytes = Bytes(100);
  std::set<Checksum> seen = {ComputeChecksum(bytes), ComputeChecksum(absl::MakeSpan(bytes).first(99))};
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] = static_cast<uint8_t>(bytes[i] ^ (1 << bit));
      seen.insert(ComputeChecksum(bytes));
      bytes[i] = static_cast<uint8_t>(bytes[i] ^ (1 << bit));
    }
  }
  EXPECT_EQ(seen.size(), 802u);
  EXPECT_EQ(ComputeChecksum(bytes), ComputeChecksum(Bytes(100)));
  bytes.push_back(0);  // a file with zeros where bytes never arrived
  EXPECT_FALSE(seen.contains(ComputeChecksum(bytes)));
}

// The vector code of the library takes over for long messages.
TEST(Checksum, LongMessages) {
  std::vector<uint8_t> bytes = Bytes(1 << 20);
  const Checksum whole = ComputeChecksum(bytes);
  bytes[777777] ^= 1;
  EXPECT_NE(ComputeChecksum(bytes), whole);
}

}  // namespace
}  // namespace pith
