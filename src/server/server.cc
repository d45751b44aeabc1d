#include "server/server.h"

#include <thread>

#include "base/status.h"
#include "server/api_error.h"
#include "server/route.h"

namespace pith {

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerConfig& config, ServedModel model, std::unique_ptr<Engine> engine) {
  std::unique_ptr<Server> server(new Server());
  server->metrics_ = std::make_unique<ServerMetrics>(model.name);
  server->worker_ = std::make_unique<OutputWorker>();
  server->bridge_ = std::make_unique<EngineBridge>(std::move(engine), config.max_queue);
  server->context_ = {
      .model = std::move(model), .bridge = server->bridge_.get(), .worker = server->worker_.get(), .metrics = server->metrics_.get()};
  ASSIGN_OR_RETURN(server->http_, HttpServer::Start(
                                      config.http,
                                      [context = &server->context_](HttpRequest request, std::shared_ptr<Responder> responder) {
                                        Dispatch(*context, request, std::move(responder));
                                      },
                                      [](int status, const std::string& message) { return ToResponse(MakeApiError(status, message)); }));
  return server;
}

Server::~Server() {
  if (http_ != nullptr) http_->StopAccepting();
  if (bridge_ != nullptr) bridge_->Stop();  // ends what still runs; later requests are refused
  http_.reset();                            // no handler and no disconnect callback runs after this
  worker_.reset();
  bridge_.reset();
}

bool Server::Drain(std::chrono::milliseconds timeout) {
  bridge_->StartDraining();
  http_->StopAccepting();
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (bridge_->num_live() > 0 || http_->pending_exchanges() > 0) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace pith
