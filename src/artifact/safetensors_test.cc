#include "artifact/safetensors.h"

#include <ctime>

#include "absl/strings/str_replace.h"
#include "artifact/test_files.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;

// {"a": F32 [2], "b": U8 [3]} and eleven bytes of data.
constexpr char kGoodHeader[] =
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
const char kGoodData[] = "\0\0\x80\x3f\0\0\0\x40\1\2\3";
std::string GoodData() { return std::string(kGoodData, 11); }

absl::StatusOr<SafetensorsHeader> Parse(const std::string& bytes) { return ParseSafetensorsHeader(bytes, bytes.size()); }

std::string Error(const std::string& bytes) {
  const auto header = Parse(bytes);
  if (header.ok()) return "accepted";
  EXPECT_EQ(header.status().code(), absl::StatusCode::kDataLoss);
  return std::string(header.status().message());
}

// The error of a header over `data_bytes` bytes of data.
std::string HeaderError(const std::string& header, size_t data_bytes) {
  return Error(SafetensorsBytes(header, std::string(data_bytes, 'x')));
}

TEST(Safetensors, ReadsTensorsInFileOrder) {
  const ScratchDirectory scratch;
  WriteTestFile(scratch.File("m.safetensors"), SafetensorsBytes(kGoodHeader, GoodData()));
  const auto file = SafetensorsFile::Open(scratch.File("m.safetensors"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->tensors().size(), 2u);
  EXPECT_EQ(file->tensors()[0].name, "a");
  EXPECT_EQ(file->tensors()[1].name, "b");
  EXPECT_EQ(file->metadata().at("format"), "pt");
  const SafetensorsTensor* a = file->Find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->dtype, DType::kF32);
  EXPECT_EQ(a->shape, Shape({2}));
  std::vector<float> values(2);
  ASSERT_TRUE(ConvertToFloat(*file->View(*a), absl::MakeSpan(values)).ok());
  EXPECT_EQ(values, (std::vector<float>{1.0f, 2.0f}));
  EXPECT_EQ(file->Bytes(*file->Find("b")), absl::MakeConstSpan(std::vector<uint8_t>{1, 2, 3}));
  EXPECT_EQ(file->Find("c"), nullptr);
}

