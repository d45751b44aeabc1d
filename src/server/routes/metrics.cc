#include "server/route.h"

namespace pith {

void HandleMetrics(const ServerContext& context, const HttpRequest&, std::shared_ptr<Responder> responder) {
  responder->Send({.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = context.metrics->Text(context.bridge->metrics())});
}

}  // namespace pith
