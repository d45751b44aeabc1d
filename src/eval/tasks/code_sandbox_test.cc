#include "eval/tasks/code_sandbox.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/test_util.h"

namespace pith {
namespace {

using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr SandboxLimits kShort{
    .cpu_seconds = 2, .wall_seconds = 30, .memory_bytes = int64_t{256} << 20, .file_bytes = 1 << 20, .output_bytes = 4096};

// Every test runs with namespaces (where the kernel permits them) and without.
class CodeSandboxTest : public ::testing::TestWithParam<bool> {
 protected:
  static absl::StatusOr<CodeSandbox> Make(SandboxLimits limits = kShort) {
    return CodeSandbox::Create({.limits = limits, .allow_namespaces = GetParam()});
  }
  static SandboxRun Run(const std::string& program, SandboxLimits limits = kShort) {
    const auto sandbox = Make(limits);
    EXPECT_TRUE(sandbox.ok()) << sandbox.status();
    if (!sandbox.ok()) return {.code = -1};
    auto run = sandbox->RunPython(program);
    EXPECT_TRUE(run.ok()) << run.status();
    return run.ok() ? *std::move(run) : SandboxRun{.code = -1};
  }
  // The program must end by itself with status 0: it raises when it can do what it tries.
  static void ExpectDone(const std::string& program) {
    const SandboxRun run = Run(program);
    EXPECT_EQ(run.outcome, SandboxOutcome::kExited);
    EXPECT_EQ(run.code, 0) << run.output;
  }
};

TEST_P(CodeSandboxTest, RunsProgramsAndKeepsWhatTheyWrite) {
  const SandboxRun run = Run("import sys\nprint('out')\nprint('err', file=sys.stderr)\n");
  EXPECT_EQ(run.outcome, SandboxOutcome::kExited);
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.output, HasSubstr("out\n"));
  EXPECT_THAT(run.output, HasSubstr("err\n"));
  EXPECT_GT(run.seconds, 0);
  const SandboxRun failed = Run("assert 1 == 2, 'no'\n");
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(failed.output, EndsWith("AssertionError: no\n"));
  EXPECT_EQ(Run("raise SystemExit(7)").code, 7);
  EXPECT_EQ(Run("").code, 0);
}

TEST_P(CodeSandboxTest, ProgramsLongerThanAPipeArrive) {
  std::string program = "n = 0\n";
  for (int i = 0; i < 40'000; ++i) program += "n += 1\n";
  ExpectDone(program + "assert n == 40000\n");
}

TEST_P(CodeSandboxTest, SaysWhatConfines) {
  const auto sandbox = Make();
  ASSERT_TRUE(sandbox.ok()) << sandbox.status();
  EXPECT_THAT(sandbox->isolation(), HasSubstr("seccomp"));
  EXPECT_THAT(sandbox->isolation(), AnyOf(HasSubstr(GetParam() ? "network" : "not wanted"), HasSubstr("without writing")));
}

TEST_P(CodeSandboxTest, EndlessLoopsEndAtTheLimitOfCpuTime) {
  const SandboxRun run = Run("while True: pass\n", {.cpu_seconds = 1, .wall_seconds = 60});
  EXPECT_EQ(run.outcome, SandboxOutcome::kTimedOut);
  EXPECT_LT(run.seconds, 50);
}

TEST_P(CodeSandboxTest, SleepersEndAtTheLimitOfWallTime) {
  const SandboxRun run = Run("import time\nprint('begun', flush=True)\ntime.sleep(1000)\n", {.cpu_seconds = 5, .wall_seconds = 1.5});
  EXPECT_EQ(run.outcome, SandboxOutcome::kTimedOut);
  EXPECT_LT(run.seconds, 50);
}

TEST_P(CodeSandboxTest, IgnoredSignalsDoNotHelp) {
  const SandboxRun run = Run(
      "import signal\n"
      "for s in signal.valid_signals():\n"
      "    try: signal.signal(s, signal.SIG_IGN)\n"
      "    except (OSError, ValueError): pass\n"
      "try:\n"
      "    import ctypes; ctypes.CDLL(None).prctl(1, 0)\n"
      "except Exception: pass\n"
      "while True: pass\n",
      {.cpu_seconds = 1, .wall_seconds = 30});
  EXPECT_EQ(run.outcome, SandboxOutcome::kTimedOut);
}

TEST_P(CodeSandboxTest, MemoryHogsGetNoMore) {
  const SandboxRun run = Run("data = []\nwhile True: data.append(bytearray(10 << 20))\n");
  EXPECT_EQ(run.outcome, SandboxOutcome::kExited);
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.output, HasSubstr("MemoryError"));
}

TEST_P(CodeSandboxTest, ForkBombsHaveNoFuse) {
  ExpectDone(
      "import os, subprocess, multiprocessing\n"
      "def refused(f):\n"
      "    try: f()\n"
      "    except (OSError, subprocess.SubprocessError): return\n"
      "    os._exit(9)\n"
      "refused(os.fork)\n"
      "refused(lambda: os.posix_spawn('/bin/true', ['true'], {}))\n"
      "refused(lambda: subprocess.run(['/bin/true']))\n"
      "refused(lambda: multiprocessing.get_context('fork').Process(target=print).start())\n");
  const SandboxRun bomb = Run("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n",
                              {.cpu_seconds = 1, .wall_seconds = 30});
  EXPECT_EQ(bomb.outcome, SandboxOutcome::kTimedOut);
}

TEST_P(CodeSandboxTest, ThreadsAreAllowedAndThreadBombsEnd) {
  ExpectDone("import threading\nt = threading.Thread(target=print)\nt.start()\nt.join()\n");
  const SandboxRun bomb = Run(
      "import threading, time\nn = 0\n"
      "try:\n"
      "    while True: threading.Thread(target=time.sleep, args=(100,), daemon=True).start(); n += 1\n"
      "except (RuntimeError, MemoryError): import os; os._exit(0 if n < 5000 else 3)\n");
  EXPECT_TRUE(bomb.code == 0 || bomb.outcome != SandboxOutcome::kExited) << bomb.output;
}

TEST_P(CodeSandboxTest, FilesOutsideStayAsTheyAre) {
  const ScratchDirectory scratch;
  ASSERT_TRUE(WriteFileAtomically(scratch.File("kept"), "kept").ok());
  const std::string program =
      "import os, shutil\n"
      "d = '" +
      scratch.path() +
      "'\n"
      "def refused(f):\n"
      "    try: f()\n"
      "    except OSError: return\n"
      "    os._exit(9)\n"
      "refused(lambda: open(d + '/new', 'w'))\n"
      "refused(lambda: open(d + '/kept', 'a'))\n"
      "refused(lambda: open(d + '/kept', 'r+'))\n"
      "refused(lambda: os.truncate(d + '/kept', 0))\n"
      "refused(lambda: os.remove(d + '/kept'))\n"
      "refused(lambda: os.rename(d + '/kept', d + '/moved'))\n"
      "refused(lambda: os.chmod(d + '/kept', 0))\n"
      "refused(lambda: os.mkdir(d + '/directory'))\n"
      "refused(lambda: os.symlink('/', d + '/link'))\n"
      "refused(lambda: os.utime(d + '/kept', (0, 0)))\n"
      "refused(lambda: open('/dev/shm/pith-sandbox-escape', 'w'))\n"
      "refused(lambda: open('/tmp/pith-sandbox-escape', 'w'))\n"
      "assert open(d + '/kept').read() == 'kept'\n";
  ExpectDone(program);
  EXPECT_EQ(*ReadFile(scratch.File("kept")), "kept");
  EXPECT_EQ(ListDirectory(scratch.path())->size(), 1u);
}

TEST_P(CodeSandboxTest, ItsDirectoryIsEmptyAndGoesAway) {
  const SandboxRun run = Run("import os\nassert os.listdir('.') == []\nprint(os.getcwd(), end='')\n");
  ASSERT_EQ(run.code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("pith-sandbox-"));
  EXPECT_FALSE(std::filesystem::exists(run.output));
}

TEST_P(CodeSandboxTest, WritesInItsDirectoryOnlyWhereThatIsASmallFileSystem) {
  const auto sandbox = Make();
  ASSERT_TRUE(sandbox.ok());
  const SandboxRun run = Run("open('a', 'w').write('text')\nassert open('a').read() == 'text'\n");
  const bool namespaces = sandbox->isolation().find("without writing") == std::string::npos;
  EXPECT_EQ(run.code, namespaces ? 0 : 1) << run.output;
  if (!namespaces) return;
  // One file beyond the limit, and many small ones.
  EXPECT_THAT(Run("import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nopen('a', 'wb').write(bytes(2 << 20))\n").output,
              HasSubstr("File too large"));
  EXPECT_THAT(Run("for i in range(10):\n    with open(str(i), 'wb') as f: f.write(bytes(1 << 19))\n").output,
              HasSubstr("No space left on device"));
}

TEST_P(CodeSandboxTest, NoSockets) {
  ExpectDone(
      "import os, socket\n"
      "for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK):\n"
      "    try: socket.socket(family)\n"
      "    except OSError: continue\n"
      "    os._exit(9)\n"
      "try: socket.create_connection(('127.0.0.1', 80), 1)\n"
      "except OSError: pass\n"
      "else: os._exit(9)\n");
}

TEST_P(CodeSandboxTest, OtherProcessesAreOutOfReach) {
  const std::string program =
      "import ctypes, os, signal, resource\n"
      "def refused(f):\n"
      "    try: f()\n"
      "    except OSError: return\n"
      "    os._exit(9)\n"
      "refused(lambda: os.kill(PID, 0))\n"
      "refused(lambda: os.kill(PID, signal.SIGKILL))\n"
      "refused(lambda: os.kill(-1, signal.SIGKILL))\n"
      "refused(lambda: os.killpg(os.getpgid(0), signal.SIGKILL))\n"
      "refused(lambda: resource.prlimit(PID, resource.RLIMIT_NOFILE, (1, 1)))\n"
      "refused(lambda: open('/proc/PID/mem', 'r+b'))\n"
      "c = ctypes.CDLL(None)\n"
      "assert c.unshare(0x10000000) == -1 and c.ptrace(16, PID, 0, 0) == -1\n"
      "assert c.mount(b'none', b'/', b'tmpfs', 0, None) == -1 and c.setuid(12345) == -1\n";
  ExpectDone(absl::StrReplaceAll(program, {{"PID", absl::StrCat(getpid())}}));
}

TEST_P(CodeSandboxTest, InheritsNothing) {
  const int open_fd = open("/dev/null", O_RDONLY);  // without O_CLOEXEC
  ASSERT_GE(open_fd, 0);
  setenv("PITH_SANDBOX_SECRET", "secret", 1);
  const SandboxRun run = Run(
      "import os, resource\n"
      "assert 'PITH_SANDBOX_SECRET' not in os.environ\n"
      "assert sorted(os.environ) == ['HOME', 'LANG', 'OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'PATH', 'PYTHONHASHSEED', 'PYTHONUTF8',"
      " 'TMPDIR'], sorted(os.environ)\n"
      "extra = []\n"
      "for fd in range(3, 200):\n"
      "    try: os.fstat(fd); extra.append(fd)\n"
      "    except OSError: pass\n"
      "assert extra == [], extra\n"
      "assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)\n"
      "try: resource.setrlimit(resource.RLIMIT_AS, (-1, -1))\n"
      "except (OSError, ValueError): pass\n"
      "else: os._exit(9)\n");
  EXPECT_EQ(run.code, 0) << run.output;
  unsetenv("PITH_SANDBOX_SECRET");
  close(open_fd);
}

TEST_P(CodeSandboxTest, HugeOutputIsCutToItsEnd) {
  const SandboxRun run = Run("for i in range(300000): print('line', i)\n");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.output.size(), 4096u);
  EXPECT_THAT(run.output, EndsWith("line 299999\n"));
  EXPECT_EQ(Run("import os\nwhile True: os.write(1, b'x' * 65536)\n", {.cpu_seconds = 1, .wall_seconds = 3}).outcome,
            SandboxOutcome::kTimedOut);
}

