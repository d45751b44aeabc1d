#include "hub/pull.h"

#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "base/sha256.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hub/cache_layout.h"
#include "hub/loopback_hub.h"
#include "hub/model_lookup.h"

namespace pith {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PullTest : public testing::Test {
 protected:
  PullTest() {
    hub_.files = {{"README.md", "about"},
                  {"config.json", "{\"a\": 1}"},
                  {"tokenizer.json", std::string(5000, 't')},
                  {"model.safetensors", std::string(300'000, 'w')},
                  {"pytorch_model.bin", "pickle"}};
    hub_.lfs = {"model.safetensors", "tokenizer.json", "x-Q4_0.gguf", "x-Q8_0.gguf"};
    settings_.endpoint = hub_.endpoint();
    settings_.cache_directory = scratch_.File("hub");
    options_.download.range_bytes = 65'536;
    options_.download.connections = 3;
    options_.download.retry.sleep = [](double) { return absl::OkStatus(); };
  }

  absl::StatusOr<PullReport> Pull(const std::string& repo = "org/name") { return PullRepo(*ParseRepoId(repo), settings_, options_); }
  std::string Message() { return std::string(Pull().status().message()); }
  RepoCache Cache() const { return RepoCache(settings_.cache_directory, *ParseRepoId("org/name")); }
  std::vector<std::string> Snapshot() const { return *ListDirectory(Cache().SnapshotPath(hub_.commit)); }

  ScratchDirectory scratch_;
  LoopbackHub hub_;
  HubSettings settings_;
  PullOptions options_;
};

TEST_F(PullTest, LaysFilesOutAsTheHubsOwnClientDoes) {
  int64_t last_done = 0, last_total = 0;
  options_.progress = [&](int64_t done, int64_t total) {
    last_done = done;
    last_total = total;
    return absl::OkStatus();
  };
  const auto report = Pull();
  ASSERT_TRUE(report.ok()) << report.status();
  const std::string root = scratch_.File("hub/models--org--name");
  EXPECT_EQ(report->model, root + "/snapshots/" + hub_.commit);
  EXPECT_EQ(report->commit, hub_.commit);
  EXPECT_THAT(Snapshot(), ElementsAre("config.json", "model.safetensors", "tokenizer.json"));
  for (const std::string& name : Snapshot()) {
    const std::string hash = hub_.lfs.count(name) > 0 ? Sha256Hex(hub_.files[name]) : GitSha1(hub_.files[name]);
    EXPECT_EQ(std::filesystem::read_symlink(report->snapshot + "/" + name), "../../blobs/" + hash);
    EXPECT_EQ(*ReadFile(root + "/blobs/" + hash), hub_.files[name]);
  }
  EXPECT_EQ(ListDirectory(root + "/blobs")->size(), 3);
  EXPECT_EQ(*ReadFile(root + "/refs/main"), hub_.commit);
  EXPECT_THAT(*ListDirectory(root), ElementsAre(".no_exist", "blobs", "refs", "snapshots"));
  EXPECT_EQ(*FileSize(root + "/.no_exist/" + hub_.commit + "/added_tokens.json"), 0);
  EXPECT_FALSE(FileExists(root + "/.no_exist/" + hub_.commit + "/config.json"));
  EXPECT_EQ(ListDirectory(scratch_.File("hub/.locks/models--org--name"))->size(), 3);
  const int64_t bytes = 300'000 + 5000 + 8;
  EXPECT_EQ(report->downloaded_bytes, bytes);
  EXPECT_EQ(last_done, bytes);
  EXPECT_EQ(last_total, bytes);
  EXPECT_EQ(hub_.CountRequests("README"), 0);
}

TEST_F(PullTest, ASecondPullFetchesNothing) {
  ASSERT_TRUE(Pull().ok());
  const size_t before = hub_.CountRequests("/resolve/");
  const auto report = Pull();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(hub_.CountRequests("/resolve/"), before);
  EXPECT_EQ(report->downloaded_bytes, 0);
  EXPECT_EQ(report->cached_bytes, 305'008);
  for (const PulledFile& file : report->files) EXPECT_EQ(file.outcome, PullOutcome::kCached);
}

TEST_F(PullTest, WithoutTheHubItSaysWhatTheCacheHas) {
  hub_.intercept = [](const LoopbackRequest&) { return LoopbackReply{.status = 503}; };
  EXPECT_EQ(ToExitCode(Pull().status()), kExitUnavailable);
  EXPECT_FALSE(absl::StrContains(Message(), "the cache has this model"));
  hub_.intercept = nullptr;
  ASSERT_TRUE(Pull().ok());
  hub_.intercept = [](const LoopbackRequest&) { return LoopbackReply{.status = 503}; };
  EXPECT_EQ(ToExitCode(Pull().status()), kExitUnavailable);
  EXPECT_THAT(Message(), HasSubstr("the cache has this model"));
}

TEST_F(PullTest, ANewCommitSharesBlobsAndMovesTheRef) {
  ASSERT_TRUE(Pull().ok());
  const std::string first = hub_.commit;
  hub_.commit = "1111111111111111111111111111111111111111";
  hub_.files["config.json"] = "{\"a\": 2}";
  const auto report = Pull();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->downloaded_bytes, 8);
  EXPECT_EQ(*ReadFile(Cache().RefPath("main")), hub_.commit);
  EXPECT_EQ(*ReadFile(Cache().FilePath(first, "config.json")), "{\"a\": 1}");
  EXPECT_EQ(*ReadFile(Cache().FilePath(hub_.commit, "config.json")), "{\"a\": 2}");
  ASSERT_TRUE(Pull("org/name@" + first).status().code() == absl::StatusCode::kNotFound);  // the hub forgot it
}

TEST_F(PullTest, AnInterruptedPullNeverCountsAsCached) {
  hub_.intercept = [&](const LoopbackRequest& request) -> std::optional<LoopbackReply> {
    return absl::StrContains(request.path, "model.safetensors") && !absl::StartsWith(request.range, "bytes=0-")
               ? std::optional<LoopbackReply>(LoopbackReply{.status = 500})
               : std::nullopt;
  };
  EXPECT_EQ(ToExitCode(Pull().status()), kExitUnavailable);
  EXPECT_FALSE(FileExists(Cache().RefPath("main")));
  EXPECT_EQ(ToExitCode(FindCachedModel(settings_.cache_directory, *ParseRepoId("org/name")).status()), kExitMissingInput);
  EXPECT_THAT(Snapshot(), ElementsAre("config.json", "tokenizer.json"));
  hub_.intercept = nullptr;
  const auto report = Pull();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_NE(report->files.back().outcome, PullOutcome::kCached);  // resumed, where its first range came before the error of another
  EXPECT_EQ(report->files[0].outcome, PullOutcome::kCached);
}

TEST_F(PullTest, ShardsAreThoseOfTheIndex) {
  hub_.files.erase("model.safetensors");
  hub_.files["model.safetensors.index.json"] =
      R"({"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}})";
  hub_.files["model-00001-of-00002.safetensors"] = "one";
  hub_.files["consolidated.safetensors"] = "other";
  EXPECT_EQ(ToExitCode(Pull().status()), kExitBadFile);
  EXPECT_THAT(Message(), HasSubstr("org/name: model.safetensors.index.json: expected shards that the repository has"));
  hub_.files["model-00002-of-00002.safetensors"] = "two";
  ASSERT_TRUE(Pull().ok());
  EXPECT_THAT(Snapshot(), ElementsAre("config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                                      "model.safetensors.index.json", "tokenizer.json"));
}

TEST_F(PullTest, GgufFilesAreChosenByGlob) {
  hub_.files = {{"README.md", "about"}, {"x-Q4_0.gguf", "four"}, {"x-Q8_0.gguf", "eight"}};
  EXPECT_EQ(ToExitCode(Pull().status()), kExitUsage);
  options_.include = {"*Q4_0.gguf"};
  const auto report = Pull();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->model, report->snapshot + "/x-Q4_0.gguf");
  EXPECT_EQ(*ReadFile(report->model), "four");
  options_.include = {"*Q8_0.gguf"};
  EXPECT_EQ(Pull()->model, "");  // two of them now: which is meant has to be said
}

TEST_F(PullTest, TooLittleDiskIsRefusedBeforehand) {
  options_.free_disk_bytes = [](const std::string&) { return absl::StatusOr<uint64_t>(1000); };
  const absl::Status status = Pull().status();
  EXPECT_EQ(ToExitCode(status), kExitCannotCreate);
  EXPECT_THAT(std::string(status.message()), HasSubstr("free bytes for org/name (305008 to fetch), found 1000"));
  EXPECT_EQ(hub_.CountRequests("/resolve/"), 0);
}

TEST_F(PullTest, OfflineOnlyLooksAtTheCache) {
  settings_.offline = true;
  EXPECT_EQ(ToExitCode(Pull().status()), kExitMissingInput);
  EXPECT_THAT(Message(), HasSubstr("HF_HUB_OFFLINE"));
  EXPECT_TRUE(hub_.requests().empty());
  settings_.offline = false;
  ASSERT_TRUE(Pull().ok());
  settings_.offline = true;
  const size_t before = hub_.requests().size();
  EXPECT_EQ(Pull()->model, Cache().SnapshotPath(hub_.commit));
  EXPECT_EQ(Pull()->commit, hub_.commit);
  EXPECT_EQ(hub_.requests().size(), before);
}

TEST_F(PullTest, TwoPullsAtOnceFetchEachFileOnce) {
  options_.download.connections = 1;
  hub_.intercept = [&](const LoopbackRequest& request) -> std::optional<LoopbackReply> {
    if (absl::StrContains(request.path, "/resolve/")) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return std::nullopt;
  };
  std::thread other([&] { EXPECT_TRUE(Pull().ok()); });
  EXPECT_TRUE(Pull().ok());
  other.join();
  EXPECT_EQ(hub_.CountRequests("/resolve/"), 3);
  EXPECT_EQ(*ReadFile(Cache().FilePath(hub_.commit, "model.safetensors")), hub_.files["model.safetensors"]);
}

TEST_F(PullTest, WhatOthersPutThereIsUsedAndLeftAsItIs) {
  const RepoCache cache = Cache();
  ASSERT_TRUE(cache.CreateFolders().ok());
  const std::string hash = Sha256Hex(hub_.files["model.safetensors"]);
  // A blob that is itself a link, as newer clients share blobs between repositories; and a snapshot file without a link.
  ASSERT_TRUE(WriteFileAtomically(scratch_.File("shared"), hub_.files["model.safetensors"]).ok());
  std::filesystem::create_symlink(scratch_.File("shared"), cache.BlobPath(hash));
  ASSERT_TRUE(CreateDirectories(cache.SnapshotPath(hub_.commit)).ok());
  ASSERT_TRUE(WriteFileAtomically(cache.FilePath(hub_.commit, "config.json"), hub_.files["config.json"]).ok());
  const auto report = Pull();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->downloaded_bytes, 5000);
  EXPECT_TRUE(std::filesystem::is_symlink(cache.BlobPath(hash)));
  EXPECT_FALSE(std::filesystem::is_symlink(cache.FilePath(hub_.commit, "config.json")));
}

TEST_F(PullTest, PicklesUnknownNamesAndGatedFilesAreRefused) {
  EXPECT_EQ(ToExitCode(Pull("org/other").status()), kExitMissingInput);
  EXPECT_EQ(ToExitCode(Pull("org/name@v9").status()), kExitMissingInput);
  hub_.intercept = [&](const LoopbackRequest& request) -> std::optional<LoopbackReply> {
    if (!absl::StrContains(request.path, "/resolve/")) return std::nullopt;
    return LoopbackReply{.status = 401, .headers = {{"X-Error-Code", "GatedRepo"}}};
  };
  EXPECT_THAT(Message(), HasSubstr("gated: accept its terms"));
  hub_.files.erase("model.safetensors");
  EXPECT_EQ(ToExitCode(Pull().status()), kExitNotSupported);
  EXPECT_THAT(Message(), HasSubstr("org/name: expected safetensors or GGUF files, found only pickled weights"));
}

}  // namespace
}  // namespace pith
