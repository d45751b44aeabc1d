#include "hub/download.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>

#include "absl/strings/match.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/sha256.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hub/loopback_hub.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

const char kName[] = "model.safetensors";

// A file whose bytes tell where they belong.
std::string Content(size_t bytes) {
  std::string content;
  for (int64_t i = 0; content.size() < bytes; ++i) content += std::to_string(i * 7919) + ",";
  content.resize(bytes);
  return content;
}

class Download : public testing::Test {
 protected:
  Download() : repo_(*ParseRepoId("org/name")), blob_(scratch_.File("blob")) {
    content_ = Content(1'000'000);
    hub_.lfs = {kName};
    settings_.download_timeout_s = 5;
    options_.range_bytes = 100'000;
    options_.connections = 3;
    options_.retry.sleep = [this](double seconds) {
      const std::lock_guard<std::mutex> lock(mutex_);
      delays_.push_back(seconds);
      return absl::OkStatus();
    };
    options_.progress = [this](int64_t bytes) {
      progress_ += bytes;
      return stop_after_ > 0 && progress_ >= stop_after_ ? CancelledError("enough") : absl::OkStatus();
    };
    options_.note = [this](const std::string& text) { notes_ += text; };
  }

  absl::StatusOr<DownloadResult> Fetch() {
    hub_.files[kName] = content_;
    settings_.endpoint = hub_.endpoint();
    const RepoFile file{kName, static_cast<int64_t>(content_.size()), {ContentId::Kind::kSha256, Sha256Hex(content_)}};
    return DownloadFile({FileUrl(hub_.endpoint(), repo_, hub_.commit, kName), file, repo_, settings_}, blob_, options_);
  }
  void ExpectFetched(const absl::StatusOr<DownloadResult>& result, int64_t resumed = 0) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->resumed_bytes, resumed);
    EXPECT_TRUE(*ReadFile(blob_) == content_);
    EXPECT_FALSE(FileExists(blob_ + ".incomplete"));
  }
  void LeavePrefix(size_t bytes) { ASSERT_TRUE(WriteFileAtomically(blob_ + ".incomplete", content_.substr(0, bytes)).ok()); }

  ScratchDirectory scratch_;
  LoopbackHub hub_;
  const RepoId repo_;
  HubSettings settings_;
  DownloadOptions options_;
  std::string content_, blob_, notes_;
  std::mutex mutex_;
  std::vector<double> delays_;
  int64_t progress_ = 0, stop_after_ = 0;
};

TEST_F(Download, FetchesRangesInParallelAndPutsThemInOrder) {
  ExpectFetched(Fetch());
  EXPECT_EQ(progress_, 1'000'000);
  EXPECT_EQ(hub_.requests().size(), 10);
  for (const LoopbackRequest& request : hub_.requests()) EXPECT_NE(request.range, "");
  EXPECT_TRUE(delays_.empty());
}