TEST(Safetensors, AcceptsWhatTheRulesAllow) {
  EXPECT_TRUE(Parse(SafetensorsBytes("{}", "")).ok());
  EXPECT_TRUE(Parse(SafetensorsBytes("{}     ", "")).ok());  // padding
  EXPECT_TRUE(Parse(SafetensorsBytes(R"({"__metadata__":{}})", "")).ok());
  EXPECT_TRUE(Parse(SafetensorsBytes(R"({"s":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})", "12345678")).ok());  // rank 0
  EXPECT_TRUE(Parse(SafetensorsBytes(R"({"z":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]}})", "")).ok());
  // Empty tensors may lie at the start, between others and at the end.
  EXPECT_TRUE(
      Parse(SafetensorsBytes(R"({"z":{"dtype":"U8","shape":[0],"data_offsets":[2,2]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                             R"("y":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                             "xyz"))
          .ok());
  // Two F4 elements are one byte; four F6 elements are three.
  const auto packed = Parse(SafetensorsBytes(
      R"({"f":{"dtype":"F4","shape":[2],"data_offsets":[0,1]},"g":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[1,4]}})", "abcd"));
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_FALSE(packed->tensors[0].dtype.has_value());
  EXPECT_EQ(packed->tensors[0].type, "F4");
}

TEST(Safetensors, EveryTypeHasItsSize) {
  const std::vector<std::pair<std::string, int>> bits = {
      {"BOOL", 8},    {"F4", 4},          {"F6_E2M3", 6},     {"F6_E3M2", 6}, {"U8", 8},   {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8},
      {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16}, {"F16", 16}, {"BF16", 16},   {"I32", 32},
      {"U32", 32},    {"F32", 32},        {"C64", 64},        {"F64", 64},    {"I64", 64}, {"U64", 64}};
  for (const auto& [type, size] : bits) {
    const auto header = [&, type = type](int bytes) {
      return absl::StrCat(R"({"t":{"dtype":")", type, R"(","shape":[4],"data_offsets":[0,)", bytes, "]}}");
    };
    EXPECT_EQ(HeaderError(header(size / 2), size / 2), "accepted") << type;
    EXPECT_THAT(HeaderError(header(size / 2 + 1), size / 2 + 1), HasSubstr("data_offsets: expected ")) << type;
    EXPECT_EQ(ParseDType(type).has_value(),
              Parse(SafetensorsBytes(header(size / 2), std::string(size / 2, 'x')))->tensors[0].dtype.has_value());
  }
}

TEST(Safetensors, HeaderLength) {
  EXPECT_THAT(Error(""), HasSubstr("empty file"));
  EXPECT_THAT(Error("1234567"), HasSubstr("header length: expected 8 bytes, found a file of 7"));
  const std::string good = SafetensorsBytes(kGoodHeader, GoodData());
  EXPECT_THAT(Error(RawBytes<uint64_t>(100'000'001) + good.substr(8)), HasSubstr("expected at most 100000000 bytes, found 100000001"));
  EXPECT_THAT(Error(RawBytes<uint64_t>(~uint64_t{0}) + good.substr(8)), HasSubstr("header length"));
  EXPECT_THAT(Error(RawBytes<uint64_t>(good.size() - 7) + good.substr(8)), HasSubstr("bytes that follow, found"));
  EXPECT_THAT(HeaderError("", 4), HasSubstr("expected \"{\" at byte 8, found nothing"));
  EXPECT_THAT(Error("GGUF\x03\x00\x00\x00garbage that is long enough"), HasSubstr("found a GGUF file"));
  EXPECT_THAT(Error("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"), HasSubstr("Git LFS pointer"));
}

TEST(Safetensors, HeaderIsOneObjectFromTheFirstByte) {
  EXPECT_THAT(HeaderError(" {}", 0), HasSubstr("expected \"{\" at byte 8, found \" \""));
  EXPECT_THAT(HeaderError("[]", 0), HasSubstr("found \"[\""));
  EXPECT_THAT(HeaderError("\n{}", 0), HasSubstr("found \"\\x0A\""));
  EXPECT_THAT(HeaderError("{}\n", 0), HasSubstr("expected \"}\" followed by spaces only, found \"\\x0A\" at byte 10"));
  EXPECT_THAT(HeaderError("{} \t ", 0), HasSubstr("followed by spaces only"));
  EXPECT_THAT(HeaderError(std::string("{}\0", 3), 0), HasSubstr("followed by spaces only"));
  EXPECT_THAT(HeaderError("{}{}", 0), HasSubstr("syntax error at byte 1"));
  EXPECT_THAT(HeaderError("{\"a\":}", 0), HasSubstr("syntax error"));
  EXPECT_THAT(HeaderError("{\"\xff\":{}}", 0), HasSubstr("syntax error"));  // not UTF-8
  EXPECT_THAT(HeaderError("{/**/}", 0), HasSubstr("syntax error"));
}

TEST(Safetensors, EntriesHaveExactlyTheirThreeFields) {
  EXPECT_THAT(HeaderError(R"({"a":1})", 0), HasSubstr("tensor \"a\": expected an object, found a number"));
  EXPECT_THAT(HeaderError(R"({"a":[]})", 0), HasSubstr("tensor \"a\": expected an object, found an array"));
  EXPECT_THAT(HeaderError(R"({"a":null})", 0), HasSubstr("found null"));
  EXPECT_THAT(HeaderError(R"({"a":{}})", 0), HasSubstr("found no dtype"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1), HasSubstr("found no shape"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[1]}})", 1), HasSubstr("found no data_offsets"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"extra":1}})", 1), HasSubstr("found \"extra\""));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}})", 1),
              HasSubstr("\"shape\" once, found it twice"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,1]}})", 1), HasSubstr("found more than two offsets"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", 1), HasSubstr("found 1 offsets"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}})", 1), HasSubstr("found a negative integer"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", 1),
              HasSubstr("shape: expected an array of dimensions"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1), HasSubstr("found a negative integer"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", 1), HasSubstr("found an array"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":1,"data_offsets":[0,1]}})", 1), HasSubstr("found a number"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[{}],"data_offsets":[0,1]}})", 1), HasSubstr("found an object"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}})", 1), HasSubstr("found a string"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,1]}})", 1),
              HasSubstr("dtype: expected a type such as \"BF16\", found a number"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"f32","shape":[1],"data_offsets":[0,4]}})", 4), HasSubstr("found \"f32\", which is no type"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"","shape":[1],"data_offsets":[0,4]}})", 4), HasSubstr("which is no type"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"I128","shape":[9999999],"data_offsets":[99999,5]}})", 4), HasSubstr("I128"));
  std::string dims = "1";
  for (int i = 0; i < 32; ++i) dims += ",1";
  EXPECT_THAT(HeaderError(absl::StrCat(R"({"a":{"dtype":"U8","shape":[)", dims, R"(],"data_offsets":[0,1]}})"), 1),
              HasSubstr("more than 32 dimensions"));
}

