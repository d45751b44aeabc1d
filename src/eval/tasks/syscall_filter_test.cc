#include "eval/tasks/syscall_filter.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>

namespace pith {
namespace {

// What the kernel would answer: an interpreter of the instructions that filters use.
class FilterMachine {
 public:
  explicit FilterMachine(bool allow_writing) : program_(BuildSyscallFilter({.allow_writing = allow_writing})) {}

  bool empty() const { return program_.empty(); }
  uint32_t arch = 0;

  uint32_t Answer(int call, uint64_t argument0 = 0, uint64_t argument1 = 0, uint64_t argument2 = 0) const {
    const seccomp_data data{.nr = call, .arch = arch, .instruction_pointer = 0, .args = {argument0, argument1, argument2}};
    uint32_t loaded = 0;
    for (size_t at = 0; at < program_.size(); ++at) {
      const sock_filter& step = program_[at];
      switch (step.code) {
        case BPF_LD | BPF_W | BPF_ABS: loaded = *reinterpret_cast<const uint32_t*>(reinterpret_cast<const char*>(&data) + step.k); break;
        case BPF_RET | BPF_K: return step.k;
        case BPF_JMP | BPF_K | BPF_JEQ: at += loaded == step.k ? step.jt : step.jf; break;
        case BPF_JMP | BPF_K | BPF_JGE: at += loaded >= step.k ? step.jt : step.jf; break;
        case BPF_JMP | BPF_K | BPF_JSET: at += (loaded & step.k) != 0 ? step.jt : step.jf; break;
        default: ADD_FAILURE() << "unexpected instruction " << step.code; return 0;
      }
    }
    ADD_FAILURE() << "the program runs off its end";
    return 0;
  }

  // The architecture the filter was built for: its first comparison.
  void LearnArchitecture() { arch = program_[1].k; }

 private:
  const std::vector<sock_filter> program_;
};

constexpr uint32_t kRefused = SECCOMP_RET_ERRNO | EPERM, kUnknown = SECCOMP_RET_ERRNO | ENOSYS;

class SyscallFilterTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (machine_.empty()) GTEST_SKIP() << "needs x86-64 or ARM64";
    machine_.LearnArchitecture();
  }
  FilterMachine machine_{GetParam()};
};

TEST_P(SyscallFilterTest, ComputingAndReadingAreAllowed) {
  for (const int call : {SYS_read, SYS_write, SYS_mmap, SYS_munmap, SYS_brk, SYS_futex, SYS_exit_group, SYS_execve, SYS_fstat,
                         SYS_getrandom, SYS_rt_sigaction, SYS_clock_gettime, SYS_getdents64, SYS_pipe2, SYS_socketpair}) {
    EXPECT_EQ(machine_.Answer(call, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}), SECCOMP_RET_ALLOW) << call;
  }
  EXPECT_EQ(machine_.Answer(SYS_openat, 0, 0, O_RDONLY | O_CLOEXEC), SECCOMP_RET_ALLOW);
}

TEST_P(SyscallFilterTest, TheNetworkAndOtherProcessesAreRefused) {
  for (const int call : {SYS_socket, SYS_connect, SYS_io_uring_setup, SYS_kill, SYS_tgkill, SYS_ptrace, SYS_unshare, SYS_setns, SYS_mount,
                         SYS_bpf, SYS_keyctl, SYS_memfd_create, SYS_shmget, SYS_process_vm_writev}) {
    EXPECT_EQ(machine_.Answer(call), kRefused) << call;
  }
  EXPECT_EQ(machine_.Answer(SYS_clone, SIGCHLD), kRefused);
  EXPECT_EQ(machine_.Answer(SYS_clone, CLONE_VM | CLONE_THREAD | CLONE_SIGHAND), SECCOMP_RET_ALLOW);
  EXPECT_EQ(machine_.Answer(SYS_clone3), kUnknown);
  EXPECT_EQ(machine_.Answer(SYS_prlimit64, 0, RLIMIT_AS), SECCOMP_RET_ALLOW);
  EXPECT_EQ(machine_.Answer(SYS_prlimit64, 1234, RLIMIT_AS), kRefused);
}

TEST_P(SyscallFilterTest, WritingIsRefusedWhereItIsNotAllowed) {
  const uint32_t answer = GetParam() ? static_cast<uint32_t>(SECCOMP_RET_ALLOW) : kRefused;
  for (const int flags : {O_WRONLY, O_RDWR, O_RDONLY | O_CREAT, O_RDONLY | O_TRUNC, O_WRONLY | O_APPEND | O_CLOEXEC}) {
    EXPECT_EQ(machine_.Answer(SYS_openat, 0, 0, flags), answer) << flags;
  }
  for (const int call :
       {SYS_unlinkat, SYS_renameat2, SYS_mkdirat, SYS_symlinkat, SYS_truncate, SYS_fchmodat, SYS_utimensat, SYS_setxattr}) {
    EXPECT_EQ(machine_.Answer(call), answer) << call;
  }
  EXPECT_EQ(machine_.Answer(SYS_openat2), GetParam() ? static_cast<uint32_t>(SECCOMP_RET_ALLOW) : kUnknown);
}

TEST_P(SyscallFilterTest, OtherArchitecturesAreKilled) {
  machine_.arch ^= 1;
  EXPECT_EQ(machine_.Answer(SYS_read), SECCOMP_RET_KILL_PROCESS);
#if defined(__x86_64__)
  machine_.arch ^= 1;
  EXPECT_EQ(machine_.Answer(0x40000000 | SYS_read), SECCOMP_RET_KILL_PROCESS);
#endif
}

INSTANTIATE_TEST_SUITE_P(Writing, SyscallFilterTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Allowed" : "Refused"; });

}  // namespace
}  // namespace pith
