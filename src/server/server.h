// The OpenAI-compatible server of one model: engine thread, output worker, HTTP. Serves from construction to destruction.
#pragma once

#include <chrono>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/engine.h"
#include "server/http_server.h"
#include "server/server_context.h"

namespace pith {

struct ServerConfig {
  HttpServerConfig http;
  int64_t max_queue = 512;  // requests running or waiting; more are answered 429
};

class Server {
 public:
  // Errors: those of HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerConfig& config, ServedModel model, std::unique_ptr<Engine> engine);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const { return http_->port(); }
  // Refuses new work and waits until every answer is complete, or `timeout` has passed; true in the first case.
  bool Drain(std::chrono::milliseconds timeout);

 private:
  Server() = default;

  ServerContext context_;
  std::unique_ptr<ServerMetrics> metrics_;
  std::unique_ptr<OutputWorker> worker_;
  std::unique_ptr<EngineBridge> bridge_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace pith
