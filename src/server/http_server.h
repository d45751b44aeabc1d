// HTTP/1.1 on one I/O thread: parsing with limits and timeouts, keep-alive, chunked streams, detection of clients that went away.
// Handlers run on a small pool of worker threads, so that tokenizing a long prompt never holds up other connections.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/http_types.h"

namespace pith {

struct HttpServerConfig {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0: any free one
  int worker_threads = 2;
  int max_connections = 1024;
  size_t max_header_bytes = size_t{64} << 10;  // 431 above
  size_t max_target_bytes = size_t{8} << 10;   // 414 above
  size_t max_body_bytes = size_t{32} << 20;    // 413 above
  size_t max_unsent_bytes = size_t{1} << 20;   // of one stream; a slower reader is cut
  std::chrono::milliseconds header_timeout{10'000}, body_timeout{30'000}, idle_timeout{75'000}, write_timeout{60'000};
};

class HttpServer {
 public:
  // Called on a worker thread for every well-formed request.
  using Handler = std::function<void(HttpRequest, std::shared_ptr<Responder>)>;
  // What to answer to a request that HTTP itself refuses (status 400, 408, 413, 414, 431, 503) or a handler let drop (500).
  using ErrorBody = std::function<HttpResponse(int status, const std::string& message)>;

  // Binds and starts. Errors: kUnavailable when the address cannot be bound (in use, not local), with the address.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const HttpServerConfig& config, Handler handler, ErrorBody error_body);
  // The same refusal of an address, before any work for a server is done; another process may still take it meanwhile.
  static absl::Status CheckAddress(const HttpServerConfig& config);
  // Stops at once: open connections are cut.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  int64_t open_connections() const;
  int64_t pending_exchanges() const;  // requests whose answer is not complete
  // No new connections, and "Connection: close" on every answer from now on. Running answers go on.
  void StopAccepting();

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pith
