#include "server/api_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"

namespace pith {
namespace {

TEST(ApiErrorTest, EveryKindOfFailureHasItsStatusTypeAndCode) {
  struct Example {
    absl::Status status;
    int http_status;
    const char *type, *param, *code;
  };
  const Example examples[] = {
      {FieldError("top_p", "expected 1"), 400, "invalid_request_error", "top_p", ""},
      {absl::OutOfRangeError("too long"), 400, "invalid_request_error", "", "context_length_exceeded"},
      {UsageError("no JSON"), 400, "invalid_request_error", "", ""},
      {NotSupportedError("tools"), 400, "invalid_request_error", "", ""},
      {absl::NotFoundError("no such model"), 404, "not_found_error", "model", "model_not_found"},
      {absl::ResourceExhaustedError("queue full"), 429, "rate_limit_error", "", "rate_limit_exceeded"},
      {UnavailableError("shutting down"), 503, "unavailable_error", "", ""},
  };
  for (const Example& example : examples) {
    const ApiError error = ToApiError(example.status);
    EXPECT_EQ(error.status, example.http_status) << example.status;
    EXPECT_EQ(error.message, example.status.message());
    EXPECT_EQ(error.type, example.type) << example.status;
    EXPECT_EQ(error.param, example.param) << example.status;
    EXPECT_EQ(error.code, example.code) << example.status;
  }
}

TEST(ApiErrorTest, WhatTheClientWroteDecidesNothing) {
  EXPECT_EQ(ToApiError(FieldError("stop", "expected a string, found \"context length\"")).code, "");
}

TEST(ApiErrorTest, OurInsidesStayInside) {
  for (const absl::Status& status : {BugError("block 7 owned twice"), BadFileError("model.safetensors"), IoError("disk")}) {
    const ApiError error = ToApiError(status);
    EXPECT_EQ(error.status, 500);
    EXPECT_EQ(error.type, "server_error");
    EXPECT_EQ(error.message, "internal error");
  }
}

TEST(ApiErrorTest, BodyAndHeadersAreThoseOfTheApi) {
  const HttpResponse full = ToResponse(MakeApiError(429, "queue full"));
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(full.body, R"({"error":{"message":"queue full","type":"rate_limit_error","param":null,"code":null}})");
  EXPECT_THAT(full.headers, testing::ElementsAre(testing::Pair("Retry-After", "1")));
  EXPECT_TRUE(ToResponse(MakeApiError(400, "x")).headers.empty());
}

}  // namespace
}  // namespace pith
