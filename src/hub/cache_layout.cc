#include "hub/cache_layout.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr size_t kMaxRefBytes = 256;
// The first 43 bytes are those of https://bford.info/cachedir/.
constexpr absl::string_view kCacheTag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This directory holds files of a Hugging Face hub, which can be fetched again. See https://bford.info/cachedir/\n";

bool HasSize(const std::string& path, int64_t size) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size == size;
}

// A name beside `path` that no other process takes, in whatever container it runs.
std::string StagedPath(const std::string& path) {
  std::random_device random;
  return absl::StrFormat("%s.%08x%08x.tmp", path, random(), random());
}

// Gives `staged`, which is whole, the name `path`; it does not stay otherwise.
absl::Status MoveInto(const std::string& staged, const std::string& path) {
  if (rename(staged.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const std::string reason = std::strerror(errno);
  unlink(staged.c_str());
  return CannotCreateError(Printable(path, 500), ": cannot create: ", reason);
}

// Writes a file of a few bytes whole or not at all, whoever writes it at the same time.
absl::Status WriteSmallFile(const std::string& path, absl::string_view content) {
  RETURN_IF_ERROR(CreateDirectories(DirName(path)));
  const std::string staged = StagedPath(path);
  const int fd = open(staged.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return CannotCreateError(Printable(path, 500), ": cannot create: ", std::strerror(errno));
  const bool written = write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()) && fsync(fd) == 0;
  const std::string reason = std::strerror(errno);
  close(fd);
  if (written) return MoveInto(staged, path);
  unlink(staged.c_str());
  return IoError(Printable(path, 500), ": write: ", reason);
}

}  // namespace

absl::Status CreateDirectories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? CannotCreateError(Printable(path, 500), ": cannot create: ", error.message()) : absl::OkStatus();
}

RepoCache::RepoCache(const std::string& cache_directory, const RepoId& repo)
    : cache_directory_(cache_directory),
      folder_(absl::StrCat("models--", repo.owner, "--", repo.name)),
      root_(JoinPath(cache_directory, folder_)) {}

std::string RepoCache::BlobPath(absl::string_view hash) const { return absl::StrCat(root_, "/blobs/", hash); }

std::string RepoCache::LockPath(absl::string_view hash) const {
  return JoinPath(cache_directory_, absl::StrCat(".locks/", folder_, "/", hash, ".lock"));
}

std::string RepoCache::SnapshotPath(absl::string_view commit) const { return absl::StrCat(root_, "/snapshots/", commit); }

std::string RepoCache::FilePath(absl::string_view commit, absl::string_view name) const {
  return absl::StrCat(SnapshotPath(commit), "/", name);
}

std::string RepoCache::RefPath(absl::string_view revision) const { return absl::StrCat(root_, "/refs/", revision); }

std::string RepoCache::AbsentPath(absl::string_view commit, absl::string_view name) const {
  return absl::StrCat(root_, "/.no_exist/", commit, "/", name);
}

std::optional<std::string> RepoCache::CachedCommit(absl::string_view revision) const {
  if (IsCommitHash(revision)) return std::string(revision);
  const absl::StatusOr<std::string> text = ReadFile(RefPath(revision), kMaxRefBytes);
  if (!text.ok()) return std::nullopt;
  const absl::string_view commit = absl::StripAsciiWhitespace(*text);
  if (!IsCommitHash(commit)) return std::nullopt;
  return std::string(commit);
}

bool RepoCache::HasFile(absl::string_view commit, absl::string_view name, int64_t size) const {
  return HasSize(FilePath(commit, name), size);
}

bool RepoCache::HasBlob(absl::string_view hash, int64_t size) const { return HasSize(BlobPath(hash), size); }

absl::Status RepoCache::CreateFolders() const {
  for (const std::string& path : {DirName(BlobPath("x")), DirName(SnapshotPath("x")), DirName(RefPath("x")), DirName(LockPath("x"))}) {
    RETURN_IF_ERROR(CreateDirectories(path));
  }
  const std::string tag = JoinPath(cache_directory_, "CACHEDIR.TAG");
  return FileExists(tag) ? absl::OkStatus() : WriteSmallFile(tag, kCacheTag);
}

absl::Status RepoCache::LinkFile(absl::string_view commit, absl::string_view name, absl::string_view hash) const {
  const std::string path = FilePath(commit, name);
  std::string target = absl::StrCat("../../blobs/", hash);
  for (const char c : name) {
    if (c == '/') target = absl::StrCat("../", target);
  }
  RETURN_IF_ERROR(CreateDirectories(DirName(path)));
  struct stat info;
  if (lstat(path.c_str(), &info) == 0 && !S_ISLNK(info.st_mode)) {
    return CannotCreateError(Printable(path, 500), ": expected a link or nothing, found another file; remove it to pull this one");
  }
  // A new link takes the place of an old one in one step.
  const std::string staged = StagedPath(absl::StrCat(DirName(path), "/.", hash));
  if (symlink(target.c_str(), staged.c_str()) != 0) {
    return CannotCreateError(Printable(path, 500), ": cannot link to ", target, ": ", std::strerror(errno));
  }
  return MoveInto(staged, path);
}

absl::Status RepoCache::WriteRef(absl::string_view revision, absl::string_view commit) const {
  if (revision == commit || CachedCommit(revision) == commit) return absl::OkStatus();
  return WriteSmallFile(RefPath(revision), commit);
}

absl::Status RepoCache::MarkAbsent(absl::string_view commit, absl::string_view name) const {
  const std::string path = AbsentPath(commit, name);
  return FileExists(path) ? absl::OkStatus() : WriteSmallFile(path, "");
}

}  // namespace pith
