#include "eval/tasks/sandbox_process.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <iterator>

namespace pith {
namespace {

constexpr const char* kStepNames[] = {"file descriptors", "namespaces", "user mapping", "mounts",         "process",
                                      "directory",        "limits",     "capabilities", "seccomp filter", "exec of python3"};

// Where the supervisor keeps its descriptors; above them everything is closed.
constexpr int kProgramFd = 3, kOutputFd = 4, kControlFd = 5, kReportFd = 6, kFirstClosedFd = 7;
constexpr int kScratchFd = 100;  // above all of these, while they are put in order
constexpr rlim_t kMaxOpenFiles = 64;
constexpr rlim_t kStackBytes = 8 << 20;
constexpr int kExitSetupFailed = 125;
constexpr int kNumSignals = 64;

[[noreturn]] void Fail(SandboxStep step, int error) {
  const SandboxReport report{.kind = SandboxReport::kFailedStep, .step = static_cast<int32_t>(step), .error = error};
  if (write(kReportFd, &report, sizeof(report)) < 0) _exit(kExitSetupFailed + 1);
  _exit(kExitSetupFailed);
}

void Require(bool done, SandboxStep step) {
  if (!done) Fail(step, errno);
}

bool CloseFrom(unsigned first) { return syscall(SYS_close_range, first, ~0U, 0) == 0; }

// The four descriptors of the plan at their places, nothing else but the standard ones.
void ArrangeDescriptors(const SandboxPlan& plan) {
  const int given[] = {plan.program_fd, plan.output_fd, plan.control_fd, plan.report_fd};
  const int wanted[] = {kProgramFd, kOutputFd, kControlFd, kReportFd};
  int moved[std::size(given)];
  for (size_t i = 0; i < std::size(given); ++i) moved[i] = fcntl(given[i], F_DUPFD, kScratchFd);
  for (size_t i = 0; i < std::size(given); ++i) {
    if (moved[i] < 0 || dup2(moved[i], wanted[i]) < 0) _exit(kExitSetupFailed);  // nobody can be told
  }
  Require(CloseFrom(kFirstClosedFd), SandboxStep::kDescriptors);
}

// Handlers and ignored signals outlive fork, and ignored ones exec.
void ResetSignals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal <= kNumSignals; ++signal) sigaction(signal, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool WriteWhole(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const auto length = static_cast<ssize_t>(strlen(text));
  const bool written = write(fd, text, length) == length;
  return close(fd) == 0 && written;
}

void EnterNamespaces(const SandboxPlan& plan) {
  constexpr int kNamespaces = CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
  Require(unshare(kNamespaces) == 0, SandboxStep::kNamespaces);
  Require(WriteWhole("/proc/self/setgroups", "deny"), SandboxStep::kUserMap);
  Require(WriteWhole("/proc/self/gid_map", plan.gid_map), SandboxStep::kUserMap);
  Require(WriteWhole("/proc/self/uid_map", plan.uid_map), SandboxStep::kUserMap);
  // Nothing of what follows is seen outside; then every file system is read-only, and a small one of its own covers the directory.
  Require(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, SandboxStep::kMounts);
  mount_attr read_only{};
  read_only.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID;
  Require(mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &read_only, sizeof(read_only)) == 0, SandboxStep::kMounts);
  Require(mount("tmpfs", plan.directory, "tmpfs", MS_NOSUID | MS_NODEV, plan.tmpfs_options) == 0, SandboxStep::kMounts);
}

void SetLimit(__rlimit_resource resource, rlim_t value) {
  const rlimit limit{value, value};
  Require(setrlimit(resource, &limit) == 0, SandboxStep::kLimits);
}

void DropCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  Require(syscall(SYS_capset, &header, none) == 0, SandboxStep::kCapabilities);
  // What exec could grant again is bounded by what the process may have: nothing.
  Require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, SandboxStep::kCapabilities);
}

