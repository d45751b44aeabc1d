// The processes of one sandboxed run: a supervisor, which this function becomes, and the confined program as its child.
//
// The supervisor lives outside the program's process namespace and keeps its file descriptors to itself, so the program cannot stop it. It
// kills the program at the time limit, when the caller closes its end of the control pipe (or dies), and reports how it ended.
#pragma once

#include <linux/filter.h>

#include <cstdint>

namespace pith {

// Everything prepared by the caller: between fork and exec only async-signal-safe calls are made, because the caller has threads.
struct SandboxPlan {
  const char* python = nullptr;  // absolute path
  char* const* argv = nullptr;
  char* const* envp = nullptr;
  const char* directory = nullptr;      // empty, of the caller
  const char* tmpfs_options = nullptr;  // "size=..."
  const char* uid_map = nullptr;        // one line of /proc/self/uid_map
  const char* gid_map = nullptr;
  const sock_filter* filter = nullptr;
  uint16_t filter_length = 0;
  bool namespaces = false;
  int64_t cpu_seconds = 0, memory_bytes = 0, file_bytes = 0;
  int64_t wall_ms = 0;
  // Descriptors in the caller's table.
  int program_fd = -1;  // the program's text, read as stdin
  int output_fd = -1;   // write end: stdout and stderr
  int control_fd = -1;  // read end: end of file means kill
  int report_fd = -1;   // write end: one SandboxReport
};

struct SandboxReport {
  enum Kind : int32_t { kFailedStep, kEnded } kind = kFailedStep;
  int32_t step = 0, error = 0;  // kFailedStep: which SandboxStep failed, and errno
  int32_t wait_status = 0;      // kEnded, as waitpid gives it
  int32_t timed_out = 0;
};

// In the order in which they are taken.
enum class SandboxStep : int32_t {
  kDescriptors,
  kNamespaces,
  kUserMap,
  kMounts,
  kProcess,
  kDirectory,
  kLimits,
  kCapabilities,
  kFilter,
  kExec
};
const char* SandboxStepName(SandboxStep step);

// In a process fresh from fork; never returns. Async-signal-safe.
[[noreturn]] void SuperviseSandbox(const SandboxPlan& plan);

}  // namespace pith
