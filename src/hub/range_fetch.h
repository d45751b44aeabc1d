// The rest of a file by several connections at once, each asking for one range after another; the bytes are handed over in order.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "hub/download.h"

namespace pith {

// Calls `append` in the caller's thread with the bytes from `first` on, in order. On an error, everything that came without a gap has been
// handed over. OK with `*ranges_ignored` set: the server sends whole files only, and the rest has to be asked for in order. Errors: those
// of `append`, and of DownloadFile.
absl::Status FetchRanges(const DownloadSource& source, int64_t first, const DownloadOptions& options,
                         absl::FunctionRef<absl::Status(absl::string_view)> append, bool* ranges_ignored);

}  // namespace pith
