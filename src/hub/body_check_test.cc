#include "hub/body_check.h"

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

const RepoFile& File() {
  static const RepoFile file{"model.safetensors", 1000, {ContentId::Kind::kSha256, std::string(64, 'a')}};
  return file;
}

HttpClientResponse Answer(int status, std::map<std::string, std::string> headers) {
  return {.status = status, .url = "https://h/f", .headers = std::move(headers)};
}

std::string Message(const HttpClientResponse& response, int64_t first = 100, int64_t last = 199, absl::string_view piece = "") {
  const auto range = CheckBody(response, File(), first, last, piece);
  EXPECT_EQ(ToExitCode(range.status()), kExitBadFile);
  return std::string(range.status().message());
}

TEST(BodyCheck, TakesTheRangeAndTheWholeFile) {
  const auto range = *CheckBody(Answer(206, {{"content-range", "bytes 100-199/1000"}, {"content-length", "100"}}), File(), 100, 199, "");
  EXPECT_EQ(range.first, 100);
  EXPECT_EQ(range.bytes, 100);
  const auto rest = *CheckBody(Answer(206, {{"content-range", "bytes 100-999/1000"}}), File(), 100, -1, "");
  EXPECT_EQ(rest.bytes, 900);
  const auto whole = *CheckBody(
      Answer(200, {{"content-length", "1000"}, {"x-linked-size", "1000"}, {"x-linked-etag", '"' + std::string(64, 'a') + '"'}}), File(),
      100, 199, "");
  EXPECT_EQ(whole.first, 0);
  EXPECT_EQ(whole.bytes, 1000);
  EXPECT_TRUE(CheckBody(Answer(200, {}), File(), 0, -1, "").ok());
}

TEST(BodyCheck, AnotherRangeOrSizeIsRefused) {
  for (const char* bad : {"", "bytes 0-99/1000", "bytes 100-198/1000", "bytes 100-199/1001", "bytes 100-199/*", "bytes */1000",
                          "100-199/1000", "bytes 100", "bytes 1/2-3"}) {
    EXPECT_THAT(Message(Answer(206, {{"content-range", bad}})), HasSubstr("expected bytes 100-199 of 1000")) << bad;
  }
  EXPECT_THAT(Message(Answer(200, {{"content-length", "134"}}), 0, -1, "version https://git-lfs.github.com/spec/v1\n"),
              HasSubstr("expected 1000 bytes as in the listing, found 134, found a Git LFS pointer"));
}

TEST(BodyCheck, WhatTheHubSaysOfTheFileMustAgree) {
  EXPECT_THAT(Message(Answer(200, {{"x-linked-etag", "W/\"" + std::string(64, 'b') + '"'}})), HasSubstr("X-Linked-Etag bbbb"));
  EXPECT_THAT(Message(Answer(200, {{"x-linked-size", "999"}})), HasSubstr("X-Linked-Size 999"));
  EXPECT_THAT(Message(Answer(200, {{"content-type", "text/html; charset=utf-8"}})), HasSubstr("found an HTML page"));
}

}  // namespace
}  // namespace pith