[[noreturn]] void BecomeProgram(const SandboxPlan& plan) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A view of its own processes only. Where the kernel does not permit it, the old view stays: read-only, and of processes it cannot reach.
  if (plan.namespaces) mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, nullptr);
  Require(chdir(plan.directory) == 0, SandboxStep::kDirectory);
  SetLimit(RLIMIT_CPU, static_cast<rlim_t>(plan.cpu_seconds));
  SetLimit(RLIMIT_FSIZE, static_cast<rlim_t>(plan.file_bytes));
  SetLimit(RLIMIT_CORE, 0);
  SetLimit(RLIMIT_NOFILE, kMaxOpenFiles);
  SetLimit(RLIMIT_STACK, kStackBytes);
  SetLimit(RLIMIT_MEMLOCK, 0);
  SetLimit(RLIMIT_AS, static_cast<rlim_t>(plan.memory_bytes));
  DropCapabilities();
  const bool placed = dup2(kProgramFd, STDIN_FILENO) == STDIN_FILENO && dup2(kOutputFd, STDOUT_FILENO) == STDOUT_FILENO &&
                      dup2(kOutputFd, STDERR_FILENO) == STDERR_FILENO && fcntl(kReportFd, F_SETFD, FD_CLOEXEC) == 0;
  Require(placed, SandboxStep::kDescriptors);
  close(kProgramFd);
  close(kOutputFd);
  close(kControlFd);
  const sock_fprog program{plan.filter_length, const_cast<sock_filter*>(plan.filter)};
  Require(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0, SandboxStep::kFilter);
  execve(plan.python, plan.argv, plan.envp);
  Fail(SandboxStep::kExec, errno);
}

int64_t NowMs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

// Waits for the program, kills it at its time or at the caller's wish, and reports. A descriptor of the process wakes poll at its end.
[[noreturn]] void WaitForProgram(const SandboxPlan& plan, pid_t program) {
  SandboxReport report{.kind = SandboxReport::kEnded};
  const auto process_fd = static_cast<int>(syscall(SYS_pidfd_open, program, 0));
  if (process_fd < 0) {
    const int error = errno;
    kill(program, SIGKILL);
    Fail(SandboxStep::kProcess, error);
  }
  const int64_t deadline_ms = NowMs() + plan.wall_ms;
  pollfd watched[] = {{process_fd, POLLIN, 0}, {kControlFd, POLLIN, 0}};
  while (true) {
    const int64_t left_ms = deadline_ms - NowMs();
    const int ready = left_ms <= 0 ? 0 : poll(watched, std::size(watched), static_cast<int>(left_ms));
    if (ready < 0 && errno == EINTR) continue;
    if (ready > 0 && watched[0].revents != 0) break;
    report.timed_out = ready == 0 ? 1 : 0;
    if (ready == 0 && left_ms > 0 && NowMs() < deadline_ms) continue;
    kill(program, SIGKILL);
    break;
  }
  while (waitpid(program, &report.wait_status, 0) < 0 && errno == EINTR) {
  }
  if (write(kReportFd, &report, sizeof(report)) < 0) _exit(kExitSetupFailed);
  _exit(0);
}

}  // namespace

const char* SandboxStepName(SandboxStep step) {
  const auto index = static_cast<size_t>(step);
  return index < std::size(kStepNames) ? kStepNames[index] : "unknown step";
}

void SuperviseSandbox(const SandboxPlan& plan) {
  ResetSignals();
  setsid();
  ArrangeDescriptors(plan);
  if (plan.namespaces) EnterNamespaces(plan);
  // The system call itself: handlers that libraries registered for fork are not for a process that only execs.
  const auto program = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  Require(program >= 0, SandboxStep::kProcess);
  if (program == 0) BecomeProgram(plan);
  close(kProgramFd);
  close(kOutputFd);
  WaitForProgram(plan, program);
}

}  // namespace pith
