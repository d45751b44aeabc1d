#include "hub/hub_settings.h"

#include <map>

#include "base/file.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Variables = std::map<std::string, std::string>;

absl::StatusOr<HubSettings> Read(const Variables& variables) {
  return ReadHubSettings([&](const char* name) {
    const auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

TEST(HubSettings, TheCacheIsFoundInTheOrderOfTheHubsOwnClient) {
  Variables variables = {{"HOME", "/h"}};
  EXPECT_EQ(Read(variables)->cache_directory, "/h/.cache/huggingface/hub");
  variables["XDG_CACHE_HOME"] = "/x";
  EXPECT_EQ(Read(variables)->cache_directory, "/x/huggingface/hub");
  variables["HF_HOME"] = "~/hf";
  EXPECT_EQ(Read(variables)->cache_directory, "/h/hf/hub");
  variables["HUGGINGFACE_HUB_CACHE"] = "/old";
  EXPECT_EQ(Read(variables)->cache_directory, "/old");
  variables["HF_HUB_CACHE"] = "/cache";
  EXPECT_EQ(Read(variables)->cache_directory, "/cache");
  variables["HF_HUB_CACHE"] = variables["HUGGINGFACE_HUB_CACHE"] = variables["HF_HOME"] = "";
  EXPECT_EQ(Read(variables)->cache_directory, "/x/huggingface/hub");
  EXPECT_EQ(ToExitCode(Read({}).status()), kExitUsage);
}

TEST(HubSettings, TheTokenComesFromTheEnvironmentOrAFile) {
  const ScratchDirectory scratch;
  ASSERT_TRUE(WriteFileAtomically(scratch.File("token"), "hf_file\n").ok());
  ASSERT_TRUE(WriteFileAtomically(scratch.File("other"), " hf_other \n").ok());
  Variables variables = {{"HF_HOME", scratch.path()}};
  EXPECT_EQ(Read(variables)->token, "hf_file");
  variables["HF_TOKEN_PATH"] = scratch.File("other");
  EXPECT_EQ(Read(variables)->token, "hf_other");
  variables["HF_TOKEN"] = "hf_variable";
  EXPECT_EQ(Read(variables)->token, "hf_variable");
  variables["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "yes";
  EXPECT_EQ(Read(variables)->token, "");
  EXPECT_EQ(Read({{"HF_HOME", scratch.File("none")}})->token, "");
}

TEST(HubSettings, ATokenThatWouldAddAHeaderIsRefusedAndNotQuoted) {
  const auto settings = Read({{"HF_HOME", "/none"}, {"HF_TOKEN", "hf_secret\r\nX-Evil: 1"}});
  ASSERT_EQ(ToExitCode(settings.status()), kExitUsage);
  EXPECT_THAT(std::string(settings.status().message()), HasSubstr("HF_TOKEN"));
  EXPECT_THAT(std::string(settings.status().message()), Not(HasSubstr("secret")));
}

TEST(HubSettings, EndpointOfflineAndTimeouts) {
  Variables variables = {{"HF_HOME", "/none"}};
  EXPECT_EQ(Read(variables)->endpoint, "https://huggingface.co");
  EXPECT_FALSE(Read(variables)->offline);
  variables["HF_ENDPOINT"] = "http://127.0.0.1:8000//";
  EXPECT_EQ(Read(variables)->endpoint, "http://127.0.0.1:8000");
  variables["TRANSFORMERS_OFFLINE"] = "on";
  EXPECT_TRUE(Read(variables)->offline);
  variables["HF_HUB_OFFLINE"] = "0";
  EXPECT_FALSE(Read(variables)->offline);
  variables["HF_HUB_DOWNLOAD_TIMEOUT"] = "7";
  EXPECT_EQ(Read(variables)->download_timeout_s, 7);
  for (const char* bad : {"0", "-1", "x", "1.5", "99999999999"}) {
    variables["HF_HUB_ETAG_TIMEOUT"] = bad;
    EXPECT_EQ(ToExitCode(Read(variables).status()), kExitUsage) << bad;
  }
  for (const char* bad : {"ftp://x", "huggingface.co", "https://", "https://a b", "https://user@host", "https://h?x"}) {
    EXPECT_EQ(ToExitCode(Read({{"HF_HOME", "/none"}, {"HF_ENDPOINT", bad}}).status()), kExitUsage) << bad;
  }
}

}  // namespace
}  // namespace pith
