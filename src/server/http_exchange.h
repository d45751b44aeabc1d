// One HTTP request and its answer: handlers fill it from any thread, the connection's coroutine empties it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/asio.h"
#include "server/http_server.h"
#include "server/http_types.h"

namespace pith {

// Counters and settings every connection of a server shares.
struct HttpShared {
  HttpServerConfig config;
  HttpServer::Handler handler;
  HttpServer::ErrorBody error_body;
  std::atomic<int64_t> connections{0}, exchanges{0};
  std::atomic<bool> draining{false};
};

class HttpExchange : public Responder, public std::enable_shared_from_this<HttpExchange> {
 public:
  HttpExchange(boost::asio::any_io_executor executor, std::shared_ptr<HttpShared> shared);
  ~HttpExchange() override { --shared_->exchanges; }

  void Send(HttpResponse response) override;
  void BeginStream(HttpResponse response) override;
  bool Write(std::string chunk) override;
  void End() override;
  void OnDisconnect(std::function<void()> callback) override;

  // The rest is for the connection.

  bool HasHead() const;
  bool streaming() const;
  HttpResponse TakeHead();
  // Bytes ready to be sent; `ended` tells whether they are the last, `overflowed` that the client reads too slowly.
  std::string TakeChunks(bool* ended, bool* overflowed);
  // Waits until there is something new, or it is time to ask whether the client is still there.
  boost::asio::awaitable<void> Wait();
  // The client is gone, or the answer is complete: no more callbacks, everything given later is dropped.
  void Close(bool disconnected);

 private:
  template <typename F> auto Locked(F f) const {
    const std::lock_guard lock(mutex_);
    return f();
  }
  template <typename F> void Update(F change);

  std::shared_ptr<HttpShared> shared_;
  boost::asio::steady_timer wake_;
  mutable std::mutex mutex_;
  std::optional<HttpResponse> head_;
  std::deque<std::string> chunks_;
  size_t unsent_bytes_ = 0;
  bool dirty_ = false, streaming_ = false, ended_ = false, gone_ = false, overflowed_ = false;
  std::function<void()> on_disconnect_;
};

// Runs the server's handler on the calling thread. A handler that lets go of its responder unanswered, or throws, has answered 500.
void RunHandler(const std::shared_ptr<HttpShared>& shared, HttpRequest request, std::shared_ptr<HttpExchange> exchange);

}  // namespace pith
