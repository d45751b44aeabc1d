#include "hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/interrupt.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(50);

// Whether `fd` is still the file that `path` names: some holders remove the file as they release it.
bool IsStillNamed(int fd, const std::string& path) {
  struct stat opened, named;
  return fstat(fd, &opened) == 0 && stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path, absl::FunctionRef<void()> on_wait) {
  bool waited = false;
  while (true) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) return CannotCreateError(Printable(path, 500), ": cannot create: ", std::strerror(errno));
    FileLock lock(fd);
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) return lock;
      if (!std::exchange(waited, true)) on_wait();
      RETURN_IF_ERROR(CheckInterrupted());
      std::this_thread::sleep_for(kPollInterval);
    }
    if (IsStillNamed(fd, path)) return lock;
  }
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace pith
