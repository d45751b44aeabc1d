// Fetches one file of a repository into the cache's blobs: in parallel ranges where the server has them, going on from what an earlier run
// left, and with size and hash checked before it gets its name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "hub/hub_answers.h"
#include "hub/hub_settings.h"
#include "hub/repo_id.h"
#include "hub/retry.h"

namespace pith {

struct DownloadOptions {
  RetryPolicy retry;
  int connections = 8;
  int64_t range_bytes = int64_t{8} << 20;  // of one request; connections * 2 of them are held in memory at most
  // Bytes that were added to the file (negative: that were dropped from it); an error ends the download. Called in the caller's thread.
  std::function<absl::Status(int64_t bytes)> progress;
  std::function<void(const std::string& text)> note;  // what a user should know although it went on
};

struct DownloadSource {
  std::string url;
  RepoFile file;
  const RepoId& repo;
  const HubSettings& settings;
};

struct DownloadResult {
  int64_t resumed_bytes = 0;  // that an earlier run had left and that were right
};

// `blob_path`: where the file goes; blob_path.incomplete is where it is until then. When the hash is wrong and a part had been resumed, it
// starts over once. Errors: kDataLoss (wrong hash or size, a web page or LFS pointer instead of the file), kUnavailable, kNotFound,
// kCancelled, kAborted, kPermissionDenied. Bytes that came before an error are left to go on from, unless their hash is wrong.
absl::StatusOr<DownloadResult> DownloadFile(const DownloadSource& source, const std::string& blob_path, const DownloadOptions& options);

}  // namespace pith
