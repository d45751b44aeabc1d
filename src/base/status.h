// Errors: absl::Status with a code that decides the exit code, and a message that names the thing, the expectation and the finding.
//
//   return BadFileError("model.safetensors: header: expected a length of at most ", kMax, ", found ", n);
//   ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
//   RETURN_IF_ERROR(Annotate(Check(tensor), name));          // message becomes "name: ..."
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace pith {

// Exit codes of the binary (fixed; scripts rely on them).
enum ExitCode : int {
  kExitDone = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitRefused = 3,       // a quality gate or guard said no
  kExitNotSupported = 4,  // format, architecture or scheme
  kExitBadFile = 65,
  kExitMissingInput = 66,
  kExitUnavailable = 69,  // port or device
  kExitBug = 70,
  kExitOutOfMemory = 71,
  kExitCannotCreate = 73,
  kExitIo = 74,
  kExitInterrupted = 130,
  kExitTerminated = 143,
};

// The exit code a status stands for; kExitDone for OK. See the constructors below for the mapping.
ExitCode ToExitCode(const absl::Status& status);

// Constructors, one per kind of failure; the exit codes in their order: 2, 3, 4, 65, 66, 69, 70, 71, 73, 74, 130.
// Arguments are concatenated as by absl::StrCat.
template <typename... Args> absl::Status UsageError(const Args&... args) { return absl::InvalidArgumentError(absl::StrCat(args...)); }
template <typename... Args> absl::Status RefusedError(const Args&... args) { return absl::FailedPreconditionError(absl::StrCat(args...)); }
template <typename... Args> absl::Status NotSupportedError(const Args&... args) { return absl::UnimplementedError(absl::StrCat(args...)); }
template <typename... Args> absl::Status BadFileError(const Args&... args) { return absl::DataLossError(absl::StrCat(args...)); }
template <typename... Args> absl::Status MissingInputError(const Args&... args) { return absl::NotFoundError(absl::StrCat(args...)); }
template <typename... Args> absl::Status UnavailableError(const Args&... args) { return absl::UnavailableError(absl::StrCat(args...)); }
template <typename... Args> absl::Status BugError(const Args&... args) { return absl::InternalError(absl::StrCat(args...)); }
template <typename... Args> absl::Status OutOfMemoryError(const Args&... args) {
  return absl::ResourceExhaustedError(absl::StrCat(args...));
}
template <typename... Args> absl::Status CannotCreateError(const Args&... args) {
  return absl::PermissionDeniedError(absl::StrCat(args...));
}
template <typename... Args> absl::Status IoError(const Args&... args) { return absl::AbortedError(absl::StrCat(args...)); }
template <typename... Args> absl::Status CancelledError(const Args&... args) { return absl::CancelledError(absl::StrCat(args...)); }

// kInvalidArgument about one named field of a request or flag: the message is "field: ...", and ErrorField gives the name back.
absl::Status FieldErrorImpl(absl::string_view field, absl::string_view message);
template <typename... Args> absl::Status FieldError(absl::string_view field, const Args&... args) {
  return FieldErrorImpl(field, absl::StrCat(args...));
}
// The field a status is about; empty when it names none. Annotate keeps it.
std::string ErrorField(const absl::Status& status);

// Prefixes the message with "context: ", unless it begins with that already; OK stays OK.
absl::Status Annotate(const absl::Status& status, absl::string_view context);

// Text of untrusted origin made safe for messages and logs: control and non-UTF-8 bytes escaped as \xNN; what passes `max_bytes` is
// cut between characters and replaced by "...".
std::string Printable(absl::string_view text, size_t max_bytes = 120);

}  // namespace pith

#define PITH_CONCAT_INNER(a, b) a##b
#define PITH_CONCAT(a, b) PITH_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expr)                  \
  do {                                         \
    ::absl::Status pith_status = (expr);       \
    if (!pith_status.ok()) return pith_status; \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, expr) PITH_ASSIGN_OR_RETURN(PITH_CONCAT(pith_statusor_, __LINE__), lhs, expr)
#define PITH_ASSIGN_OR_RETURN(statusor, lhs, expr) \
  auto statusor = (expr);                          \
  if (!statusor.ok()) return statusor.status();    \
  lhs = *std::move(statusor)
