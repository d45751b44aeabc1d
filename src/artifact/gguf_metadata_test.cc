#include "artifact/gguf_metadata.h"

#include <cmath>
#include <limits>

#include "artifact/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;

// Entries of a key-value section.
std::string Entry(absl::string_view key, uint32_t type, absl::string_view raw) {
  return absl::StrCat(GgufBuilder::String(key), RawBytes(type), raw);
}

// Owns the bytes a GgufMetadata borrows.
struct Parsed {
  std::string bytes;
  absl::StatusOr<GgufMetadata> metadata;
};

std::unique_ptr<Parsed> Parse(std::string bytes, uint64_t count) {
  auto parsed = std::make_unique<Parsed>(Parsed{std::move(bytes), absl::UnknownError("")});
  ByteReader reader(parsed->bytes);
  parsed->metadata = GgufMetadata::Parse(reader, count);
  return parsed;
}

std::string Error(std::string bytes, uint64_t count = 1) {
  const auto parsed = Parse(std::move(bytes), count);
  if (parsed->metadata.ok()) return "accepted";
  EXPECT_EQ(parsed->metadata.status().code(), absl::StatusCode::kDataLoss);
  return std::string(parsed->metadata.status().message());
}

template <typename T> std::string Message(const absl::StatusOr<T>& value) {
  return value.ok() ? "accepted" : std::string(value.status().message());
}

TEST(GgufMetadata, IntegersOfEveryType) {
  const auto parsed = Parse(absl::StrCat(Entry("u8", 0, RawBytes<uint8_t>(200)), Entry("i8", 1, RawBytes<int8_t>(-100)),
                                         Entry("u16", 2, RawBytes<uint16_t>(60000)), Entry("i16", 3, RawBytes<int16_t>(-30000)),
                                         Entry("u32", 4, RawBytes<uint32_t>(4000000000u)), Entry("i32", 5, RawBytes<int32_t>(-5)),
                                         Entry("u64", 10, RawBytes<uint64_t>(1)), Entry("i64", 11, RawBytes<int64_t>(-(int64_t{1} << 40))),
                                         Entry("huge", 10, RawBytes<uint64_t>(~uint64_t{0})), Entry("f32", 6, RawBytes(1.0f))),
                            10);
  ASSERT_TRUE(parsed->metadata.ok()) << parsed->metadata.status();
  const GgufMetadata& m = *parsed->metadata;
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(*m.GetInt("u8", kMin, kMax), 200);
  EXPECT_EQ(*m.GetInt("i8", kMin, kMax), -100);
  EXPECT_EQ(*m.GetInt("u16", kMin, kMax), 60000);
  EXPECT_EQ(*m.GetInt("i16", kMin, kMax), -30000);
  EXPECT_EQ(*m.GetInt("u32", kMin, kMax), 4000000000);
  EXPECT_EQ(*m.GetInt("i32", kMin, kMax), -5);
  EXPECT_EQ(*m.GetInt("u64", kMin, kMax), 1);
  EXPECT_EQ(*m.GetInt("i64", kMin, kMax), -(int64_t{1} << 40));
  EXPECT_THAT(Message(m.GetInt("huge", kMin, kMax)), HasSubstr("found u64 of 2^63 or more"));
  EXPECT_EQ(Message(m.GetInt("f32", 0, 5)), "f32: expected an integer in [0, 5], found f32 1");
  EXPECT_EQ(Message(m.GetInt("u8", 0, 199)), "u8: expected an integer in [0, 199], found u8 200");
  EXPECT_EQ(Message(m.GetInt("i32", -4, 9)), "i32: expected an integer in [-4, 9], found i32 -5");
  EXPECT_EQ(Message(m.GetInt("absent", 1, 2)), "absent: expected an integer in [1, 2], found nothing");
  EXPECT_EQ(*m.GetInt("absent", 1, 2, 7), 7);
  EXPECT_FALSE(m.GetInt("u8", 0, 199, 7).ok());  // a default does not hide a bad value
}

