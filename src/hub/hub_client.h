// The hub's API for one repository: which commit a revision is, and which files it has. Asks again as a RetryPolicy says.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hub/http_client.h"
#include "hub/hub_answers.h"
#include "hub/hub_settings.h"
#include "hub/repo_id.h"
#include "hub/retry.h"

namespace pith {

// Options of a client that talks to the hub of `settings`. stall_timeout_s: without a byte received.
HttpOptions HubHttpOptions(const HubSettings& settings, int stall_timeout_s);

// OK for 2xx, else what an answer means, by its status and the hub's X-Error-Code: kNotFound (unknown repository, revision or file; gated
// or private; a token that was refused), kUnavailable (429 and 5xx: may pass), kDataLoss (no such range), kAborted (any other). `what`:
// "config.json", or empty.
absl::Status StatusOfAnswer(const HttpClientResponse& response, const RepoId& repo, const HubSettings& settings, absl::string_view what);

// Not thread-safe.
class HubClient {
 public:
  HubClient(const HubSettings& settings, const RepoId& repo, const RetryPolicy& retry);

  // The commit of the repository's revision; no request when it is one.
  absl::StatusOr<std::string> ResolveCommit();
  // All files at a commit. Errors: as above, and kDataLoss for an answer that makes no sense.
  absl::StatusOr<std::vector<RepoFile>> ListFiles(const std::string& commit);

 private:
  // The body of an answer, and its headers in `response`.
  absl::StatusOr<std::string> GetText(const std::string& url, HttpClientResponse* response);

  const HubSettings& settings_;
  const RepoId& repo_;
  const RetryPolicy& retry_;
  HttpClient http_;
};

}  // namespace pith
