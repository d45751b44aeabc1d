#include "base/interrupt.h"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/file.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(Interrupt, FlagIsSetByAndClearedAfterASignal) {
  InstallSignalHandlers();
  SetInterruptSignal(0);
  EXPECT_TRUE(CheckInterrupted().ok());
  raise(SIGTERM);
  EXPECT_EQ(InterruptSignal(), SIGTERM);
  EXPECT_EQ(CheckInterrupted().code(), absl::StatusCode::kCancelled);
  SetInterruptSignal(0);
  raise(SIGINT);
  EXPECT_EQ(InterruptSignal(), SIGINT);
  SetInterruptSignal(0);
  EXPECT_TRUE(CheckInterrupted().ok());
}

TEST(InterruptDeathTest, ASecondCtrlCEndsTheProcess) {
  const auto twice = [] {
    InstallSignalHandlers();
    raise(SIGINT);
    raise(SIGINT);
  };
  EXPECT_EXIT(twice(), testing::ExitedWithCode(kExitInterrupted), "");
}

TEST(InterruptDeathTest, CtrlCAfterSigtermDoesNotEndItYet) {
  const auto both = [] {
    InstallSignalHandlers();
    raise(SIGTERM);
    raise(SIGINT);
    std::exit(InterruptSignal() == SIGINT ? 0 : 1);
  };
  EXPECT_EXIT(both(), testing::ExitedWithCode(0), "");
}

TEST(InterruptDeathTest, AMappedFileThatIsCutShortEndsTheProcessWithAMessage) {
  const ScratchDirectory scratch;
  const std::string path = scratch.File("model");
  ASSERT_TRUE(WriteFileAtomically(path, std::string(1 << 16, 'x')).ok());
  auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  const auto read_what_is_gone = [&] {
    InstallSignalHandlers();
    if (truncate(path.c_str(), 0) != 0) std::exit(kExitFailed);
    std::exit(file->bytes()[1 << 15] == 'x' ? 0 : 1);
  };
  EXPECT_EXIT(read_what_is_gone(), testing::ExitedWithCode(kExitIo), "cut short");
}

TEST(InterruptDeathTest, AHangupIsASignalUnlessItIsIgnored) {
  const auto hang_up = [](bool ignored) {
    std::signal(SIGHUP, ignored ? SIG_IGN : SIG_DFL);
    InstallSignalHandlers();
    raise(SIGHUP);
    std::exit(InterruptSignal());
  };
  EXPECT_EXIT(hang_up(false), testing::ExitedWithCode(SIGHUP), "");
  EXPECT_EXIT(hang_up(true), testing::ExitedWithCode(0), "");
}

TEST(InterruptDeathTest, AClosedPipeAndAFileSizeLimitAreErrorsNotSignals) {
  const auto write_to_both = [] {
    InstallSignalHandlers();
    int ends[2];
    if (pipe(ends) != 0) std::exit(1);
    close(ends[0]);
    if (write(ends[1], "x", 1) != -1) std::exit(2);
    const ScratchDirectory scratch;
    const rlimit limit = {4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    const absl::Status status = WriteFileAtomically(scratch.File("big"), std::string(10000, 'x'));
    std::exit(status.code() == absl::StatusCode::kAborted && ListDirectory(scratch.path())->empty() ? 0 : 3);
  };
  EXPECT_EXIT(write_to_both(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace pith