TEST(GgufMetadata, NumbersBooleansStrings) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto parsed = Parse(
      absl::StrCat(Entry("f32", 6, RawBytes(1e-6f)), Entry("f64", 12, RawBytes(2.5)), Entry("inf", 6, RawBytes(infinity)),
                   Entry("nan", 6, RawBytes(std::nanf(""))), Entry("yes", 7, "\x01"), Entry("no", 7, RawBytes<uint8_t>(0)),
                   Entry("name", 8, GgufBuilder::String("a\nb"))),
      7);
  ASSERT_TRUE(parsed->metadata.ok()) << parsed->metadata.status();
  const GgufMetadata& m = *parsed->metadata;
  EXPECT_EQ(*m.GetDouble("f32", 0, 1), static_cast<double>(1e-6f));
  EXPECT_EQ(*m.GetDouble("f64", 0, 3), 2.5);
  EXPECT_THAT(Message(m.GetDouble("inf", 0, 1e300)), HasSubstr("expected a number in [0, 1e+300], found f32 inf"));
  EXPECT_THAT(Message(m.GetDouble("nan", 0, 1e300)), HasSubstr("found f32 nan"));
  EXPECT_EQ(*m.GetDouble("absent", 0, 1, 0.25), 0.25);
  EXPECT_THAT(Message(m.GetDouble("yes", 0, 1)), HasSubstr("found bool true"));
  EXPECT_EQ(*m.GetBool("yes"), std::optional<bool>(true));
  EXPECT_EQ(*m.GetBool("no"), std::optional<bool>(false));
  EXPECT_EQ(*m.GetBool("absent"), std::nullopt);
  EXPECT_THAT(Message(m.GetBool("f32")), HasSubstr("f32: expected a bool, found f32 1e-06"));
  EXPECT_EQ(*m.GetString("name"), "a\nb");
  EXPECT_EQ(*m.GetString("absent", "x"), "x");
  EXPECT_THAT(Message(m.GetString("absent")), HasSubstr("absent: expected a string, found nothing"));
  EXPECT_THAT(Message(m.GetInt("name", 0, 1)), HasSubstr("found string \"a\\x0Ab\""));
}

TEST(GgufMetadata, Arrays) {
  const std::string strings = absl::StrCat(RawBytes<uint32_t>(8), RawBytes<uint64_t>(3), GgufBuilder::String("a"), GgufBuilder::String(""),
                                           GgufBuilder::String("ccc"));
  const std::string ints = absl::StrCat(RawBytes<uint32_t>(5), RawBytes<uint64_t>(3), RawBytes(std::vector<int32_t>{1, -2, 3}));
  const std::string floats = absl::StrCat(RawBytes<uint32_t>(6), RawBytes<uint64_t>(2), RawBytes(std::vector<float>{0.5f, std::nanf("")}));
  const std::string empty = absl::StrCat(RawBytes<uint32_t>(8), RawBytes<uint64_t>(0));
  const auto parsed = Parse(absl::StrCat(Entry("s", 9, strings), Entry("i", 9, ints), Entry("f", 9, floats), Entry("e", 9, empty),
                                         Entry("n", 4, RawBytes<uint32_t>(1))),
                            5);
  ASSERT_TRUE(parsed->metadata.ok()) << parsed->metadata.status();
  const GgufMetadata& m = *parsed->metadata;
  EXPECT_EQ(*m.GetStrings("s"), (std::vector<std::string>{"a", "", "ccc"}));
  EXPECT_EQ(*m.GetInts("i", -2, 3), (std::vector<int64_t>{1, -2, 3}));
  EXPECT_THAT(Message(m.GetInts("i", 0, 3)), HasSubstr("i: expected integers in [0, 3], found array of 3 i32 with -2 at index 1"));
  EXPECT_THAT(Message(m.GetFloats("f")), HasSubstr("expected finite numbers, found array of 2 f32 with nan at index 1"));
  EXPECT_TRUE(m.GetStrings("e")->empty());
  EXPECT_TRUE(m.GetStrings("absent")->empty());
  EXPECT_THAT(Message(m.GetStrings("i")), HasSubstr("i: expected an array of strings, found array of 3 i32"));
  EXPECT_THAT(Message(m.GetInts("s", 0, 1)), HasSubstr("found array of 3 string"));
  EXPECT_THAT(Message(m.GetFloats("n")), HasSubstr("n: expected an array, found u32 1"));
  EXPECT_THAT(Message(m.GetInt("i", 0, 1)), HasSubstr("found array of 3 i32"));
}

