// One client: its requests in turn, with limits and timeouts.
#pragma once

#include <memory>

#include "server/asio.h"
#include "server/http_exchange.h"

namespace pith {

// Serves until the client leaves, a limit or timeout is passed, or an answer says "Connection: close". `workers` runs the handlers and must
// outlive the coroutine.
boost::asio::awaitable<void> ServeConnection(boost::asio::ip::tcp::socket socket, std::shared_ptr<HttpShared> shared,
                                             boost::asio::thread_pool& workers);

}  // namespace pith
