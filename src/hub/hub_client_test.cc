#include "hub/hub_client.h"

#include "absl/strings/match.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hub/loopback_hub.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

class HubClientTest : public testing::Test {
 protected:
  HubClientTest() {
    settings_.endpoint = hub_.endpoint();
    retry_.sleep = [this](double seconds) {
      delays_.push_back(seconds);
      return absl::OkStatus();
    };
  }
  absl::StatusOr<std::string> Commit(const std::string& repo) {
    const RepoId id = *ParseRepoId(repo);
    return HubClient(settings_, id, retry_).ResolveCommit();
  }

  LoopbackHub hub_;
  HubSettings settings_;
  RetryPolicy retry_;
  std::vector<double> delays_;
};

TEST_F(HubClientTest, ResolvesRevisionsAndListsAllPages) {
  hub_.page_size = 2;
  for (const char* name : {"a", "b", "c", "d", "e"}) hub_.files[name] = name;
  hub_.lfs = {"c"};
  EXPECT_EQ(*Commit("org/name"), hub_.commit);
  EXPECT_EQ(*Commit("org/name@" + hub_.commit), hub_.commit);
  EXPECT_EQ(hub_.requests().size(), 1);  // a commit needs no request
  const RepoId repo = *ParseRepoId("org/name");
  const auto files = HubClient(settings_, repo, retry_).ListFiles(hub_.commit);
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 5);
  EXPECT_EQ(hub_.CountRequests("/tree/"), 3);
  EXPECT_EQ((*files)[0].id, (ContentId{ContentId::Kind::kGitSha1, GitSha1("a")}));
  EXPECT_EQ((*files)[2].id.kind, ContentId::Kind::kSha256);
}

TEST_F(HubClientTest, AListingThatGoesOnElsewhereIsRefused) {
  hub_.intercept = [](const LoopbackRequest&) {
    return LoopbackReply{.headers = {{"Link", "<http://127.0.0.1:1/x>; rel=\"next\""}}, .body = "[]"};
  };
  const RepoId repo = *ParseRepoId("org/name");
  EXPECT_EQ(ToExitCode(HubClient(settings_, repo, retry_).ListFiles(hub_.commit).status()), kExitBadFile);
}

TEST_F(HubClientTest, WaitsAsLongAsItIsAskedToAndGivesUpInTheEnd) {
  int answers = 0;
  hub_.intercept = [&](const LoopbackRequest&) -> std::optional<LoopbackReply> {
    ++answers;
    if (answers == 1) return LoopbackReply{.status = 429, .headers = {{"Retry-After", "7"}}};
    if (answers == 2) return LoopbackReply{.status = 503, .headers = {{"Retry-After", "3"}}};
    if (answers == 3) return LoopbackReply{.status = 502};
    return std::nullopt;
  };
  EXPECT_TRUE(Commit("org/name").ok());
  ASSERT_EQ(delays_.size(), 3);
  EXPECT_EQ(delays_[0], 7);
  EXPECT_EQ(delays_[1], 3);
  hub_.intercept = [&](const LoopbackRequest&) { return LoopbackReply{.status = 500}; };
  const absl::Status status = Commit("org/name").status();
  EXPECT_EQ(ToExitCode(status), kExitUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("HTTP 500"));
  EXPECT_EQ(delays_.size(), 3 + 5);
}

TEST_F(HubClientTest, SaysWhatTheHubMeans) {
  const auto message = [&](int status, std::map<std::string, std::string> headers) {
    hub_.intercept = [=](const LoopbackRequest&) { return LoopbackReply{.status = status, .headers = headers}; };
    const absl::Status failed = Commit("org/name@v1").status();
    EXPECT_EQ(ToExitCode(failed), kExitMissingInput) << failed;
    return std::string(failed.message());
  };
  EXPECT_THAT(message(404, {{"X-Error-Code", "RevisionNotFound"}}), HasSubstr("org/name@v1: no revision \"v1\""));
  EXPECT_THAT(message(404, {{"X-Error-Code", "RepoNotFound"}}), HasSubstr("no such repository"));
  EXPECT_THAT(message(401, {{"X-Error-Code", "RepoNotFound"}}), HasSubstr("or a private one; no token was sent: set HF_TOKEN"));
  EXPECT_THAT(message(401, {{"X-Error-Code", "GatedRepo"}}),
              HasSubstr("gated: accept its terms at " + hub_.endpoint() + "/org/name; no token"));
  settings_.token = "hf_secret";
  EXPECT_THAT(message(403, {{"X-Error-Code", "GatedRepo"}}), HasSubstr("the token that was sent has no access"));
  EXPECT_THAT(message(401, {{"X-Error-Message", "Invalid credentials in Authorization header"}}), HasSubstr("does not know the token"));
  EXPECT_THAT(message(403, {{"X-Error-Message", "Forbidden here"}}), HasSubstr("access refused: Forbidden here"));
  EXPECT_THAT(message(404, {}), HasSubstr("no such repository"));
  EXPECT_TRUE(delays_.empty());
  hub_.intercept = [](const LoopbackRequest&) { return LoopbackReply{.status = 418}; };
  EXPECT_EQ(ToExitCode(Commit("org/name").status()), kExitIo);
}

TEST_F(HubClientTest, AWebPageInsteadOfAnAnswerIsNamed) {
  hub_.intercept = [](const LoopbackRequest&) { return LoopbackReply{.body = "<html>Sign in to the network</html>"}; };
  const absl::Status status = Commit("org/name").status();
  EXPECT_EQ(ToExitCode(status), kExitBadFile);
  EXPECT_THAT(std::string(status.message()), HasSubstr("an HTML page"));
}

}  // namespace
}  // namespace pith
