#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

#include "base/status.h"

namespace pith {
namespace {

std::string Errno() { return std::strerror(errno); }

absl::Status OpenError(const std::string& path) {
  if (errno == ENOENT || errno == ENOTDIR) return MissingInputError(Printable(path, 500), ": no such file");
  return IoError(Printable(path, 500), ": cannot open: ", Errno());
}

absl::Status FsyncPath(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return IoError(path, ": cannot open to sync: ", Errno());
  const int result = fsync(fd);
  const std::string reason = Errno();
  close(fd);
  return result == 0 ? absl::OkStatus() : IoError(path, ": fsync: ", reason);
}

int64_t Nanoseconds(const timespec& time) { return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec; }

// Opens a regular file and reports what it is.
absl::StatusOr<int> OpenRegular(const std::string& path, FileIdentity* identity) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return OpenError(path);
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return BadFileError(Printable(path, 500), ": expected a regular file, found a directory or device");
  }
  *identity = {.inode = static_cast<uint64_t>(info.st_ino),
               .size = static_cast<uint64_t>(info.st_size),
               .modified_ns = Nanoseconds(info.st_mtim),
               .changed_ns = Nanoseconds(info.st_ctim)};
  return fd;
}

// The name a rename may go to: `path`, or what it links to. Anything but a regular file or nothing is refused, since a rename would put
// a file in its place (/dev/stdout and the like).
absl::StatusOr<std::string> RenameTarget(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return path;
  std::string target = path;
  if (S_ISLNK(info.st_mode)) {
    char* resolved = realpath(path.c_str(), nullptr);
    if (resolved == nullptr) return CannotCreateError(Printable(path, 500), ": expected a link to a file, found a broken one: ", Errno());
    target = resolved;
    std::free(resolved);
    if (stat(target.c_str(), &info) != 0) return CannotCreateError(Printable(path, 500), ": cannot follow the link: ", Errno());
  }
  if (!S_ISREG(info.st_mode))
    return CannotCreateError(Printable(path, 500), ": expected a regular file or none, found a directory or device");
  return target;
}

constexpr absl::string_view kPartialMark = ".partial-";

std::string PartialName(const std::string& path) { return absl::StrCat(path, kPartialMark, getpid()); }

// Marks a partial file or directory as being written, for as long as `fd` is open. False when another process has marked it.
bool LockPartial(int fd) { return flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

absl::Status WrittenByAnother(const std::string& path) {
  return CannotCreateError(Printable(path, 500), ": expected no other process to write it, found one at work");
}

// Whether a partial file or directory was left by a process that was killed: nobody holds its lock and no such process runs. Either alone
// could be wrong: locks do not work on every file system, and other containers have other process ids.
bool IsStalePartial(const std::string& partial, pid_t writer) {
  if (kill(writer, 0) == 0 || errno != ESRCH) return false;
  const int fd = open(partial.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  const bool stale = flock(fd, LOCK_EX | LOCK_NB) == 0;
  close(fd);
  return stale;
}

// Removes what killed processes left of earlier attempts to write `path`. Best effort: what cannot be removed is harmless.
void RemoveStalePartials(const std::string& path) {
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(DirName(path));
  if (!names.ok()) return;
  const std::string prefix = absl::StrCat(BaseName(path), kPartialMark);
  for (const std::string& name : *names) {
    pid_t writer = 0;
    if (!absl::StartsWith(name, prefix) || !absl::SimpleAtoi(absl::string_view(name).substr(prefix.size()), &writer) || writer <= 0)
      continue;
    const std::string partial = JoinPath(DirName(path), name);
    std::error_code ignored;
    if (IsStalePartial(partial, writer)) std::filesystem::remove_all(partial, ignored);
  }
}

}  // namespace

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  MappedFile file;
  ASSIGN_OR_RETURN(const int fd, OpenRegular(path, &file.identity_));
  file.path_ = path;
  file.size_ = static_cast<size_t>(file.identity_.size);
  if (file.size_ > 0) {
    void* data = mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      const int error = errno;
      close(fd);
      const std::string message = absl::StrCat(Printable(path, 500), ": mmap of ", file.size_, " bytes: ", std::strerror(error));
      return error == ENOMEM ? OutOfMemoryError(message) : IoError(message);
    }
    file.data_ = static_cast<const uint8_t*>(data);
  }
  close(fd);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      identity_(other.identity_),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  MappedFile taken(std::move(other));
  std::swap(path_, taken.path_);
  std::swap(identity_, taken.identity_);
  std::swap(data_, taken.data_);
  std::swap(size_, taken.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<uint8_t*>(data_), size_);
}

