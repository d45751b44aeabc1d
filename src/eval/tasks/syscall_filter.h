// A seccomp filter for programs of unknown origin: what one process needs to compute and to read files stays allowed, the rest is refused.
//
// Refused with EPERM, whatever else confines the program: sockets, new processes and namespaces, signals to others, mounts, tracing,
// kernel keys, BPF, performance counters, shared memory outside the address space, io_uring (which does all of that by another door),
// other processes' limits and priorities. Threads are allowed. Calls of another architecture or ABI kill the process.
#pragma once

#include <linux/filter.h>

#include <vector>

namespace pith {

struct SyscallFilterOptions {
  bool allow_writing = true;  // false: files can be opened for reading only, and none made, removed, renamed or changed
};

// The program for PR_SET_SECCOMP; empty on architectures it is not written for.
std::vector<sock_filter> BuildSyscallFilter(const SyscallFilterOptions& options);

}  // namespace pith
