#include "base/foreign_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;

TEST(ForeignFile, RecognizesWhatDownloadsLeaveBehind) {
  EXPECT_THAT(DescribeContent("version https://git-lfs.github.com/spec/v1\noid sha256:00\n"), HasSubstr("Git LFS"));
  EXPECT_THAT(DescribeContent("\n <!DOCTYPE HTML><html>"), HasSubstr("HTML"));
  EXPECT_THAT(DescribeContent("<html lang=en>"), HasSubstr("HTML"));
  EXPECT_THAT(DescribeContent(""), HasSubstr("empty"));
  EXPECT_THAT(DescribeContent("{\"error\":\"Repository not found\"}"), HasSubstr("JSON"));
}

TEST(ForeignFile, RecognizesPicklesAndArchives) {
  EXPECT_THAT(DescribeContent(absl::string_view("PK\x03\x04\x00\x00", 6)), HasSubstr("pickle"));
  EXPECT_THAT(DescribeContent("\x80\x02}q"), HasSubstr("pickle"));
  EXPECT_THAT(DescribeContent("\x80\x05\x95"), HasSubstr("pickle"));
  EXPECT_EQ(DescribeContent("\x80\x06\x95"), "");
  EXPECT_THAT(DescribeContent("\x1F\x8B\x08"), HasSubstr("gzip"));
}

TEST(ForeignFile, TellsModelFormatsApart) {
  EXPECT_EQ(DescribeContent(absl::string_view("GGUF\x03\x00\x00\x00", 8)), "a GGUF file");
  EXPECT_EQ(DescribeContent(absl::string_view("\x40\0\0\0\0\0\0\0{\"a\"", 12)), "a safetensors file");
  EXPECT_EQ(DescribeContent("plain bytes"), "");
}

TEST(ForeignFile, PickleNames) {
  EXPECT_TRUE(HasPickleName("dir/pytorch_model.bin"));
  EXPECT_TRUE(HasPickleName("MODEL.PT"));
  EXPECT_TRUE(HasPickleName("x.ckpt"));
  EXPECT_FALSE(HasPickleName("model.safetensors"));
  EXPECT_FALSE(HasPickleName("bin"));
}

TEST(ForeignFile, FoundContentIsEmptyForUnknownBytes) {
  EXPECT_EQ(FoundContent("GGUF...."), ", found a GGUF file");
  EXPECT_EQ(FoundContent("abc"), "");
}

}  // namespace
}  // namespace pith
