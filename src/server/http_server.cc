#include "server/http_server.h"

#include <sys/socket.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "base/random.h"
#include "base/status.h"
#include "server/asio.h"

namespace pith {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = asio::ip::tcp;
using std::chrono::milliseconds;

constexpr auto kUseTuple = asio::as_tuple(asio::use_awaitable);
constexpr milliseconds kDisconnectPoll{100};  // how often a waiting connection is asked whether its client is still there

// Counters and settings every connection shares.
struct Shared {
  HttpServerConfig config;
  HttpServer::Handler handler;
  HttpServer::ErrorBody error_body;
  std::atomic<int64_t> connections{0}, exchanges{0};
  std::atomic<bool> draining{false};
};

// One request and its answer: handlers fill it from any thread, the connection's coroutine empties it.
class Exchange : public Responder, public std::enable_shared_from_this<Exchange> {
  template <typename F> auto Locked(F f) const {
    const std::lock_guard lock(mutex_);
    return f();
  }

 public:
  Exchange(asio::any_io_executor executor, std::shared_ptr<Shared> shared) : shared_(std::move(shared)), wake_(executor) {
    ++shared_->exchanges;
    wake_.expires_at(asio::steady_timer::time_point::max());
  }
  ~Exchange() override { --shared_->exchanges; }

  void Send(HttpResponse response) override {
    Update([&] {
      if (head_.has_value()) return;
      head_ = std::move(response);
      ended_ = true;
    });
  }

  void BeginStream(HttpResponse response) override {
    Update([&] {
      if (head_.has_value()) return;
      head_ = std::move(response);
      streaming_ = true;
    });
  }

