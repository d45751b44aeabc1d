// One HTTP route: a row of route_table.cc, a handler in routes/<name>.cc, an entry in docs/http_api.md.
#pragma once

#include <memory>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/http_types.h"
#include "server/server_context.h"

namespace pith {

struct Route {
  absl::string_view method;  // "GET" (HEAD is answered too) or "POST"
  absl::string_view path;    // exact, or ending in "/*": any one further segment
  void (*handle)(const ServerContext& context, const HttpRequest& request, std::shared_ptr<Responder> responder);
};

// THE TABLE.
absl::Span<const Route> Routes();

// Finds the row and calls it; 404 for an unknown path, 405 with Allow for a wrong method. Counts the request.
void Dispatch(const ServerContext& context, const HttpRequest& request, std::shared_ptr<Responder> responder);

}  // namespace pith
