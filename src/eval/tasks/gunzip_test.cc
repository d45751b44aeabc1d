#include "eval/tasks/gunzip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

namespace pith {
namespace {

using ::testing::HasSubstr;

constexpr size_t kLimit = 1 << 20;

std::string Gzip(const std::string& content) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(content.size() + 1024, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(GunzipTest, GivesBackWhatWasCompressed) {
  std::string content;
  for (int i = 0; i < 60'000; ++i) content += static_cast<char>(i * i % 251);
  EXPECT_TRUE(IsGzip(Gzip(content)));
  EXPECT_EQ(*Gunzip(Gzip(content), kLimit), content);
  EXPECT_EQ(*Gunzip(Gzip(""), kLimit), "");
  EXPECT_EQ(*Gunzip(Gzip("one, ") + Gzip("two"), kLimit), "one, two");
  EXPECT_FALSE(IsGzip("{\"a\":1}"));
}

TEST(GunzipTest, RefusesDamageAndBombs) {
  const std::string good = Gzip(std::string(100'000, 'a'));
  EXPECT_THAT(Gunzip(good.substr(0, good.size() - 4), kLimit).status().message(), HasSubstr("its end missing"));
  std::string flipped = good;
  flipped[good.size() - 6] ^= 1;  // a bit of the checksum
  EXPECT_TRUE(absl::IsDataLoss(Gunzip(flipped, kLimit).status()));
  EXPECT_TRUE(absl::IsDataLoss(Gunzip(good + "tail", kLimit).status()));
  EXPECT_THAT(Gunzip(good, 99'999).status().message(), HasSubstr("at most 99999 bytes"));
  EXPECT_TRUE(Gunzip(good, 100'000).ok());
}

}  // namespace
}  // namespace pith
