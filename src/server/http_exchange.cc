#include "server/http_exchange.h"

#include <new>
#include <utility>

#include "base/log.h"

namespace pith {
namespace {

constexpr std::chrono::milliseconds kDisconnectPoll{100};  // how often a waiting connection is asked whether its client is still there

// What handlers hold: answers 500 when dropped unanswered.
class GuardedResponder : public Responder {
 public:
  GuardedResponder(std::shared_ptr<HttpExchange> exchange, std::shared_ptr<HttpShared> shared)
      : exchange_(std::move(exchange)), shared_(std::move(shared)) {}
  ~GuardedResponder() override {
    if (!exchange_->HasHead()) exchange_->Send(shared_->error_body(500, "the request was dropped"));
    exchange_->End();
  }
  void Send(HttpResponse response) override { exchange_->Send(std::move(response)); }
  void BeginStream(HttpResponse response) override { exchange_->BeginStream(std::move(response)); }
  bool Write(std::string chunk) override { return exchange_->Write(std::move(chunk)); }
  void End() override { exchange_->End(); }
  void OnDisconnect(std::function<void()> callback) override { exchange_->OnDisconnect(std::move(callback)); }

 private:
  std::shared_ptr<HttpExchange> exchange_;
  std::shared_ptr<HttpShared> shared_;
};

}  // namespace

HttpExchange::HttpExchange(boost::asio::any_io_executor executor, std::shared_ptr<HttpShared> shared)
    : shared_(std::move(shared)), wake_(executor) {
  ++shared_->exchanges;
  wake_.expires_at(boost::asio::steady_timer::time_point::max());
}

template <typename F> void HttpExchange::Update(F change) {
  {
    const std::lock_guard lock(mutex_);
    change();
    dirty_ = true;
  }
  // The timer belongs to the I/O thread. Without memory to wake it, it looks after kDisconnectPoll by itself.
  try {
    boost::asio::post(wake_.get_executor(), [self = weak_from_this().lock()] {
      if (self != nullptr) self->wake_.cancel();
    });
  } catch (const std::bad_alloc&) {
    return;
  }
}

void HttpExchange::Send(HttpResponse response) {
  Update([&] {
    if (head_.has_value()) return;
    head_ = std::move(response);
    ended_ = true;
  });
}

void HttpExchange::BeginStream(HttpResponse response) {
  Update([&] {
    if (head_.has_value()) return;
    head_ = std::move(response);
    streaming_ = true;
  });
}

bool HttpExchange::Write(std::string chunk) {
  bool alive = true;
  Update([&] {
    if (gone_ || unsent_bytes_ + chunk.size() > shared_->config.max_unsent_bytes) {
      alive = false;
      overflowed_ = !gone_;
      return;
    }
    unsent_bytes_ += chunk.size();
    chunks_.push_back(std::move(chunk));
  });
  return alive;
}

void HttpExchange::End() {
  Update([&] { ended_ = true; });
}

void HttpExchange::OnDisconnect(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (!gone_) {
      on_disconnect_ = std::move(callback);
      return;
    }
  }
  callback();
}

bool HttpExchange::HasHead() const {
  return Locked([&] { return head_.has_value(); });
}

bool HttpExchange::streaming() const {
  return Locked([&] { return streaming_; });
}

HttpResponse HttpExchange::TakeHead() {
  return Locked([&] { return std::move(*head_); });
}

std::string HttpExchange::TakeChunks(bool* ended, bool* overflowed) {
  return Locked([&] {
    std::string joined;
    for (const std::string& chunk : chunks_) joined += chunk;
    chunks_.clear();
    unsent_bytes_ = 0;
    *ended = ended_;
    *overflowed = overflowed_;
    return joined;
  });
}

boost::asio::awaitable<void> HttpExchange::Wait() {
  if (Locked([&] { return std::exchange(dirty_, false); })) co_return;
  wake_.expires_after(kDisconnectPoll);
  co_await wake_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  Locked([&] { return dirty_ = false; });
}

void HttpExchange::Close(bool disconnected) {
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    callback = std::exchange(on_disconnect_, nullptr);
  }
  if (disconnected && callback) callback();
}

void RunHandler(const std::shared_ptr<HttpShared>& shared, HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
  const auto responder = std::make_shared<GuardedResponder>(exchange, shared);
  const auto fail = [&](int status, const char* message, const char* what) {
    spdlog::error("{}: {}", message, what);
    exchange->Send(shared->error_body(status, message));
  };
  try {
    shared->handler(std::move(request), responder);
  } catch (const std::bad_alloc& error) {
    fail(503, "out of memory", error.what());
  } catch (const std::exception& error) {
    fail(500, "internal error", error.what());
  }
}

}  // namespace pith
