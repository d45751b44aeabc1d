#include "base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(StandardStreamsDeathTest, ClosedStreamsAreTakenAndOpenOnesKept) {
  const auto check = [] {
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    ReserveStandardStreams();
    char byte;
    if (read(STDIN_FILENO, &byte, 1) != 0) std::exit(1);             // empty
    if (write(STDOUT_FILENO, "x", 1) != -1) std::exit(2);            // an error
    if (write(STDERR_FILENO, "still open", 10) != 10) std::exit(3);  // as it was
    if (open("/dev/null", O_RDONLY | O_CLOEXEC) <= STDERR_FILENO) std::exit(4);
    close(STDERR_FILENO);
    ReserveStandardStreams();
    std::exit(write(STDERR_FILENO, "x", 1) == 1 ? 0 : 5);  // dropped
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(0), "still open");
}

}  // namespace
}  // namespace pith
