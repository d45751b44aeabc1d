// Brings the files of a repository that a model needs into the cache, and makes its revision point to them once all are there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "hub/download.h"
#include "hub/hub_settings.h"
#include "hub/repo_id.h"

namespace pith {

struct PullOptions {
  std::vector<std::string> include;  // globs; empty: what the model needs
  DownloadOptions download;          // its progress is not used
  // Bytes of the files to fetch: of them done, and all; an error ends the pull. Called in the caller's thread.
  std::function<absl::Status(int64_t done, int64_t total)> progress;
  std::function<absl::StatusOr<uint64_t>(const std::string& path)> free_disk_bytes = FreeDiskBytes;
};

enum class PullOutcome { kCached, kDownloaded, kResumed };
const char* PullOutcomeName(PullOutcome outcome);  // "cached", "downloaded", "resumed"

struct PulledFile {
  RepoFile file;
  PullOutcome outcome = PullOutcome::kCached;
};

struct PullReport {
  std::string commit;
  std::string snapshot;           // directory of its files
  std::string model;              // what other commands take: `snapshot`, or a GGUF file in it; empty when no whole model is there
  std::vector<PulledFile> files;  // empty when offline
  int64_t downloaded_bytes = 0, cached_bytes = 0;
};

// Offline, it only looks the model up. Two pulls of one repository at once wait for each other's files. Errors, beside those of
// DownloadFile and SelectFiles: kPermissionDenied when the files do not fit on the disk (nothing is fetched then) or the cache cannot be
// written; kNotFound when offline and not cached.
absl::StatusOr<PullReport> PullRepo(const RepoId& repo, const HubSettings& settings, const PullOptions& options);

}  // namespace pith