  bool Write(std::string chunk) override {
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

  void End() override {
    Update([&] { ended_ = true; });
  }

  void OnDisconnect(std::function<void()> callback) override {
    {
      const std::lock_guard lock(mutex_);
      if (!gone_) {
        on_disconnect_ = std::move(callback);
        return;
      }
    }
    callback();
  }

  // The rest is for the connection.

  bool HasHead() const {
    return Locked([&] { return head_.has_value(); });
  }
  bool streaming() const {
    return Locked([&] { return streaming_; });
  }
  HttpResponse TakeHead() {
    return Locked([&] { return std::move(*head_); });
  }
  // Bytes ready to be sent; `ended` tells whether they are the last.
  std::string TakeChunks(bool* ended, bool* overflowed) {
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

  // Waits until there is something new, or the poll interval is over.
  asio::awaitable<void> Wait() {
    if (Locked([&] { return std::exchange(dirty_, false); })) co_return;
    wake_.expires_after(kDisconnectPoll);
    co_await wake_.async_wait(kUseTuple);
    Locked([&] { return dirty_ = false; });
  }

  // The client is gone, or the answer is complete: no more callbacks, everything given later is dropped.
  void Close(bool disconnected) {
    std::function<void()> callback;
    {
      const std::lock_guard lock(mutex_);
      gone_ = true;
      callback = std::exchange(on_disconnect_, nullptr);
    }
    if (disconnected && callback) callback();
  }

 private:
  template <typename F> void Update(F change) {
    {
      const std::lock_guard lock(mutex_);
      change();
      dirty_ = true;
    }
    // The timer belongs to the I/O thread.
    asio::post(wake_.get_executor(), [self = weak_from_this().lock()] {
      if (self != nullptr) self->wake_.cancel();
    });
  }

  std::shared_ptr<Shared> shared_;
  asio::steady_timer wake_;
  mutable std::mutex mutex_;
  std::optional<HttpResponse> head_;
  std::deque<std::string> chunks_;
  size_t unsent_bytes_ = 0;
  mutable bool dirty_ = false;
  bool streaming_ = false, ended_ = false, gone_ = false, overflowed_ = false;
  std::function<void()> on_disconnect_;
};

// What handlers hold: answers 500 when dropped unanswered.
class GuardedResponder : public Responder {
 public:
  GuardedResponder(std::shared_ptr<Exchange> exchange, std::shared_ptr<Shared> shared)
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
  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<Shared> shared_;
};

std::string MakeRequestId(const std::string* given) {
  if (given != nullptr && !given->empty() && given->size() <= 128) {
    const bool plain = std::all_of(given->begin(), given->end(),
                                   [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.'; });
    if (plain) return *given;
  }
  static std::atomic<uint64_t> next{0};
  static const uint64_t process = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  const auto words = Philox4x32({static_cast<uint32_t>(next++), 0, 0, 0},
                                {static_cast<uint32_t>(process), static_cast<uint32_t>(process >> 32)});
  return absl::StrCat(absl::Hex(words[0], absl::kZeroPad8), absl::Hex(words[1], absl::kZeroPad8));
}

class Connection {
 public:
  Connection(Tcp::socket socket, std::shared_ptr<Shared> shared, asio::thread_pool& workers)
      : stream_(std::move(socket)), shared_(std::move(shared)), workers_(workers) {
    ++shared_->connections;
    beast::error_code ignored;
    stream_.socket().set_option(Tcp::no_delay(true), ignored);
  }
  ~Connection() { --shared_->connections; }

  asio::awaitable<void> Run() {
    bool keep = true;
    for (bool first = true; keep; first = false) keep = co_await Serve(first);
    beast::error_code ignored;
    stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
  }

 private:
  using Parser = http::request_parser<http::string_body>;

  // One request and its answer. False when the connection must close.
  asio::awaitable<bool> Serve(bool first) {
    Parser parser;
    parser.header_limit(static_cast<uint32_t>(shared_->config.max_header_bytes + shared_->config.max_target_bytes));
    parser.body_limit(shared_->config.max_body_bytes);
    if (buffer_.size() == 0) {  // wait for the first byte of a request for as long as an idle connection may
      stream_.expires_after(first ? shared_->config.header_timeout : shared_->config.idle_timeout);
      auto [error, bytes] = co_await stream_.async_read_some(buffer_.prepare(4096), kUseTuple);
      if (error) co_return false;
      buffer_.commit(bytes);
    }
    stream_.expires_after(shared_->config.header_timeout);
    if (auto [error, n] = co_await http::async_read_header(stream_, buffer_, parser, kUseTuple); error) {
      co_return co_await Refuse(error, "header");
    }
    if (parser.get().target().size() > shared_->config.max_target_bytes)
      co_return co_await RefuseWith(414, "the request target is too long");
    if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      http::response<http::empty_body> go_on{http::status::continue_, parser.get().version()};
      if (auto [error, n] = co_await http::async_write(stream_, go_on, kUseTuple); error) co_return false;
    }
    stream_.expires_after(shared_->config.body_timeout);
    if (auto [error, n] = co_await http::async_read(stream_, buffer_, parser, kUseTuple); error) {
      co_return co_await Refuse(error, "body");
    }
    co_return co_await Answer(parser.release());
  }

  asio::awaitable<bool> Refuse(beast::error_code error, absl::string_view part) {
    if (error == http::error::body_limit) {
      co_return co_await RefuseWith(413, absl::StrCat("the request body is longer than ", shared_->config.max_body_bytes, " bytes"));
    }
    if (error == http::error::header_limit) {
      co_return co_await RefuseWith(431, absl::StrCat("the request header is longer than ", shared_->config.max_header_bytes, " bytes"));
    }
    if (error == beast::error::timeout) co_return co_await RefuseWith(408, absl::StrCat("the request ", part, " did not arrive in time"));
    if (error.category() == http::make_error_code(http::error::bad_method).category() && error != http::error::end_of_stream &&
        error != http::error::partial_message) {
      co_return co_await RefuseWith(400, absl::StrCat("malformed HTTP ", part, ": ", error.message()));
    }
    co_return false;
  }

  asio::awaitable<bool> RefuseWith(int status, std::string message) {
    stream_.expires_after(shared_->config.write_timeout);
    co_await WriteWhole(shared_->error_body(status, message), 11, /*keep_alive=*/false, /*head=*/false, "");
    // Read on briefly, so that closing does not reset the connection before the client has seen the answer.
    beast::error_code ignored;
    stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
    stream_.expires_after(milliseconds(500));
    for (size_t drained = 0; drained < (size_t{4} << 20);) {
      auto [error, bytes] = co_await stream_.async_read_some(buffer_.prepare(65536), kUseTuple);
      if (error) break;
      drained += bytes;
    }
    co_return false;
  }

  static HttpRequest Convert(http::request<http::string_body>&& message) {
    HttpRequest request{.method = std::string(message.method_string())};
    const std::string target(message.target());
    const size_t mark = target.find('?');
    request.path = target.substr(0, mark);
    if (mark != std::string::npos) request.query = target.substr(mark + 1);
    for (const auto& field : message) request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    request.body = std::move(message.body());
    request.id = MakeRequestId(request.FindHeader("X-Request-Id"));
    return request;
  }

  asio::awaitable<bool> Answer(http::request<http::string_body> message) {
    const unsigned version = message.version();
    const bool head = message.method() == http::verb::head;
    const bool wants_keep_alive = message.keep_alive();
    HttpRequest request = Convert(std::move(message));
    const std::string id = request.id;
    auto exchange = std::make_shared<Exchange>(stream_.get_executor(), shared_);
    asio::post(workers_, [shared = shared_, request = std::move(request),
                          responder = std::make_shared<GuardedResponder>(exchange, shared_)]() mutable {
      shared->handler(std::move(request), std::move(responder));
    });
    while (!exchange->HasHead()) {
      co_await exchange->Wait();
      if (!exchange->HasHead() && ClientGone()) {
        exchange->Close(/*disconnected=*/true);
        co_return false;
      }
    }
    const bool keep_alive = wants_keep_alive && !shared_->draining;
    bool sent;
    if (exchange->streaming()) {
      sent = co_await WriteStream(*exchange, version, keep_alive, id);
    } else {
      stream_.expires_after(shared_->config.write_timeout);
      sent = co_await WriteWhole(exchange->TakeHead(), version, keep_alive, head, id);
    }
    exchange->Close(/*disconnected=*/!sent);
    co_return sent&& keep_alive;
  }

  template <typename Body>
  static void SetHeaders(http::response<Body>& message, const HttpResponse& response, bool keep_alive, const std::string& id) {
    message.set(http::field::server, "pith");
    message.set(http::field::content_type, response.content_type);
    if (!id.empty()) message.set("X-Request-Id", id);
    for (const auto& [name, value] : response.headers) message.set(name, value);
    message.keep_alive(keep_alive);
  }

  asio::awaitable<bool> WriteWhole(HttpResponse response, unsigned version, bool keep_alive, bool head, std::string id) {
    http::response<http::string_body> message{static_cast<http::status>(response.status), version};
    SetHeaders(message, response, keep_alive, id);
    message.body() = std::move(response.body);
    message.prepare_payload();
    if (head) {
      http::response_serializer<http::string_body> serializer{message};
      auto [error, n] = co_await http::async_write_header(stream_, serializer, kUseTuple);
      co_return !error;
    }
    auto [error, n] = co_await http::async_write(stream_, message, kUseTuple);
    co_return !error;
  }

  asio::awaitable<bool> WriteStream(Exchange& exchange, unsigned version, bool keep_alive, std::string id) {
    http::response<http::empty_body> message{static_cast<http::status>(200), version};
    const HttpResponse response = exchange.TakeHead();
    message.result(static_cast<unsigned>(response.status));
    SetHeaders(message, response, keep_alive, id);
    message.chunked(true);
    http::response_serializer<http::empty_body> serializer{message};
    stream_.expires_after(shared_->config.write_timeout);
    if (auto [error, n] = co_await http::async_write_header(stream_, serializer, kUseTuple); error) co_return false;
    for (;;) {
      bool ended = false, overflowed = false;
      const std::string bytes = exchange.TakeChunks(&ended, &overflowed);
      stream_.expires_after(shared_->config.write_timeout);
      if (!bytes.empty()) {
        if (auto [error, n] = co_await asio::async_write(stream_, http::make_chunk(asio::buffer(bytes)), kUseTuple); error) co_return false;
      }
      if (overflowed) co_return false;
      if (ended) break;
      co_await exchange.Wait();
      if (ClientGone()) co_return false;
    }
    auto [error, n] = co_await asio::async_write(stream_, http::make_chunk_last(), kUseTuple);
    co_return !error;
  }

  // Whether the peer has closed its side or the connection is broken; a pipelined request is left unread.
  bool ClientGone() {
    char byte;
    const ssize_t n = recv(stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::shared_ptr<Shared> shared_;
  asio::thread_pool& workers_;
};

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
      asio::co_spawn(
          io,
          [](Tcp::socket s, std::shared_ptr<Shared> shared_state, asio::thread_pool& pool) -> asio::awaitable<void> {
            Connection connection(std::move(s), std::move(shared_state), pool);
            co_await connection.Run();
          }(std::move(socket), shared, workers),
          asio::detached);
    }
  }

  absl::Status Listen() {
    const std::string where = absl::StrCat(shared->config.host, ":", shared->config.port);
    beast::error_code error;
    const auto address = asio::ip::make_address(shared->config.host == "localhost" ? "127.0.0.1" : shared->config.host, error);
    if (error) return UsageError("--host: expected an IP address or localhost, found ", Printable(shared->config.host));
    const Tcp::endpoint endpoint(address, static_cast<uint16_t>(shared->config.port));
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error) return UnavailableError(where, ": cannot listen: ", error.message());
    port = acceptor.local_endpoint().port();
    return absl::OkStatus();
  }

  asio::io_context io{1};
  asio::thread_pool workers;
  Tcp::acceptor acceptor;
  std::shared_ptr<Shared> shared = std::make_shared<Shared>();
  std::thread io_thread;
  int port = 0;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpServerConfig& config, Handler handler, ErrorBody error_body) {
  auto impl = std::make_unique<Impl>(config);
  impl->shared->config = config;
  impl->shared->handler = std::move(handler);
  impl->shared->error_body = std::move(error_body);
  RETURN_IF_ERROR(impl->Listen());
  asio::co_spawn(impl->io, impl->Accept(), asio::detached);
  impl->io_thread = std::thread([io = &impl->io] { io->run(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
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
