// A lock between processes, kept on a file of the cache's .locks folder: flock(2), as the filelock package of huggingface_hub takes it, so
// that neither tool downloads what the other is downloading. The file stays when the lock is released.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace pith {

// Released when destroyed. Movable; not thread-safe.
class FileLock {
 public:
  // Waits as long as another holds it; `on_wait` is called once when there is a wait. Where the file system has no locks, there is none:
  // what they guard is also correct without, only done twice. Errors: kPermissionDenied, kCancelled (Ctrl-C).
  static absl::StatusOr<FileLock> Acquire(const std::string& path, absl::FunctionRef<void()> on_wait);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace pith
