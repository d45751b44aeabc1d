#include "artifact/byte_reader.h"

#include <limits>

#include "artifact/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(ByteReader, ReadsLittleEndianAndStopsAtTheEnd) {
  const std::string bytes("\x01\x02\x03\x04\x05\x06\x07", 7);
  ByteReader reader(bytes);
  EXPECT_EQ(*reader.Read<uint16_t>("a"), 0x0201);
  EXPECT_EQ(reader.position(), 2u);
  EXPECT_EQ(*reader.ReadBytes(3, "b"), "\x03\x04\x05");
  EXPECT_EQ(reader.remaining(), 2u);
  const auto beyond = reader.Read<uint32_t>("thing");
  EXPECT_EQ(beyond.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(beyond.status().message(), "thing: expected 4 bytes at offset 5, found 2 before the end of the file");
  EXPECT_EQ(reader.position(), 5u);  // a failed read moves nothing
  EXPECT_FALSE(reader.ReadBytes(std::numeric_limits<uint64_t>::max(), "c").ok());
  EXPECT_FALSE(reader.ReadBytes(std::numeric_limits<uint64_t>::max() - 4, "c").ok());
  EXPECT_EQ(*reader.ReadBytes(2, "d"), "\x06\x07");
  EXPECT_EQ(*reader.ReadBytes(0, "e"), "");
  EXPECT_FALSE(reader.Read<uint8_t>("f").ok());
}

}  // namespace
}  // namespace pith