TEST(Safetensors, NamesAreDistinctAndEscapedInMessages) {
  EXPECT_THAT(
      HeaderError(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1),
      HasSubstr("found tensor \"a\" twice"));
  // The same name once escaped, once not.
  EXPECT_THAT(
      HeaderError(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2),
      HasSubstr("twice"));
  EXPECT_THAT(HeaderError(R"({"evil\u001b[2J\n":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})", 4), HasSubstr("\"evil\\x1B[2J\\x0A\""));
}

TEST(Safetensors, MetadataMapsStringsToStrings) {
  EXPECT_THAT(HeaderError(R"({"__metadata__":{"a":1}})", 0), HasSubstr("__metadata__: expected strings, found a number for \"a\""));
  EXPECT_THAT(HeaderError(R"({"__metadata__":{"a":{}}})", 0), HasSubstr("found an object"));
  EXPECT_THAT(HeaderError(R"({"__metadata__":{"a":["b"]}})", 0), HasSubstr("found an array"));
  EXPECT_THAT(HeaderError(R"({"__metadata__":{"a":null}})", 0), HasSubstr("found null"));
  EXPECT_THAT(HeaderError(R"({"__metadata__":{"a":"x","a":"x"}})", 0), HasSubstr("found \"a\" twice"));
  EXPECT_THAT(HeaderError(R"({"__metadata__":"pt"})", 0), HasSubstr("found a string"));
  EXPECT_THAT(HeaderError(R"({"__metadata__":{},"__metadata__":{}})", 0), HasSubstr("twice"));
}

TEST(Safetensors, SizesDoNotOverflow) {
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"F32","shape":[9223372036854775807],"data_offsets":[0,4]}})", 4),
              HasSubstr("less than 2^64 bits"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]}})", 4), HasSubstr("2^63"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4]}})", 4), HasSubstr("2^64"));
  // 2^32 * 2^32 wraps to 0, 2^33 * 2^28 * 32 bits wraps to 2^66 mod 2^64 = 0.
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0), HasSubstr("2^64 bits"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"F32","shape":[8589934592,268435456],"data_offsets":[0,0]}})", 0), HasSubstr("2^64 bits"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,0],"data_offsets":[0,0]}})", 0), HasSubstr("2^64 bits"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2),
              HasSubstr("expected whole bytes, found 12 bits of F4"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8),
              HasSubstr("expected begin <= end, found [8, 0]"));
  EXPECT_THAT(HeaderError(R"({"a":{"dtype":"F32","shape":[1000000000],"data_offsets":[0,8]}})", 8),
              HasSubstr("expected 4000000000 bytes for F32 [1000000000], found 8 in [0, 8]"));
}

