#include "server/http_connection.h"

#include <poll.h>

#include <tuple>

#include "base/random.h"
#include "base/status.h"
#include "server/asio.h"
#include "server/http_exchange.h"

namespace pith {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLinger{2'000};  // how long a refused client may go on sending before it is cut

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

// Cancels the reads of `stream` when the time is over. The stream's own timeout would close the socket, and with it the way for a 408.
class ReadDeadline {
 public:
  ReadDeadline(beast::tcp_stream& stream, milliseconds limit) : timer_(stream.get_executor(), limit) {
    stream.expires_never();
    timer_.async_wait([state = state_, &stream](beast::error_code error) {
      if (error || state->done) return;
      state->expired = true;
      stream.cancel();
    });
  }
  ~ReadDeadline() {
    state_->done = true;
    timer_.cancel();
  }
  ReadDeadline(const ReadDeadline&) = delete;
  ReadDeadline& operator=(const ReadDeadline&) = delete;

  bool expired() const { return state_->expired; }

 private:
  struct State {
    bool done = false, expired = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
  asio::steady_timer timer_;
};

// Tells whoever answers that the connection is through with it, however it ends.
struct ExchangeCloser {
  HttpExchange& exchange;
  bool disconnected = true;
  ~ExchangeCloser() { exchange.Close(disconnected); }
};

class Connection {
 public:
  Connection(Tcp::socket socket, std::shared_ptr<HttpShared> shared, asio::thread_pool& workers)
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
    {
      const ReadDeadline deadline(stream_, shared_->config.header_timeout);
      auto [error, n] = co_await http::async_read_header(stream_, buffer_, parser, kUseTuple);
      if (error) co_return co_await Refuse(error, deadline.expired(), "header");
    }
    if (parser.get().target().size() > shared_->config.max_target_bytes)
      co_return co_await RefuseWith(414, "the request target is too long");
    // The body of any other coding would be taken for the next request.
    const auto coding = parser.get().find(http::field::transfer_encoding);
    if (coding != parser.get().end() && !beast::iequals(coding->value(), "chunked"))
      co_return co_await RefuseWith(400, "malformed HTTP header: expected no Transfer-Encoding but chunked");
    if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      http::response<http::empty_body> go_on{http::status::continue_, parser.get().version()};
      if (auto [error, n] = co_await http::async_write(stream_, go_on, kUseTuple); error) co_return false;
    }
    {
      const ReadDeadline deadline(stream_, shared_->config.body_timeout);
      auto [error, n] = co_await http::async_read(stream_, buffer_, parser, kUseTuple);
      if (error) co_return co_await Refuse(error, deadline.expired(), "body");
    }
    co_return co_await Answer(parser.release());
  }

  asio::awaitable<bool> Refuse(beast::error_code error, bool expired, absl::string_view part) {
    if (expired) co_return co_await RefuseWith(408, absl::StrCat("the request ", part, " did not arrive in time"));
    if (error == http::error::body_limit) {
      co_return co_await RefuseWith(413, absl::StrCat("the request body is longer than ", shared_->config.max_body_bytes, " bytes"));
    }
    if (error == http::error::header_limit) {
      co_return co_await RefuseWith(431, absl::StrCat("the request header is longer than ", shared_->config.max_header_bytes, " bytes"));
    }
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
    stream_.expires_after(kLinger);
    beast::error_code error;
    while (!error) std::tie(error, std::ignore) = co_await stream_.async_read_some(buffer_.prepare(65536), kUseTuple);
    co_return false;
  }

  static HttpRequest Convert(http::request<http::string_body>&& message) {
    HttpRequest request{.method = std::string(message.method_string())};
    const auto target = message.target();
    SplitTarget({target.data(), target.size()}, &request.path, &request.query);
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
    auto exchange = std::make_shared<HttpExchange>(stream_.get_executor(), shared_);
    asio::post(workers_, [shared = shared_, request = std::move(request), exchange]() mutable {
      RunHandler(shared, std::move(request), std::move(exchange));
    });
    ExchangeCloser closer{*exchange};
    while (!exchange->HasHead()) {
      co_await exchange->Wait();
      if (!exchange->HasHead() && ClientGone()) co_return false;
    }
    // A stream to HTTP/1.0, which knows no chunks, ends with the connection.
    const bool keep_alive = wants_keep_alive && !shared_->draining && (version >= 11 || !exchange->streaming());
    bool sent;
    if (exchange->streaming()) {
      sent = co_await WriteStream(*exchange, version, keep_alive, id);
    } else {
      stream_.expires_after(shared_->config.write_timeout);
      sent = co_await WriteWhole(exchange->TakeHead(), version, keep_alive, head, id);
    }
    closer.disconnected = !sent;
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

  asio::awaitable<bool> WriteStream(HttpExchange& exchange, unsigned version, bool keep_alive, std::string id) {
    http::response<http::empty_body> message{static_cast<http::status>(200), version};
    const HttpResponse response = exchange.TakeHead();
    message.result(static_cast<unsigned>(response.status));
    SetHeaders(message, response, keep_alive, id);
    const bool chunked = version >= 11;
    if (chunked) message.chunked(true);
    http::response_serializer<http::empty_body> serializer{message};
    stream_.expires_after(shared_->config.write_timeout);
    if (auto [error, n] = co_await http::async_write_header(stream_, serializer, kUseTuple); error) co_return false;
    for (;;) {
      bool ended = false, overflowed = false;
      const std::string bytes = exchange.TakeChunks(&ended, &overflowed);
      stream_.expires_after(shared_->config.write_timeout);
      if (!bytes.empty() && !co_await WritePart(bytes, chunked)) co_return false;
      if (overflowed) co_return false;
      if (ended) break;
      co_await exchange.Wait();
      if (ClientGone()) co_return false;
    }
    if (!chunked) co_return true;
    auto [error, n] = co_await asio::async_write(stream_, http::make_chunk_last(), kUseTuple);
    co_return !error;
  }

  asio::awaitable<bool> WritePart(const std::string& bytes, bool chunked) {
    beast::error_code error;
    if (chunked) {
      std::tie(error, std::ignore) = co_await asio::async_write(stream_, http::make_chunk(asio::buffer(bytes)), kUseTuple);
    } else {
      std::tie(error, std::ignore) = co_await asio::async_write(stream_, asio::buffer(bytes), kUseTuple);
    }
    co_return !error;
  }

  // Whether the peer has closed its side or the connection is broken, also behind a pipelined request that is still unread.
  bool ClientGone() {
    pollfd state = {stream_.socket().native_handle(), POLLRDHUP, 0};
    return poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::shared_ptr<HttpShared> shared_;
  asio::thread_pool& workers_;
};

}  // namespace

asio::awaitable<void> ServeConnection(Tcp::socket socket, std::shared_ptr<HttpShared> shared, asio::thread_pool& workers) {
  Connection connection(std::move(socket), std::move(shared), workers);
  co_await connection.Run();
}

}  // namespace pith
