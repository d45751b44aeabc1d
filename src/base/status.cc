#include "base/status.h"

#include <cstdio>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace pith {
namespace {

constexpr absl::string_view kFieldPayload = "pith/field";  // type of the payload that FieldError attaches

}  // namespace

ExitCode ToExitCode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk: return kExitDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange: return kExitUsage;
    case absl::StatusCode::kFailedPrecondition: return kExitRefused;
    case absl::StatusCode::kUnimplemented: return kExitNotSupported;
    case absl::StatusCode::kDataLoss: return kExitBadFile;
    case absl::StatusCode::kNotFound: return kExitMissingInput;
    case absl::StatusCode::kUnavailable: return kExitUnavailable;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown: return kExitBug;
    case absl::StatusCode::kResourceExhausted: return kExitOutOfMemory;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kAlreadyExists: return kExitCannotCreate;
    case absl::StatusCode::kAborted: return kExitIo;
    case absl::StatusCode::kCancelled: return kExitInterrupted;
    default: return kExitFailed;
  }
}

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  absl::string_view rest = status.message();
  if (absl::ConsumePrefix(&rest, context) && absl::StartsWith(rest, ": ")) return status;
  absl::Status annotated(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) { annotated.SetPayload(type, payload); });
  return annotated;
}

absl::Status FieldErrorImpl(absl::string_view field, absl::string_view message) {
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(field, ": ", message));
  status.SetPayload(kFieldPayload, absl::Cord(field));
  return status;
}

std::string ErrorField(const absl::Status& status) {
  const auto payload = status.GetPayload(kFieldPayload);
  return payload.has_value() ? std::string(*payload) : std::string();
}

namespace {

// Length of the valid UTF-8 sequence at the start of `text`, or 0.
size_t Utf8SequenceLength(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F)) return 0;
  if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) return 0;
  return length;
}

}  // namespace

std::string Printable(absl::string_view text, size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    const unsigned char first = static_cast<unsigned char>(text[0]);
    const bool control = (length == 1 && (first < 0x20 || first == 0x7F)) ||
                         (length == 2 && first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0);
    char escaped[5];
    std::snprintf(escaped, sizeof(escaped), "\\x%02X", first);
    const absl::string_view piece = length == 0 || control ? absl::string_view(escaped, 4) : text.substr(0, length);
    if (out.size() + piece.size() > max_bytes) return absl::StrCat(out, "...");
    absl::StrAppend(&out, piece);
    text.remove_prefix(length == 0 || control ? 1 : length);
  }
  return out;
}

}  // namespace pith