absl::StatusOr<RandomAccessFile> RandomAccessFile::Open(const std::string& path) {
  FileIdentity identity;
  ASSIGN_OR_RETURN(const int fd, OpenRegular(path, &identity));
  return RandomAccessFile(path, fd, identity.size);
}

RandomAccessFile::RandomAccessFile(RandomAccessFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(std::exchange(other.size_, 0)) {}

RandomAccessFile::~RandomAccessFile() {
  if (fd_ >= 0) close(fd_);
}

absl::Status RandomAccessFile::ReadAt(uint64_t offset, absl::Span<uint8_t> out) const {
  while (!out.empty()) {
    const ssize_t n = pread(fd_, out.data(), std::min(out.size(), size_t{1} << 30), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return IoError(Printable(path_, 500), ": read of ", out.size(), " bytes at offset ", offset, ": ", Errno());
    if (n == 0) return BadFileError(Printable(path_, 500), ": expected ", out.size(), " more bytes at offset ", offset, ", found the end");
    out.remove_prefix(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  FileIdentity identity;
  ASSIGN_OR_RETURN(const int fd, OpenRegular(path, &identity));
  const size_t size = static_cast<size_t>(identity.size);
  if (size > max_bytes) {
    close(fd);
    return BadFileError(path, ": expected at most ", max_bytes, " bytes, found ", size);
  }
  std::string content(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t n = read(fd, content.data() + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const std::string reason = Errno();
      close(fd);
      return IoError(path, ": read: ", reason);
    }
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  close(fd);
  content.resize(done);
  return content;
}

bool FileExists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

bool IsDirectory(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::StatusOr<uint64_t> FileSize(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return OpenError(path);
  return static_cast<uint64_t>(info.st_size);
}

absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) {
  DIR* dir = opendir(path.c_str());
  if (dir == nullptr) return OpenError(path);
  std::vector<std::string> names;
  while (const dirent* entry = readdir(dir)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<AtomicFileWriter> AtomicFileWriter::Create(const std::string& path) {
  if (path.empty()) return CannotCreateError("expected the name of a file, found an empty one");
  AtomicFileWriter writer;
  ASSIGN_OR_RETURN(writer.path_, RenameTarget(path));
  writer.partial_path_ = PartialName(writer.path_);
  RemoveStalePartials(writer.path_);
  const int fd = open(writer.partial_path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return CannotCreateError(Printable(path, 500), ": cannot create: ", Errno());
  if (!LockPartial(fd)) {
    close(fd);
    return WrittenByAnother(path);
  }
  writer.fd_ = fd;
  if (ftruncate(fd, 0) != 0) return CannotCreateError(Printable(path, 500), ": cannot truncate: ", Errno());
  return writer;
}

AtomicFileWriter::AtomicFileWriter(AtomicFileWriter&& other) noexcept
    : path_(std::move(other.path_)), partial_path_(std::move(other.partial_path_)), fd_(std::exchange(other.fd_, -1)) {}

AtomicFileWriter::~AtomicFileWriter() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(partial_path_.c_str());
}

absl::Status AtomicFileWriter::Append(absl::Span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd_, bytes.data(), std::min(bytes.size(), size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return IoError(path_, ": write of ", bytes.size(), " bytes: ", Errno());
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status AtomicFileWriter::Append(absl::string_view text) {
  return Append(absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

absl::Status AtomicFileWriter::WriteAt(uint64_t offset, absl::Span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd_, bytes.data(), std::min(bytes.size(), size_t{1} << 30), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return IoError(path_, ": write of ", bytes.size(), " bytes at offset ", offset, ": ", Errno());
    bytes.remove_prefix(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

absl::Status AtomicFileWriter::Commit() {
  if (fsync(fd_) != 0) return IoError(path_, ": fsync: ", Errno());
  if (close(std::exchange(fd_, -1)) != 0) {
    const std::string reason = Errno();
    unlink(partial_path_.c_str());
    return IoError(path_, ": close: ", reason);
  }
  if (rename(partial_path_.c_str(), path_.c_str()) != 0) {
    const std::string reason = Errno();
    unlink(partial_path_.c_str());
    return CannotCreateError(path_, ": rename: ", reason);
  }
  return FsyncPath(DirName(path_));
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view content) {
  ASSIGN_OR_RETURN(AtomicFileWriter writer, AtomicFileWriter::Create(path));
  RETURN_IF_ERROR(writer.Append(content));
  return writer.Commit();
}

absl::StatusOr<AtomicDirectoryWriter> AtomicDirectoryWriter::Create(const std::string& path) {
  AtomicDirectoryWriter writer;
  writer.path_ = path;
  while (writer.path_.size() > 1 && writer.path_.back() == '/') writer.path_.pop_back();
  struct stat info;
  if (lstat(writer.path_.c_str(), &info) == 0) {
    if (!S_ISDIR(info.st_mode)) return CannotCreateError(Printable(path, 500), ": expected no file of this name, found one");
    ASSIGN_OR_RETURN(const auto names, ListDirectory(writer.path_));
    if (!names.empty())
      return CannotCreateError(Printable(path, 500), ": expected a new or empty directory, found ", names.size(), " entries");
  }
  RemoveStalePartials(writer.path_);
  RETURN_IF_ERROR(writer.CreateStaging());
  return writer;
}

// A staging directory of this process's number may stand there already: of an earlier process of that number, or of one in another
// container that runs now.
absl::Status AtomicDirectoryWriter::CreateStaging() {
  const std::string staging = PartialName(path_);
  const bool existed = mkdir(staging.c_str(), 0777) != 0;
  if (existed && errno != EEXIST) return CannotCreateError(Printable(path_, 500), ": cannot create: ", Errno());
  lock_fd_ = open(staging.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (lock_fd_ < 0) return CannotCreateError(Printable(path_, 500), ": cannot create: ", Errno());
  if (!LockPartial(lock_fd_)) return WrittenByAnother(path_);
  staging_path_ = staging;
  if (!existed) return absl::OkStatus();
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(staging, error)) std::filesystem::remove_all(entry.path(), error);
  return error ? CannotCreateError(Printable(staging, 500), ": cannot clear: ", error.message()) : absl::OkStatus();
}

AtomicDirectoryWriter::AtomicDirectoryWriter(AtomicDirectoryWriter&& other) noexcept
    : path_(std::move(other.path_)), staging_path_(std::exchange(other.staging_path_, "")), lock_fd_(std::exchange(other.lock_fd_, -1)) {}

AtomicDirectoryWriter::~AtomicDirectoryWriter() {
  if (lock_fd_ >= 0) close(lock_fd_);
  if (staging_path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(staging_path_, ignored);
}

absl::Status AtomicDirectoryWriter::Commit() {
  RETURN_IF_ERROR(FsyncPath(staging_path_));
  // rename(2) replaces an existing directory only when it is empty, which Create has asked for.
  if (rename(staging_path_.c_str(), path_.c_str()) != 0) {
    if (errno != ENOTEMPTY && errno != EEXIST) return CannotCreateError(Printable(path_, 500), ": rename: ", Errno());
    return CannotCreateError(Printable(path_, 500), ": expected a new or empty directory, found one that was filled meanwhile");
  }
  staging_path_.clear();
  return FsyncPath(DirName(path_));
}

absl::StatusOr<uint64_t> FreeDiskBytes(const std::string& path) {
  std::string probe = path;
  struct statvfs info;
  while (statvfs(probe.c_str(), &info) != 0) {
    if (probe == "/" || probe == ".") return IoError(path, ": statvfs: ", Errno());
    probe = DirName(probe);
  }
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

std::string JoinPath(absl::string_view directory, absl::string_view name) {
  if (directory.empty()) return std::string(name);
  return absl::StrCat(directory, directory.back() == '/' ? "" : "/", name);
}

std::string BaseName(absl::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  return std::string(slash == absl::string_view::npos || path.size() == 1 ? path : path.substr(slash + 1));
}

std::string DirName(absl::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

}  // namespace pith
