// Where the files of a repository lie in the cache that huggingface_hub, transformers, vLLM and llama.cpp share
// (https://huggingface.co/docs/hub/local-cache):
//
//   CACHE/models--ORG--NAME/blobs/HASH                   content, named by its SHA-256 (Git LFS) or git SHA-1
//                           blobs/HASH.incomplete        a download that is not done
//                           snapshots/COMMIT/FILE        a relative link to ../../blobs/HASH
//                           refs/REVISION                the commit of a branch or tag, without a line end
//                           .no_exist/COMMIT/FILE        empty: this commit has no such file
//   CACHE/.locks/models--ORG--NAME/HASH.lock, CACHE/CACHEDIR.TAG
//
// What others have put there is read, and never moved or rewritten: only a link of a snapshot and a ref are replaced, each by what the hub
// says now. Safe to use from several processes at once. Errors: kPermissionDenied (cannot create), kAborted (I/O).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "hub/repo_id.h"

namespace pith {

class RepoCache {
 public:
  RepoCache(const std::string& cache_directory, const RepoId& repo);

  const std::string& root() const { return root_; }  // CACHE/models--ORG--NAME
  std::string BlobPath(absl::string_view hash) const;
  std::string LockPath(absl::string_view hash) const;
  std::string SnapshotPath(absl::string_view commit) const;
  std::string FilePath(absl::string_view commit, absl::string_view name) const;
  std::string RefPath(absl::string_view revision) const;
  std::string AbsentPath(absl::string_view commit, absl::string_view name) const;

  // The commit a revision stood for when it was last pulled: itself when it is a full commit hash, else what refs says.
  std::optional<std::string> CachedCommit(absl::string_view revision) const;
  // Whether a file of a snapshot is there and has `size` bytes, as a link or as a file of its own.
  bool HasFile(absl::string_view commit, absl::string_view name, int64_t size) const;
  // Whether the blob is there and has `size` bytes.
  bool HasBlob(absl::string_view hash, int64_t size) const;

  // Makes the folders and CACHEDIR.TAG, which tells backup programs that all of it can be fetched again.
  absl::Status CreateFolders() const;
  // Links the file of a snapshot to its blob. Errors: also when a file that is no link has the name.
  absl::Status LinkFile(absl::string_view commit, absl::string_view name, absl::string_view hash) const;
  absl::Status WriteRef(absl::string_view revision, absl::string_view commit) const;
  absl::Status MarkAbsent(absl::string_view commit, absl::string_view name) const;

 private:
  const std::string cache_directory_, folder_, root_;
};

// Creates a directory and those above it. Errors: kPermissionDenied.
absl::Status CreateDirectories(const std::string& path);

}  // namespace pith
