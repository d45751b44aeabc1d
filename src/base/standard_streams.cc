#include "base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace pith {

void ReserveStandardStreams() {
  constexpr int kModes[] = {O_RDONLY, O_RDONLY, O_WRONLY};  // input: empty; output: every write fails; error: everything is dropped
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    const int opened = open("/dev/null", kModes[fd]);  // takes the lowest free number, which is `fd`
    if (opened != fd && opened >= 0) close(opened);
  }
}

}  // namespace pith
