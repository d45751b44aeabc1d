#include "eval/tasks/syscall_filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace pith {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
constexpr uint32_t kForeignAbi = 0x40000000;  // x32 numbers have this bit
// Calls that newer architectures do without.
constexpr int kOldProcessCalls[] = {SYS_fork, SYS_vfork};
constexpr int kOldWriteCalls[] = {SYS_creat, SYS_rename, SYS_mkdir,  SYS_rmdir, SYS_link,  SYS_unlink, SYS_symlink,
                                  SYS_chmod, SYS_chown,  SYS_lchown, SYS_mknod, SYS_utime, SYS_utimes, SYS_futimesat};
constexpr int kOpen = SYS_open;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
constexpr uint32_t kForeignAbi = 0;
constexpr int kOldProcessCalls[] = {-1};
constexpr int kOldWriteCalls[] = {-1};
constexpr int kOpen = -1;
#else
constexpr uint32_t kArchitecture = 0;
constexpr uint32_t kForeignAbi = 0;
constexpr int kOldProcessCalls[] = {-1};
constexpr int kOldWriteCalls[] = {-1};
constexpr int kOpen = -1;
#endif

constexpr int kRefused[] = {
    // The network. socketpair stays: it reaches nobody else.
    SYS_socket,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_sendto,
    SYS_sendmsg,
    SYS_sendmmsg,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    // Other processes.
    SYS_kill,
    SYS_tkill,
    SYS_tgkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_pidfd_open,
    SYS_pidfd_send_signal,
    SYS_pidfd_getfd,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_process_madvise,
    SYS_kcmp,
    SYS_setpriority,
    SYS_ioprio_set,
    SYS_sched_setaffinity,
    SYS_sched_setattr,
    SYS_sched_setparam,
    SYS_sched_setscheduler,
    SYS_migrate_pages,
    SYS_move_pages,
    // Namespaces, file systems, the machine.
    SYS_unshare,
    SYS_setns,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_move_mount,
    SYS_open_tree,
    SYS_mount_setattr,
    SYS_swapon,
    SYS_swapoff,
    SYS_quotactl,
    SYS_acct,
    SYS_reboot,
    SYS_kexec_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_syslog,
    SYS_open_by_handle_at,
    SYS_fanotify_init,
    // Kernel interfaces of more faults than use.
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_personality,
    // Memory that limits of the address space do not count.
    SYS_memfd_create,
    SYS_shmget,
    SYS_msgget,
    SYS_semget,
    SYS_mq_open,
};

constexpr int kRefusedWriting[] = {
    SYS_renameat,  SYS_renameat2, SYS_mkdirat,     SYS_linkat,       SYS_unlinkat,     SYS_symlinkat, SYS_mknodat,
    SYS_fchmod,    SYS_fchmodat,  SYS_fchown,      SYS_fchownat,     SYS_truncate,     SYS_utimensat, SYS_setxattr,
    SYS_lsetxattr, SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr,
};

constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
constexpr uint32_t kUnknownCall = SECCOMP_RET_ERRNO | ENOSYS;
constexpr uint32_t kWriteFlags = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;

// The low half of argument `i`; both architectures are little-endian, and flags fit into it.
constexpr uint32_t ArgumentOffset(int i) { return offsetof(seccomp_data, args) + 8 * static_cast<uint32_t>(i); }

enum class Refuse { kWhenSet, kWhenMissing };

class FilterBuilder {
 public:
  void Load(uint32_t offset) { program_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
  void LoadCall() { Load(offsetof(seccomp_data, nr)); }
  void Return(uint32_t action) { program_.push_back(BPF_STMT(BPF_RET | BPF_K, action)); }

  void ReturnIfCall(int number, uint32_t action) {
    if (number < 0) return;
    Jump(BPF_JEQ, static_cast<uint32_t>(number), 0, 1);
    Return(action);
  }
  template <size_t n> void RefuseCalls(const int (&numbers)[n]) {
    for (const int number : numbers) ReturnIfCall(number, kRefuse);
  }
  // Refuses the call when its argument has any bit of `mask`, or none of them.
  void RefuseCallByBits(int number, int argument, uint32_t mask, Refuse refuse) {
    if (number < 0) return;
    Jump(BPF_JEQ, static_cast<uint32_t>(number), 0, 4);
    Load(ArgumentOffset(argument));
    const int skip_when_set = refuse == Refuse::kWhenSet ? 0 : 1;
    Jump(BPF_JSET, mask, skip_when_set, 1 - skip_when_set);
    Return(kRefuse);
    LoadCall();
  }
  // Of the loaded value.
  void KillUnlessEqual(uint32_t value) {
    Jump(BPF_JEQ, value, 1, 0);
    Return(SECCOMP_RET_KILL_PROCESS);
  }
  void KillIfAtLeast(uint32_t value) {
    if (value == 0) return;
    Jump(BPF_JGE, value, 0, 1);
    Return(SECCOMP_RET_KILL_PROCESS);
  }

  std::vector<sock_filter> Take() { return std::move(program_); }

 private:
  // Skips as many instructions as the comparison of the loaded value with `k` says.
  void Jump(uint16_t comparison, uint32_t k, int skip_if_true, int skip_if_false) {
    program_.push_back(
        {static_cast<uint16_t>(BPF_JMP | BPF_K | comparison), static_cast<uint8_t>(skip_if_true), static_cast<uint8_t>(skip_if_false), k});
  }

  std::vector<sock_filter> program_;
};

}  // namespace

std::vector<sock_filter> BuildSyscallFilter(const SyscallFilterOptions& options) {
  if (kArchitecture == 0) return {};
  FilterBuilder filter;
  filter.Load(offsetof(seccomp_data, arch));
  filter.KillUnlessEqual(kArchitecture);
  filter.LoadCall();
  filter.KillIfAtLeast(kForeignAbi);
  filter.RefuseCalls(kRefused);
  filter.RefuseCalls(kOldProcessCalls);
  filter.ReturnIfCall(SYS_clone3, kUnknownCall);  // its flags lie in memory; the C library falls back to clone
  filter.RefuseCallByBits(SYS_clone, 0, CLONE_THREAD, Refuse::kWhenMissing);
  filter.RefuseCallByBits(SYS_prlimit64, 0, 0xFFFFFFFF, Refuse::kWhenSet);  // a process other than the caller
  if (!options.allow_writing) {
    filter.RefuseCalls(kRefusedWriting);
    filter.RefuseCalls(kOldWriteCalls);
    filter.ReturnIfCall(SYS_openat2, kUnknownCall);
    filter.RefuseCallByBits(kOpen, 1, kWriteFlags, Refuse::kWhenSet);
    filter.RefuseCallByBits(SYS_openat, 2, kWriteFlags, Refuse::kWhenSet);
  }
  filter.Return(SECCOMP_RET_ALLOW);
  return filter.Take();
}

}  // namespace pith
