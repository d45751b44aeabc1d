// Is an answer the bytes of the file that was asked for? Checked before any of them is kept. Thread-safe, no state.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "hub/http_client.h"
#include "hub/hub_answers.h"

namespace pith {

// Where the body of a 2xx answer begins in the file: 0, or the start of a range (206).
struct BodyRange {
  int64_t first = 0;
  int64_t bytes = 0;  // that will come
};

// Checks an answer to a request for bytes from `first` on (to `last`, or to the end when last < 0) of `file`: its range, the size of the
// whole, X-Linked-Size and X-Linked-Etag where the hub sends them, and that it is no web page. `piece`: the first bytes, for the message.
// An answer with the whole file is right as well. Errors: kDataLoss.
absl::StatusOr<BodyRange> CheckBody(const HttpClientResponse& response, const RepoFile& file, int64_t first, int64_t last,
                                    absl::string_view piece);

}  // namespace pith