TEST_P(CodeSandboxTest, CrashesAreSignals) {
  const SandboxRun run = Run("import ctypes\nctypes.string_at(0)\n");
  EXPECT_EQ(run.outcome, SandboxOutcome::kSignalled);
  EXPECT_EQ(run.code, SIGSEGV);
}

TEST_P(CodeSandboxTest, ProgramsRunSideBySide) {
  const auto sandbox = Make();
  ASSERT_TRUE(sandbox.ok());
  std::vector<std::thread> threads;
  std::vector<int> codes(4, -1);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const auto run = sandbox->RunPython(absl::StrCat("import time\ntime.sleep(0.2)\nraise SystemExit(", i, ")"));
      if (run.ok()) codes[i] = run->code;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(codes, ::testing::ElementsAre(0, 1, 2, 3));
}

TEST_P(CodeSandboxTest, AnInterruptKillsTheProgram) {
  const auto sandbox = Make({.cpu_seconds = 60, .wall_seconds = 100});
  ASSERT_TRUE(sandbox.ok());
  std::thread interrupter([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    SetInterruptSignal(SIGINT);
  });
  const auto run = sandbox->RunPython("import time\ntime.sleep(90)\n");
  interrupter.join();
  SetInterruptSignal(0);
  EXPECT_TRUE(absl::IsCancelled(run.status())) << run.status();
}