TEST(GgufMetadata, Keys) {
  EXPECT_THAT(Error(Entry("", 0, "x")), HasSubstr("key: expected a name, found an empty string"));
  EXPECT_THAT(Error(Entry("a\x01", 0, "x")), HasSubstr("expected printable ASCII, found \"a\\x01\""));
  EXPECT_THAT(Error(Entry("\xC3\xA9", 0, "x")), HasSubstr("expected printable ASCII"));
  EXPECT_EQ(Error(Entry(std::string(65'535, 'k'), 0, "x")), "accepted");
  EXPECT_THAT(Error(Entry(std::string(65'536, 'k'), 0, "x")), HasSubstr("metadata key 1 of 1: expected at most 65535 bytes, found 65536"));
  EXPECT_THAT(Error(Entry("a", 0, "x") + Entry("a", 1, "y"), 2), HasSubstr("a: expected the key once, found it twice"));
  EXPECT_THAT(Error(RawBytes(~uint64_t{0}) + "key"), HasSubstr("expected at most 65535 bytes"));
  EXPECT_THAT(Error(RawBytes<uint64_t>(100) + "key"), HasSubstr("expected 100 bytes at offset 8, found 3"));
}

TEST(GgufMetadata, Values) {
  EXPECT_THAT(Error(Entry("a", 13, "x")), HasSubstr("a: value type: expected 0 to 12, found 13"));
  EXPECT_THAT(Error(Entry("a", 0xFFFFFFFF, "x")), HasSubstr("value type"));
  EXPECT_THAT(Error(Entry("a", 4, "xyz")), HasSubstr("a: value: expected 4 bytes"));
  EXPECT_THAT(Error(Entry("a", 7, "\x02")), HasSubstr("a: boolean: expected 0 or 1, found 2"));
  EXPECT_THAT(Error(Entry("a", 8, RawBytes<uint64_t>(16 * 1024 * 1024 + 1))),
              HasSubstr("string: expected at most 16777216 bytes, found 16777217"));
  EXPECT_THAT(Error(Entry("a", 8, RawBytes(~uint64_t{0}))), HasSubstr("string: expected at most"));
  EXPECT_THAT(Error(Entry("a", 8, RawBytes<uint64_t>(5) + "abc")), HasSubstr("string: expected 5 bytes"));
  EXPECT_THAT(Error(Entry("a", 8, "abc")), HasSubstr("string: expected 8 bytes"));
}

TEST(GgufMetadata, ArrayCounts) {
  const auto array = [](uint32_t type, uint64_t count, absl::string_view raw) {
    return Entry("a", 9, absl::StrCat(RawBytes(type), RawBytes(count), raw));
  };
  EXPECT_EQ(Error(array(0, 3, "abc")), "accepted");
  EXPECT_THAT(Error(array(0, 4, "abc")), HasSubstr("array length: expected at most 3 elements in the 3 bytes left, found 4"));
  EXPECT_THAT(Error(array(5, 1, "abc")), HasSubstr("expected at most 0 elements"));
  EXPECT_THAT(Error(array(10, uint64_t{1} << 61, "12345678")), HasSubstr("expected at most 1 elements"));  // 2^61 * 8 wraps to 0
  EXPECT_THAT(Error(array(8, 1'000'000'000, std::string(80, '\0'))),
              HasSubstr("expected at most 10 elements in the 80 bytes left, found 1000000000"));
  EXPECT_THAT(Error(array(8, 2, GgufBuilder::String("abcdefgh"))), HasSubstr("array string: expected 8 bytes"));
  EXPECT_THAT(Error(array(8, 1, RawBytes<uint64_t>(16 * 1024 * 1024 + 1))), HasSubstr("array string: expected at most 16777216"));
  EXPECT_THAT(Error(array(9, 1, std::string(64, '\0'))), HasSubstr("found an array of arrays"));
  EXPECT_THAT(Error(array(13, 1, "x")), HasSubstr("array element type: expected 0 to 12, found 13"));
  EXPECT_THAT(Error(array(7, 3, absl::string_view("\0\1\2", 3))), HasSubstr("boolean: expected 0 or 1, found 2"));
}

}  // namespace
}  // namespace pith
