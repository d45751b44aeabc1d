#include "hub/file_lock.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <optional>
#include <thread>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

void Nothing() {}

TEST(FileLock, TheSecondWaitsForTheFirst) {
  const ScratchDirectory scratch;
  const std::string path = scratch.File("x.lock");
  std::optional<FileLock> first = *FileLock::Acquire(path, Nothing);
  std::atomic<bool> waiting{false}, got{false};
  std::thread second([&] {
    const auto lock = FileLock::Acquire(path, [&] { waiting = true; });
    EXPECT_TRUE(lock.ok());
    got = true;
  });
  while (!waiting) std::this_thread::yield();
  EXPECT_FALSE(got);
  first.reset();
  second.join();
  EXPECT_TRUE(got);
  EXPECT_TRUE(FileExists(path));
}

TEST(FileLock, AFileRemovedByItsHolderIsNotTheLock) {
  const ScratchDirectory scratch;
  const std::string path = scratch.File("x.lock");
  std::optional<FileLock> first = *FileLock::Acquire(path, Nothing);
  std::thread second([&] {
    const auto lock = FileLock::Acquire(path, [&] {
      unlink(path.c_str());
      first.reset();
    });
    EXPECT_TRUE(lock.ok());
    EXPECT_TRUE(FileExists(path));
  });
  second.join();
}

TEST(FileLock, CtrlCEndsTheWait) {
  const ScratchDirectory scratch;
  const std::string path = scratch.File("x.lock");
  const auto first = FileLock::Acquire(path, Nothing);
  const auto second = FileLock::Acquire(path, [] { SetInterruptSignal(SIGINT); });
  SetInterruptSignal(0);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(ToExitCode(FileLock::Acquire(scratch.File("none/x.lock"), Nothing).status()), kExitCannotCreate);
}

}  // namespace
}  // namespace pith