TEST(Safetensors, RangesCoverTheDataExactly) {
  const auto two = [](int b0, int e0, int b1, int e1) {
    return absl::StrCat(R"({"a":{"dtype":"U8","shape":[)", e0 - b0, R"(],"data_offsets":[)", b0, ",", e0,
                        R"(]},"b":{"dtype":"U8","shape":[)", e1 - b1, R"(],"data_offsets":[)", b1, ",", e1, "]}}");
  };
  EXPECT_EQ(HeaderError(two(0, 4, 4, 8), 8), "accepted");
  EXPECT_EQ(HeaderError(two(4, 8, 0, 4), 8), "accepted");
  EXPECT_THAT(HeaderError(two(1, 4, 4, 8), 8),
              HasSubstr("tensor \"a\": data_offsets: expected to begin at 0 (the start of the data), found [1, 4]"));
  EXPECT_THAT(HeaderError(two(0, 4, 5, 8), 8),
              HasSubstr("tensor \"b\": data_offsets: expected to begin at 4 (the end of tensor \"a\"), found [5, 8]"));
  EXPECT_THAT(HeaderError(two(0, 4, 3, 8), 8), HasSubstr("expected to begin at 4"));  // overlap
  EXPECT_THAT(HeaderError(two(0, 8, 0, 8), 8), HasSubstr("expected to begin at 8"));  // the same range twice
  EXPECT_THAT(HeaderError(two(0, 8, 5, 5), 8), HasSubstr("expected to begin at 8"));  // empty inside another
  EXPECT_THAT(HeaderError(two(0, 4, 4, 8), 7), HasSubstr("expected to end within the 7 bytes of data in the file, found [4, 8]"));
  EXPECT_THAT(HeaderError(two(0, 4, 4, 8), 9), HasSubstr("expected 8 bytes after the header, found 9"));
  EXPECT_THAT(HeaderError("{}", 1), HasSubstr("expected 0 bytes after the header, found 1"));
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string good = SafetensorsBytes(kGoodHeader, GoodData());
  ASSERT_TRUE(Parse(good).ok());
  for (size_t n = 0; n < good.size(); ++n) EXPECT_NE(Error(good.substr(0, n)), "accepted") << n;
  EXPECT_NE(Error(good + "x"), "accepted");
}

TEST(Safetensors, OpenNamesTheFile) {
  const ScratchDirectory scratch;
  EXPECT_EQ(SafetensorsFile::Open(scratch.File("absent.safetensors")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(SafetensorsFile::Open(scratch.path()).status().code(), absl::StatusCode::kDataLoss);
  WriteTestFile(scratch.File("bad.safetensors"), SafetensorsBytes("{}", "x"));
  EXPECT_THAT(SafetensorsFile::Open(scratch.File("bad.safetensors")).status().message(), HasSubstr("bad.safetensors: data: "));
  WriteTestFile(scratch.File("pytorch_model.bin"), SafetensorsBytes("{}", ""));
  const auto pickle = SafetensorsFile::Open(scratch.File("pytorch_model.bin"));
  EXPECT_EQ(pickle.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(pickle.status().message(), HasSubstr("use the repository's safetensors files"));
}

TEST(Safetensors, TypesWithoutADTypeCannotBeViewed) {
  const ScratchDirectory scratch;
  WriteTestFile(scratch.File("m.safetensors"), SafetensorsBytes(R"({"f":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", "x"));
  const auto file = SafetensorsFile::Open(scratch.File("m.safetensors"));
  ASSERT_TRUE(file.ok());
  const auto view = file->View(*file->Find("f"));
  EXPECT_EQ(view.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(view.status().message(), HasSubstr("tensor \"f\""));
}

// A header of 200,000 tensors is linear work: under a second even in slow builds.
TEST(Safetensors, LargeHeadersAreCheap) {
  std::string header = "{";
  constexpr int kTensors = 200'000;
  for (int i = 0; i < kTensors; ++i) {
    absl::StrAppend(&header, i == 0 ? "" : ",", "\"model.layers.", i, R"(.weight":{"dtype":"U8","shape":[1],"data_offsets":[)", i, ",",
                    i + 1, "]}");
  }
  header += "}";
  const std::string bytes = SafetensorsBytes(header, std::string(kTensors, 'x'));
  const std::clock_t start = std::clock();
  const auto parsed = Parse(bytes);
  const std::clock_t elapsed = std::clock() - start;
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->tensors.size(), static_cast<size_t>(kTensors));
  EXPECT_LT(elapsed, 5 * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace pith
