// Runs Python programs of unknown origin (code that a model wrote) as subprocesses that can reach nothing.
//
// Every program is one process: a fresh python3 with an empty environment, no open files but its pipes, an empty temporary directory that
// is removed afterwards, limits of CPU time, wall time, address space and file size, no capabilities, and a seccomp filter without sockets
// or new processes (syscall_filter.h). Where the kernel permits user namespaces it also has namespaces of its own: no network device,
// a file system it can only read but for its directory (a tmpfs of limited size), and no view of other processes. Where not, the filter
// refuses every kind of writing instead, and isolation() says so. Without seccomp nothing is run.
//
// Files that the user may read can be read; their content has no way out but the program's output, which the caller keeps.
// Details: docs/tasks.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pith {

struct SandboxLimits {
  int64_t cpu_seconds = 10;
  double wall_seconds = 15;
  int64_t memory_bytes = int64_t{1} << 30;   // of address space, the interpreter included
  int64_t file_bytes = int64_t{16} << 20;    // per file, and of the directory
  int64_t output_bytes = int64_t{64} << 10;  // kept of stdout and stderr together, the last ones; what is more is dropped
};

struct SandboxOptions {
  SandboxLimits limits;
  std::string python;            // absolute path; empty: python3 of $PATH
  bool allow_namespaces = true;  // false: as where the kernel refuses them
};

enum class SandboxOutcome { kExited, kSignalled, kTimedOut };

struct SandboxRun {
  SandboxOutcome outcome = SandboxOutcome::kExited;
  int code = 0;        // exit status, or the signal's number
  double seconds = 0;  // wall time
  std::string output;  // stdout and stderr as they came, any bytes
};

// Immutable, thread-safe: programs may run side by side. Creates processes: the caller must not reap children it does not know.
class CodeSandbox {
 public:
  // Runs a trivial program to see what is permitted. Errors: kNotFound (no python3), kUnimplemented (no seccomp filter on this system, or
  // the trivial program fails), kAborted.
  static absl::StatusOr<CodeSandbox> Create(const SandboxOptions& options = {});

  // What confines the programs, in words, for reports.
  const std::string& isolation() const;

  // Runs a program to its end or to a limit, which is no error. When the calling process ends, the program is killed.
  // Errors: kAborted (no process, pipe or directory), kCancelled (a signal came, base/interrupt.h; the program is killed).
  absl::StatusOr<SandboxRun> RunPython(absl::string_view program) const;

 private:
  struct Setup;
  explicit CodeSandbox(std::shared_ptr<const Setup> setup);
  std::shared_ptr<const Setup> setup_;
};

}  // namespace pith
