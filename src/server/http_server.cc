#include "server/http_server.h"

#include <exception>
#include <thread>

#include "base/log.h"
#include "base/status.h"
#include "server/asio.h"
#include "server/http_connection.h"
#include "server/http_exchange.h"

namespace pith {
namespace {

using std::chrono::milliseconds;

// An exception (no memory for a request, say) ends the connection it came from and no other.
void LogException(std::exception_ptr error) {
  try {
    if (error != nullptr) std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    spdlog::error("connection: {}", thrown.what());
  }
}

absl::Status Listen(const HttpServerConfig& config, Tcp::acceptor& acceptor) {
  beast::error_code error;
  const auto address = asio::ip::make_address(config.host == "localhost" ? "127.0.0.1" : config.host, error);
  if (error) return UsageError("--host: expected an IP address or localhost, found ", Printable(config.host));
  const Tcp::endpoint endpoint(address, static_cast<uint16_t>(config.port));
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) return absl::OkStatus();
  return UnavailableError(config.host, ":", config.port, ": cannot listen: ", error.message(), "; --port takes another");
}

}  // namespace

struct HttpServer::Impl {
  explicit Impl(const HttpServerConfig& config) : workers(static_cast<size_t>(config.worker_threads)), acceptor(io) {}

  asio::awaitable<void> Accept() {
    for (;;) {
      auto [error, socket] = co_await acceptor.async_accept(kUseTuple);
      if (error == asio::error::operation_aborted) co_return;
      if (error) {  // out of file descriptors, say: let connections end before trying again
        spdlog::warn("accept: {}", error.message());
        asio::steady_timer pause(io, milliseconds(50));
        co_await pause.async_wait(kUseTuple);
        continue;
      }
      if (shared->connections >= shared->config.max_connections) continue;  // closes the socket
      asio::co_spawn(io, ServeConnection(std::move(socket), shared, workers), LogException);
    }
  }

  // Accepts again when accepting itself ran out of memory.
  void StartAccepting() {
    asio::co_spawn(io, Accept(), [this](std::exception_ptr error) {
      LogException(error);
      if (error != nullptr) StartAccepting();
    });
  }

  // What is thrown inside an operation of the library passes through run(): the operation and its connection are gone, the rest goes on.
  void Run() {
    for (;;) {
      try {
        io.run();
        return;
      } catch (const std::exception& error) {
        spdlog::error("connection: {}", error.what());
      }
    }
  }

  asio::io_context io{1};
  // The I/O thread lives as long as the server: what other threads post after the last connection would otherwise never run, nor let go of
  // its exchange.
  asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(io);
  asio::thread_pool workers;
  Tcp::acceptor acceptor;
  std::shared_ptr<HttpShared> shared = std::make_shared<HttpShared>();
  std::thread io_thread;
  int port = 0;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpServerConfig& config, Handler handler, ErrorBody error_body) {
  std::unique_ptr<Impl> impl;
  try {
    impl = std::make_unique<Impl>(config);
  } catch (const boost::system::system_error& error) {
    return OutOfMemoryError("server: expected to start ", config.worker_threads, " worker threads, found ", error.what());
  }
  impl->shared->config = config;
  impl->shared->handler = std::move(handler);
  impl->shared->error_body = std::move(error_body);
  RETURN_IF_ERROR(Listen(config, impl->acceptor));
  impl->port = impl->acceptor.local_endpoint().port();
  impl->StartAccepting();
  impl->io_thread = std::thread([running = impl.get()] { running->Run(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

absl::Status HttpServer::CheckAddress(const HttpServerConfig& config) {
  asio::io_context io;
  Tcp::acceptor acceptor(io);
  return Listen(config, acceptor);
}

HttpServer::~HttpServer() {
  impl_->workers.join();
  impl_->io.stop();
  impl_->io_thread.join();
}

int HttpServer::port() const { return impl_->port; }
int64_t HttpServer::open_connections() const { return impl_->shared->connections; }
int64_t HttpServer::pending_exchanges() const { return impl_->shared->exchanges; }

void HttpServer::StopAccepting() {
  impl_->shared->draining = true;
  asio::post(impl_->io, [impl = impl_.get()] {
    beast::error_code ignored;
    impl->acceptor.close(ignored);
  });
}

}  // namespace pith
