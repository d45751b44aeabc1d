#include "hub/partial_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr size_t kBeginningBytes = 512;
constexpr size_t kReadBytes = size_t{1} << 20;

std::string Errno() { return std::strerror(errno); }

absl::Status SyncDirectory(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return IoError(Printable(path, 500), ": cannot open to sync: ", Errno());
  const int result = fsync(fd);
  const std::string reason = Errno();
  close(fd);
  return result == 0 ? absl::OkStatus() : IoError(Printable(path, 500), ": fsync: ", reason);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PartialFile>> PartialFile::Open(const std::string& blob_path, int64_t size, const ContentId& id) {
  const std::string path = absl::StrCat(blob_path, ".incomplete");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return CannotCreateError(Printable(path, 500), ": cannot create: ", Errno());
  std::unique_ptr<PartialFile> file(new PartialFile(blob_path, fd, size, id));
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return CannotCreateError(Printable(path, 500), ": expected a regular file or none, found something else");
  }
  if (info.st_size > size) {
    RETURN_IF_ERROR(file->Restart());
  } else {
    RETURN_IF_ERROR(file->HashPrefix());
  }
  return file;
}

PartialFile::PartialFile(std::string blob_path, int fd, int64_t size, const ContentId& id)
    : blob_path_(std::move(blob_path)),
      path_(absl::StrCat(blob_path_, ".incomplete")),
      size_(size),
      id_(id),
      fd_(fd),
      hash_(std::make_unique<ContentHash>(id.kind, size)) {}

PartialFile::~PartialFile() {
  if (fd_ >= 0) close(fd_);
}

void PartialFile::Hash(absl::string_view bytes) {
  hash_->Update(bytes);
  if (beginning_.size() < kBeginningBytes) absl::StrAppend(&beginning_, bytes.substr(0, kBeginningBytes - beginning_.size()));
  written_ += static_cast<int64_t>(bytes.size());
}

absl::Status PartialFile::HashPrefix() {
  std::string buffer(kReadBytes, '\0');
  while (written_ < size_) {
    RETURN_IF_ERROR(CheckInterrupted());
    const ssize_t n = pread(fd_, buffer.data(), buffer.size(), static_cast<off_t>(written_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return IoError(Printable(path_, 500), ": read: ", Errno());
    if (n == 0) break;
    Hash(absl::string_view(buffer.data(), std::min(static_cast<size_t>(n), static_cast<size_t>(size_ - written_))));
  }
  return absl::OkStatus();
}

absl::Status PartialFile::Append(absl::string_view bytes) {
  CHECK(static_cast<int64_t>(bytes.size()) <= size_ - written_);
  absl::string_view rest = bytes;
  off_t offset = static_cast<off_t>(written_);
  while (!rest.empty()) {
    const ssize_t n = pwrite(fd_, rest.data(), rest.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return IoError(Printable(path_, 500), ": write of ", rest.size(), " bytes: ", Errno());
    rest.remove_prefix(static_cast<size_t>(n));
    offset += n;
  }
  Hash(bytes);
  return absl::OkStatus();
}

absl::Status PartialFile::Restart() {
  if (ftruncate(fd_, 0) != 0) return IoError(Printable(path_, 500), ": cannot truncate: ", Errno());
  written_ = 0;
  beginning_.clear();
  hash_ = std::make_unique<ContentHash>(id_.kind, size_);
  return absl::OkStatus();
}

bool PartialFile::HashIsRight(std::string* found) {
  CHECK(written_ == size_);
  *found = hash_->HexDigest();
  return *found == id_.hex;
}

absl::Status PartialFile::Commit() {
  CHECK(written_ == size_);
  if (fsync(fd_) != 0) return IoError(Printable(path_, 500), ": fsync: ", Errno());
  if (close(std::exchange(fd_, -1)) != 0) return IoError(Printable(path_, 500), ": close: ", Errno());
  if (rename(path_.c_str(), blob_path_.c_str()) != 0) return CannotCreateError(Printable(blob_path_, 500), ": rename: ", Errno());
  return SyncDirectory(DirName(blob_path_));
}

void PartialFile::Discard() { unlink(path_.c_str()); }

}  // namespace pith
