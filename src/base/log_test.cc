#include "base/log.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(InitLogging, AcceptsTheDocumentedLevelsOnly) {
  for (const char* level : {"trace", "debug", "info", "warn", "error", "off"}) EXPECT_TRUE(InitLogging(level)) << level;
  for (const char* level : {"", "verbose", "INFO", "info "}) EXPECT_FALSE(InitLogging(level)) << level;
}

TEST(InitLogging, WritesToStderrAtOrAboveTheLevel) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  ASSERT_TRUE(InitLogging("warn"));
  spdlog::info("quiet");
  spdlog::warn("loud");
  spdlog::default_logger()->flush();
  const std::string error = testing::internal::GetCapturedStderr();
  EXPECT_THAT(error, testing::HasSubstr("loud"));
  EXPECT_THAT(error, testing::Not(testing::HasSubstr("quiet")));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace pith
