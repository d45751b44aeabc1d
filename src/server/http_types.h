// Requests and responses as handlers see them, free of any HTTP library.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace pith {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;  // "GET", "POST", ...
  std::string path;    // decoded, without the query
  std::string query;   // after '?', undecoded
  HttpHeaders headers;
  std::string body;
  std::string id;  // X-Request-Id of the client when it is plain, else made here; echoed in the response

  // The first header of this name (case-insensitive); nullptr when absent.
  const std::string* FindHeader(absl::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  HttpHeaders headers;  // beside Content-Type and Content-Length
};

// Where a handler puts its answer: either one Send, or BeginStream, any number of Write, End. Thread-safe; may outlive the connection, and
// then drops what it is given. A handler that lets go of the last reference without answering answers 500.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void Send(HttpResponse response) = 0;
  // Starts a chunked response (its body is ignored).
  virtual void BeginStream(HttpResponse response) = 0;
  // False when the client is gone or reads too slowly (its buffer is full); the stream is dead then.
  virtual bool Write(std::string chunk) = 0;
  virtual void End() = 0;
  // Calls `callback` once if the client disconnects before the answer is complete; at once if it already has. Replaces an earlier one.
  virtual void OnDisconnect(std::function<void()> callback) = 0;
};

// Path and query of a request target in origin form ("/path?query") or absolute form ("http://host/path?query"); %XX of the path decoded.
void SplitTarget(absl::string_view target, std::string* path, std::string* query);

}  // namespace pith
