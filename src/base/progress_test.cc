#include "base/progress.h"

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;
using testing::Not;

// What `work` prints to stderr when stderr is a terminal.
std::string OnATerminal(const std::function<void()>& work) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    work();
    _exit(0);
  }
  std::string output;
  char chunk[512];
  for (ssize_t n; (n = read(terminal, chunk, sizeof(chunk))) > 0;) output.append(chunk, static_cast<size_t>(n));
  close(terminal);
  waitpid(child, nullptr, 0);
  return output;
}

std::string OnAPipe(const std::function<void()>& work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

void Wait(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

TEST(Progress, LabelsAreShownWithTheirControlCharactersEscaped) {
  const std::string text = OnAPipe([] { Progress("loading a\x1b[31m", 2, "tensors").Set(2); });
  EXPECT_THAT(text, HasSubstr("loading a\\x1B[31m 2/2 tensors"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(Progress, WithoutATerminalOnePlainLineAtTheEnd) {
  const std::string output = OnAPipe([] {
    Progress progress("quantizing", 4, "layers");
    for (int i = 0; i < 4; ++i) progress.Advance();
  });
  EXPECT_THAT(output, HasSubstr("quantizing 4/4 layers"));
  EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1);
  EXPECT_THAT(output, Not(HasSubstr("\r")));
  EXPECT_THAT(output, Not(HasSubstr("\x1B")));
}

TEST(Progress, FinishTwiceOrAdvanceAfterwardsPrintsNothingMore) {
  const std::string output = OnAPipe([] {
    Progress progress("loading", 2, "tensors");
    progress.Set(2);
    progress.Finish();
    progress.Finish();
    progress.Advance();
  });
  EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1);
}

TEST(Progress, UnknownTotalsShowACount) {
  EXPECT_THAT(OnAPipe([] { Progress("reading", 0, "windows").Set(17); }), HasSubstr("reading 17 windows"));
}

TEST(Progress, QuietPrintsNothing) {
  SetProgressEnabled(false);
  EXPECT_EQ(OnAPipe([] { Progress("x", 1, "y").Advance(); }), "");
  EXPECT_FALSE(ProgressEnabled());
  SetProgressEnabled(true);
}

TEST(Progress, OnATerminalABarWithTheTimeLeft) {
  const std::string output = OnATerminal([] {
    Progress progress("quantizing", 10, "layers");
    Wait(120);
    progress.Set(5);
    Wait(120);
    progress.Set(8);
  });
  EXPECT_THAT(output, HasSubstr("[############............] quantizing 5/10 layers"));
  EXPECT_THAT(output, HasSubstr("left"));
  EXPECT_THAT(output, HasSubstr("quantizing 8/10 layers"));
  EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1);
}

TEST(Progress, ShortWorkOnATerminalPrintsNothing) {
  EXPECT_EQ(OnATerminal([] { Progress("x", 2, "y").Set(2); }), "");
}

TEST(Progress, MoreThanTheTotalIsNeitherALongBarNorANegativeTime) {
  const std::string output = OnATerminal([] {
    Progress progress("counting", 10, "things");
    Wait(120);
    progress.Set(25);
  });
  EXPECT_THAT(output, HasSubstr("[########################] counting 25/10 things"));
  EXPECT_THAT(output, Not(HasSubstr("left")));
}

TEST(Progress, LargeRatesAreReadable) {
  const std::string output = OnAPipe([] {
    Progress progress("copying", 0, "bytes");
    Wait(2);
    progress.Set(123'456'789'012);
  });
  EXPECT_THAT(output, Not(HasSubstr("e+")));
}

TEST(Colour, OnATerminalUnlessNoColorSaysOtherwise) {
  const auto colour = [] { dprintf(STDERR_FILENO, ColorAllowed() ? "yes" : "no"); };
  unsetenv("NO_COLOR");
  EXPECT_EQ(OnATerminal(colour), "yes");
  setenv("NO_COLOR", "", 1);
  EXPECT_EQ(OnATerminal(colour), "yes");
  setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(OnATerminal(colour), "no");
  unsetenv("NO_COLOR");
}

}  // namespace
}  // namespace pith