TEST_F(Download, SizesAroundTheLengthOfARange) {
  for (const size_t bytes : {0, 1, 99'999, 100'000, 100'001, 199'999, 200'001}) {
    content_ = Content(bytes);
    ExpectFetched(Fetch());
    std::filesystem::remove(blob_);
  }
}

TEST_F(Download, GoesOnFromWhatAnEarlierRunLeft) {
  LeavePrefix(456'789);
  ExpectFetched(Fetch(), 456'789);
  EXPECT_EQ(progress_, 1'000'000 - 456'789);
  for (const LoopbackRequest& request : hub_.requests()) EXPECT_FALSE(absl::StartsWith(request.range, "bytes=0-")) << request.range;
}

TEST_F(Download, AWholePrefixNeedsNoRequest) {
  LeavePrefix(1'000'000);
  ExpectFetched(Fetch(), 1'000'000);
  EXPECT_TRUE(hub_.requests().empty());
}

TEST_F(Download, CutsInTheMiddleAreMadeGood) {
  std::atomic<int> count{0};
  hub_.intercept = [&](const LoopbackRequest& request) -> std::optional<LoopbackReply> {
    LoopbackReply reply = hub_.Answer(request);
    if (++count % 2 == 1) reply.cut_after = 33'333;
    return reply;
  };
  ExpectFetched(Fetch());
  EXPECT_FALSE(delays_.empty());
  EXPECT_EQ(progress_, 1'000'000);
}

TEST_F(Download, WhatCameBeforeTheEndIsKept) {
  hub_.intercept = [&](const LoopbackRequest& request) -> std::optional<LoopbackReply> {
    if (absl::StartsWith(request.range, "bytes=0-") || absl::StartsWith(request.range, "bytes=100000-")) return std::nullopt;
    // Errors end the download, so they come when something of it has been kept.
    for (int i = 0; i < 5000 && FileSize(blob_ + ".incomplete").value_or(0) == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return LoopbackReply{.status = 500};
  };
  const auto result = Fetch();
  EXPECT_EQ(ToExitCode(result.status()), kExitUnavailable);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("org/name: model.safetensors: "));
  EXPECT_FALSE(FileExists(blob_));
  const std::string kept = ReadFile(blob_ + ".incomplete").value_or("");
  EXPECT_FALSE(kept.empty());
  EXPECT_TRUE(absl::StartsWith(content_, kept));
  hub_.intercept = nullptr;
  ExpectFetched(Fetch(), static_cast<int64_t>(kept.size()));
}

TEST_F(Download, StoppingKeepsWhatCame) {
  stop_after_ = 300'000;
  EXPECT_TRUE(absl::IsCancelled(Fetch().status()));
  const std::string kept = ReadFile(blob_ + ".incomplete").value_or("");
  EXPECT_GE(kept.size(), 300'000);
  EXPECT_TRUE(absl::StartsWith(content_, kept));
  stop_after_ = 0;
  ExpectFetched(Fetch(), static_cast<int64_t>(kept.size()));
}

TEST_F(Download, AWrongHashIsRefusedAndNothingIsLeft) {
  hub_.intercept = [&](const LoopbackRequest& request) -> std::optional<LoopbackReply> {
    LoopbackReply reply = hub_.Answer(request);
    if (absl::StartsWith(request.range, "bytes=500000-")) reply.body[7] = static_cast<char>(reply.body[7] ^ 1);
    return reply;
  };
  const absl::Status status = Fetch().status();
  EXPECT_EQ(ToExitCode(status), kExitBadFile);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected SHA-256 " + Sha256Hex(content_) + ", found "));
  EXPECT_TRUE(ListDirectory(scratch_.path())->empty());
}

TEST_F(Download, AWrongPrefixIsFetchedAgain) {
  ASSERT_TRUE(WriteFileAtomically(blob_ + ".incomplete", std::string(456'789, 'x')).ok());
  ExpectFetched(Fetch());
  EXPECT_THAT(notes_, HasSubstr("starting over"));
  EXPECT_EQ(progress_, 1'000'000 - 456'789);
}

TEST_F(Download, AnotherSizeIsRefusedBeforeAnythingIsKept) {
  hub_.intercept = [&](const LoopbackRequest&) { return LoopbackReply{.body = "version https://git-lfs.github.com/spec/v1\n"}; };
  const absl::Status status = Fetch().status();
  EXPECT_EQ(ToExitCode(status), kExitBadFile);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected 1000000 bytes as in the listing, found 43, found a Git LFS pointer"));
  EXPECT_TRUE(ListDirectory(scratch_.path())->empty());
  hub_.intercept = [&](const LoopbackRequest& request) -> std::optional<LoopbackReply> {
    return hub_.Content(content_ + "more", request.range);
  };
  EXPECT_EQ(ToExitCode(Fetch().status()), kExitBadFile);
  LeavePrefix(456'789);
  hub_.intercept = [&](const LoopbackRequest& request) -> std::optional<LoopbackReply> {
    return hub_.Content(content_.substr(0, 456'789), request.range);
  };
  EXPECT_THAT(std::string(Fetch().status().message()), HasSubstr("found a shorter one"));
  options_.connections = 1;
  hub_.intercept = [&](const LoopbackRequest&) { return LoopbackReply{.body = content_ + "more", .no_length = true}; };
  EXPECT_THAT(std::string(Fetch().status().message()), HasSubstr("found more"));
}

TEST_F(Download, AWebPageDoesNotCostWhatWasThere) {
  LeavePrefix(456'789);
  hub_.intercept = [&](const LoopbackRequest&) {
    return LoopbackReply{.headers = {{"Content-Type", "text/html"}}, .body = "<html>Sign in</html>"};
  };
  const absl::Status status = Fetch().status();
  EXPECT_EQ(ToExitCode(status), kExitBadFile);
  EXPECT_THAT(std::string(status.message()), HasSubstr("an HTML page"));
  EXPECT_EQ(*FileSize(blob_ + ".incomplete"), 456'789);
}

TEST_F(Download, APointerThatWasCommittedInsteadOfWeightsIsRefused) {
  content_ = "version https://git-lfs.github.com/spec/v1\noid sha256:x\nsize 3\n";
  const absl::Status status = Fetch().status();
  EXPECT_EQ(ToExitCode(status), kExitBadFile);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Git LFS pointer"));
  EXPECT_TRUE(ListDirectory(scratch_.path())->empty());
}

TEST_F(Download, ServersWithoutRangesAreReadInOrder) {
  hub_.ignores_ranges = true;
  ExpectFetched(Fetch());
  std::filesystem::remove(blob_);
  LeavePrefix(456'789);
  int cuts = 0;
  hub_.intercept = [&](const LoopbackRequest& request) -> std::optional<LoopbackReply> {
    LoopbackReply reply = hub_.Answer(request);
    if (++cuts < 6) reply.cut_after = 200'000 * cuts;  // of the whole file each time
    return reply;
  };
  options_.connections = 1;
  ExpectFetched(Fetch(), 456'789);
}

TEST_F(Download, RedirectedBytesComeWithoutTheToken) {
  LoopbackHub cdn;
  cdn.files[kName] = content_;
  hub_.cdn = &cdn;
  settings_.token = "hf_secret";
  ExpectFetched(Fetch());
  for (const LoopbackRequest& request : hub_.requests()) EXPECT_EQ(request.authorization, "Bearer hf_secret");
  for (const LoopbackRequest& request : cdn.requests()) EXPECT_EQ(request.authorization, "");
  EXPECT_EQ(cdn.requests().size(), 10);
  EXPECT_LE(hub_.requests().size(), 3);  // once per connection; then the address of the redirect is asked directly
}

TEST_F(Download, AnExpiredAddressIsAskedForAgain) {
  LoopbackHub cdn;
  cdn.files[kName] = content_;
  std::atomic<int> direct{0};
  cdn.intercept = [&](const LoopbackRequest&) -> std::optional<LoopbackReply> {
    return ++direct == 6 ? std::optional<LoopbackReply>(LoopbackReply{.status = 403}) : std::nullopt;
  };
  hub_.cdn = &cdn;
  options_.connections = 2;
  ExpectFetched(Fetch());
  EXPECT_GE(hub_.requests().size(), 2);
}

TEST_F(Download, WhatTheHubSaysOfTheFileMustAgreeWithTheListing) {
  hub_.intercept = [&](const LoopbackRequest& request) -> std::optional<LoopbackReply> {
    LoopbackReply reply = hub_.Answer(request);
    reply.headers["X-Linked-Etag"] = '"' + std::string(64, 'b') + '"';
    return reply;
  };
  EXPECT_THAT(std::string(Fetch().status().message()), HasSubstr("X-Linked-Etag"));
}

TEST_F(Download, TooManyRequestsAreWaitedFor) {
  std::atomic<int> count{0};
  hub_.intercept = [&](const LoopbackRequest&) -> std::optional<LoopbackReply> {
    if (++count == 2) return LoopbackReply{.status = 429, .headers = {{"Retry-After", "11"}}};
    return std::nullopt;
  };
  ExpectFetched(Fetch());
  EXPECT_EQ(delays_, std::vector<double>{11});
}

TEST_F(Download, GatedFilesAndCtrlC) {
  hub_.intercept = [&](const LoopbackRequest&) { return LoopbackReply{.status = 403, .headers = {{"X-Error-Code", "GatedRepo"}}}; };
  EXPECT_EQ(ToExitCode(Fetch().status()), kExitMissingInput);
  SetInterruptSignal(SIGINT);
  EXPECT_TRUE(absl::IsCancelled(Fetch().status()));
  SetInterruptSignal(0);
}

}  // namespace
}  // namespace pith