// The supervising process, an orphan then, ends only after the program has.
TEST_P(CodeSandboxTest, TheEndOfTheCallerKillsTheProgram) {
  if (!FileExists(absl::StrCat("/proc/self/task/", getpid(), "/children"))) GTEST_SKIP() << "needs a kernel that lists children";
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t caller = fork();
  ASSERT_GE(caller, 0);
  if (caller == 0) {
    const auto sandbox = Make({.cpu_seconds = 60, .wall_seconds = 100});
    // A child of the trivial program's run is gone by now: the next one is the run that counts.
    if (sandbox.ok() && raise(SIGSTOP) == 0) (void)sandbox->RunPython("import time\ntime.sleep(90)\n");
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(caller, &status, WUNTRACED), caller);
  ASSERT_TRUE(WIFSTOPPED(status)) << "no sandbox";
  kill(caller, SIGCONT);
  const std::string children = absl::StrCat("/proc/", caller, "/task/", caller, "/children");
  const auto has_child = [&] {
    std::ifstream list(children);
    pid_t child = 0;
    return static_cast<bool>(list >> child);
  };
  while (!has_child()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  kill(caller, SIGKILL);
  ASSERT_EQ(waitpid(caller, &status, 0), caller);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_GT(waitpid(-1, &status, 0), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

INSTANTIATE_TEST_SUITE_P(Isolation, CodeSandboxTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Namespaces" : "FilterOnly"; });

TEST(CodeSandboxNamespaceTest, MemoryAndEnvironmentOfOthersAreHidden) {
  const auto sandbox = CodeSandbox::Create({.limits = kShort});
  ASSERT_TRUE(sandbox.ok()) << sandbox.status();
  if (absl::StrContains(sandbox->isolation(), "without writing")) GTEST_SKIP() << "needs a kernel that permits user namespaces";
  for (const char* file : {"mem", "environ", "maps"}) {
    const auto run = sandbox->RunPython(absl::StrCat("open('/proc/", getpid(), "/", file, "', 'rb').read(1)"));
    EXPECT_EQ(run->code, 1) << file;
  }
}

TEST(CodeSandboxCreateTest, AMissingInterpreterIsNamed) {
  const auto sandbox = CodeSandbox::Create({.python = "/nowhere/python3"});
  EXPECT_TRUE(absl::IsUnimplemented(sandbox.status())) << sandbox.status();
  EXPECT_THAT(sandbox.status().message(), HasSubstr("exec of python3: No such file"));
}

}  // namespace
}  // namespace pith
