#include "eval/tasks/code_sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/status.h"
#include "eval/tasks/sandbox_process.h"
#include "eval/tasks/syscall_filter.h"

namespace pith {
namespace {

constexpr int kPollMs = 100;  // between looks for Ctrl-C
constexpr size_t kReadBytes = 64 << 10;
constexpr char kProbe[] = "print('ready')\n";
constexpr char kProbeOutput[] = "ready\n";
constexpr unsigned kInnerUser = 65534;  // nobody, inside a namespace

absl::Status SystemError(absl::string_view what) { return IoError("sandbox: ", what, ": ", std::strerror(errno)); }

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() { Close(); }
  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  FileDescriptor read_end, write_end;

  absl::Status Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return SystemError("pipe");
    read_end = FileDescriptor(ends[0]);
    write_end = FileDescriptor(ends[1]);
    return absl::OkStatus();
  }
};

// A fresh directory, removed with what is in it.
class TemporaryDirectory {
 public:
  absl::Status Make() {
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
    if (error) return IoError("sandbox: temporary folder: ", error.message());
    std::string pattern = (parent / "pith-sandbox-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) return SystemError(pattern);
    path_ = pattern;
    return absl::OkStatus();
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The program's text as a file without a name, at its beginning.
absl::StatusOr<FileDescriptor> ProgramFile(absl::string_view program) {
  FileDescriptor file(memfd_create("program", MFD_CLOEXEC));
  if (file.get() < 0) return SystemError("program file");
  while (!program.empty()) {
    const ssize_t written = write(file.get(), program.data(), program.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return SystemError("program file");
    program.remove_prefix(static_cast<size_t>(written));
  }
  if (lseek(file.get(), 0, SEEK_SET) != 0) return SystemError("program file");
  return file;
}

// What the interpreter of $PATH calls itself: a name there may be a script that looks for the right version, and scripts need processes.
absl::StatusOr<std::string> FindPython() {
  FILE* answer = popen("exec python3 -c 'import sys; sys.stdout.write(sys.executable)' 2>/dev/null </dev/null", "re");
  if (answer == nullptr) return SystemError("python3");
  char path[4096];
  const size_t length = fread(path, 1, sizeof(path), answer);
  if (pclose(answer) != 0 || length == 0 || path[0] != '/') {
    return MissingInputError("python3: expected an interpreter on $PATH to run generated code with, found none");
  }
  return std::string(path, length);
}

// Reads what is there; false at the end of the file.
bool ReadSome(int fd, std::string* out) {
  char buffer[kReadBytes];
  const ssize_t n = read(fd, buffer, sizeof(buffer));
  if (n > 0) out->append(buffer, static_cast<size_t>(n));
  return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

void KeepLast(size_t bytes, std::string* text) {
  if (text->size() > bytes) text->erase(0, text->size() - bytes);
}

}  // namespace

struct CodeSandbox::Setup {
  SandboxLimits limits;
  std::string python, isolation;
  bool namespaces = false;
  std::vector<sock_filter> filter;
  std::string tmpfs_options, uid_map, gid_map;

  void Confine(bool with_namespaces) {
    namespaces = with_namespaces;
    filter = BuildSyscallFilter({.allow_writing = with_namespaces});
  }
  // A run, and what the set-up of its process failed on (empty: nothing).
  absl::StatusOr<SandboxRun> Run(absl::string_view program, std::string* setup_failure) const;
};

namespace {

// The caller's side of one run.
class RunningProgram {
 public:
  explicit RunningProgram(int64_t kept_bytes) : kept_bytes_(static_cast<size_t>(kept_bytes)) {}

  absl::Status Start(SandboxPlan plan, absl::string_view program) {
    RETURN_IF_ERROR(directory_.Make());
    ASSIGN_OR_RETURN(FileDescriptor text, ProgramFile(program));
    for (Pipe* pipe : {&output_, &control_, &report_}) RETURN_IF_ERROR(pipe->Open());
    plan.directory = directory_.path().c_str();
    plan.program_fd = text.get();
    plan.output_fd = output_.write_end.get();
    plan.control_fd = control_.read_end.get();
    plan.report_fd = report_.write_end.get();
    const std::string home = absl::StrCat("HOME=", directory_.path()), temporary = absl::StrCat("TMPDIR=", directory_.path());
    const char* const argv[] = {plan.python, "-s", "-B", "-", nullptr};
    const char* const envp[] = {home.c_str(),   temporary.c_str(),   "PATH=/usr/bin:/bin",     "LANG=C.UTF-8", "PYTHONHASHSEED=0",
                                "PYTHONUTF8=1", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", nullptr};
    plan.argv = const_cast<char* const*>(argv);
    plan.envp = const_cast<char* const*>(envp);
    supervisor_ = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    if (supervisor_ == 0) SuperviseSandbox(plan);
    if (supervisor_ < 0) return SystemError("process");
    output_.write_end.Close();
    control_.read_end.Close();
    report_.write_end.Close();
    return absl::OkStatus();
  }

  ~RunningProgram() {
    control_.write_end.Close();
    int ignored = 0;
    while (supervisor_ > 0 && waitpid(supervisor_, &ignored, 0) < 0 && errno == EINTR) {
    }
  }

  // To the supervisor's first report and the end of the output.
  absl::StatusOr<SandboxReport> Wait() {
    std::string report;
    bool output_open = true, report_open = true;
    absl::Status interrupted;
    while (output_open || report_open) {
      pollfd watched[] = {{output_open ? output_.read_end.get() : -1, POLLIN, 0}, {report_open ? report_.read_end.get() : -1, POLLIN, 0}};
      if (poll(watched, 2, kPollMs) < 0 && errno != EINTR) return SystemError("poll");
      if (watched[0].revents != 0) {
        output_open = ReadSome(output_.read_end.get(), &output);
        if (output.size() > 2 * kept_bytes_ + kReadBytes) KeepLast(kept_bytes_, &output);
      }
      if (watched[1].revents != 0) report_open = ReadSome(report_.read_end.get(), &report);
      interrupted = CheckInterrupted();
      if (!interrupted.ok()) control_.write_end.Close();  // the supervisor kills the program
    }
    RETURN_IF_ERROR(interrupted);
    KeepLast(kept_bytes_, &output);
    SandboxReport first;
    if (report.size() < sizeof(first)) return IoError("sandbox: expected a report of the supervising process, found none");
    std::memcpy(&first, report.data(), sizeof(first));
    return first;
  }

  std::string output;

 private:
  const size_t kept_bytes_;
  TemporaryDirectory directory_;
  Pipe output_, control_, report_;
  pid_t supervisor_ = -1;
};

}  // namespace

absl::StatusOr<SandboxRun> CodeSandbox::Setup::Run(absl::string_view program, std::string* setup_failure) const {
  const auto begin = std::chrono::steady_clock::now();
  const SandboxPlan plan{.python = python.c_str(),
                         .tmpfs_options = tmpfs_options.c_str(),
                         .uid_map = uid_map.c_str(),
                         .gid_map = gid_map.c_str(),
                         .filter = filter.data(),
                         .filter_length = static_cast<uint16_t>(filter.size()),
                         .namespaces = namespaces,
                         .cpu_seconds = limits.cpu_seconds,
                         .memory_bytes = limits.memory_bytes,
                         .file_bytes = limits.file_bytes,
                         .wall_ms = static_cast<int64_t>(limits.wall_seconds * 1000)};
  RunningProgram running(limits.output_bytes);
  RETURN_IF_ERROR(running.Start(plan, program));
  ASSIGN_OR_RETURN(const SandboxReport report, running.Wait());
  SandboxRun run;
  if (report.kind == SandboxReport::kFailedStep) {
    *setup_failure = absl::StrCat(SandboxStepName(static_cast<SandboxStep>(report.step)), ": ", std::strerror(report.error));
    return run;
  }
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  run.output = std::move(running.output);
  const int status = report.wait_status;
  run.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  // The limit of CPU time kills as the limit of wall time does.
  const bool out_of_cpu = WIFSIGNALED(status) && run.code == SIGKILL && run.seconds >= static_cast<double>(limits.cpu_seconds);
  run.outcome = report.timed_out != 0 || out_of_cpu ? SandboxOutcome::kTimedOut
                : WIFSIGNALED(status)               ? SandboxOutcome::kSignalled
                                                    : SandboxOutcome::kExited;
  return run;
}

CodeSandbox::CodeSandbox(std::shared_ptr<const Setup> setup) : setup_(std::move(setup)) {}

const std::string& CodeSandbox::isolation() const { return setup_->isolation; }

absl::StatusOr<CodeSandbox> CodeSandbox::Create(const SandboxOptions& options) {
  auto setup = std::make_shared<Setup>();
  setup->limits = options.limits;
  setup->python = options.python;
  if (setup->python.empty()) {
    ASSIGN_OR_RETURN(setup->python, FindPython());
  }
  setup->tmpfs_options = absl::StrCat("size=", options.limits.file_bytes, ",nr_inodes=1024,mode=0700");
  setup->uid_map = absl::StrCat(kInnerUser, " ", geteuid(), " 1\n");
  setup->gid_map = absl::StrCat(kInnerUser, " ", getegid(), " 1\n");
  std::string refusals;
  for (const bool namespaces : {true, false}) {
    std::string failure = "not wanted";
    if (!namespaces || options.allow_namespaces) {
      failure.clear();
      setup->Confine(namespaces);
      if (setup->filter.empty())
        return NotSupportedError("sandbox: expected a processor with a seccomp filter (x86-64, ARM64), found another");
      ASSIGN_OR_RETURN(const SandboxRun run, setup->Run(kProbe, &failure));
      const bool ready = failure.empty() && run.outcome == SandboxOutcome::kExited && run.code == 0 && run.output == kProbeOutput;
      if (ready) {
        setup->isolation = namespaces ? "user, network, process, mount and IPC namespaces, seccomp filter, resource limits"
                                      : absl::StrCat("seccomp filter without writing, resource limits (no namespaces: ", refusals, ")");
        return CodeSandbox(std::move(setup));
      }
      if (failure.empty()) failure = absl::StrCat("a trivial program: ", Printable(run.output));
    }
    refusals = refusals.empty() ? failure : absl::StrCat(refusals, "; without namespaces: ", failure);
  }
  return NotSupportedError("sandbox: expected a system that confines programs, found: ", refusals);
}

absl::StatusOr<SandboxRun> CodeSandbox::RunPython(absl::string_view program) const {
  std::string failure;
  ASSIGN_OR_RETURN(SandboxRun run, setup_->Run(program, &failure));
  if (!failure.empty()) return IoError("sandbox: ", failure);
  return run;
}

}  // namespace pith
