// GET over HTTP and HTTPS, on libcurl: one connection kept open, redirects followed by hand, a token that never leaves its host.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pith {

struct HttpOptions {
  std::string token;  // sent as "Authorization: Bearer" to the origin of `token_url`, and to no other
  std::string token_url;
  std::string user_agent;
  std::string ca_bundle;  // empty: certificates of the system
  int connect_timeout_s = 10;
  int stall_timeout_s = 10;  // without a byte received
};

struct HttpClientRequest {
  std::string url;
  std::optional<int64_t> first_byte, last_byte;  // Range: bytes=first-last; the last may be left open
};

// The last answer after all redirects.
struct HttpClientResponse {
  int status = 0;
  std::string url;                             // that answered
  std::map<std::string, std::string> headers;  // names in lower case; X-Linked-* and X-Repo-Commit also of the redirects before

  // Empty when absent.
  const std::string& Header(absl::string_view name) const;
  std::optional<int64_t> content_length() const;
  // Retry-After in seconds, or what a RateLimit header of the hub says of its window; of 429 and 503.
  std::optional<int64_t> retry_after_s() const;
};

// Pieces of a body of status 2xx in order; an error ends the transfer and is returned by Get as it is.
using BodySink = absl::FunctionRef<absl::Status(const HttpClientResponse& response, absl::string_view piece)>;

// Not thread-safe; each thread has its own.
class HttpClient {
 public:
  explicit HttpClient(HttpOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // One request, answered by any status: the body of 2xx goes to `sink`, any other is dropped. Ends early on Ctrl-C and when `*cancel`
  // becomes true. Errors: kUnavailable for what may pass (no connection, a cut, a stall), kCancelled, kAborted (a certificate that is not
  // trusted), kDataLoss (a redirect that cannot be followed), and those of the sink.
  absl::StatusOr<HttpClientResponse> Get(const HttpClientRequest& request, BodySink sink, const std::atomic<bool>* cancel = nullptr);

 private:
  struct Transfer;
  struct CurlDeleter {
    void operator()(void* curl) const;
  };
  absl::Status Perform(const HttpClientRequest& request, const std::string& url, Transfer& transfer);

  const HttpOptions options_;
  std::string token_origin_;
  std::unique_ptr<void, CurlDeleter> curl_;
};

// "https://host:443" of a URL. Errors: kDataLoss.
absl::StatusOr<std::string> UrlOrigin(const std::string& url);
// `location` as a URL, relative to `base`. Errors: kDataLoss.
absl::StatusOr<std::string> ResolveUrl(const std::string& base, const std::string& location);
// A URL for messages and logs: without its query, which may be signed.
std::string ShownUrl(absl::string_view url);

}  // namespace pith
