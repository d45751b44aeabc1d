// Ctrl-C, SIGTERM and a hangup as a flag that long work polls between steps.
#pragma once

#include "absl/status/status.h"

namespace pith {

// Installs handlers for SIGINT, SIGTERM and, unless it is ignored (nohup), SIGHUP; ignores SIGPIPE and SIGXFSZ, so that writes return
// errors. A second SIGINT ends the process at once with exit code 130; SIGBUS (a mapped file was cut short while in use) with a message
// and 74.
void InstallSignalHandlers();

// The signal received, or 0. Async-signal-safe flag, readable from every thread.
int InterruptSignal();

// OK, or kCancelled ("interrupted") once a signal came.
absl::Status CheckInterrupted();

// For tests and for embedding: sets or clears the flag.
void SetInterruptSignal(int signal);

}  // namespace pith
