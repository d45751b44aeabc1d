#include "base/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "absl/strings/string_view.h"
#include "base/status.h"

namespace pith {
namespace {

std::atomic<int> received{0};
static_assert(std::atomic<int>::is_always_lock_free);

void Handle(int signal) {
  if (signal == SIGINT && received.load(std::memory_order_relaxed) == SIGINT) _exit(kExitInterrupted);
  received.store(signal, std::memory_order_relaxed);
}

// A page of a mapped file that is gone (cut short by someone else) or that the device cannot read. Nothing can go on without it.
void EndOnLostPage(int) {
  constexpr absl::string_view kMessage = "error: a file in use was cut short or can no longer be read: copy it before it is changed\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage.data(), kMessage.size());
  _exit(kExitIo);
}

}  // namespace

void InstallSignalHandlers() {
  struct sigaction action = {};
  action.sa_handler = Handle;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction hangup = {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
  action.sa_handler = EndOnLostPage;
  sigaction(SIGBUS, &action, nullptr);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
  sigaction(SIGXFSZ, &action, nullptr);
}

int InterruptSignal() { return received.load(std::memory_order_relaxed); }

absl::Status CheckInterrupted() { return InterruptSignal() == 0 ? absl::OkStatus() : CancelledError("interrupted"); }

void SetInterruptSignal(int signal) { received.store(signal, std::memory_order_relaxed); }

}  // namespace pith
