#include "server/api_error.h"
#include "server/route.h"

namespace pith {
namespace {

constexpr std::chrono::milliseconds kStall{15'000};

}  // namespace

// 200 while the engine is idle or makes progress; 503 when it is stalled or the server is draining.
void HandleHealth(const ServerContext& context, const HttpRequest&, std::shared_ptr<Responder> responder) {
  if (context.bridge->draining()) return responder->Send(ToResponse(MakeApiError(503, "the server is shutting down")));
  if (!context.bridge->MakesProgress(kStall)) return responder->Send(ToResponse(MakeApiError(503, "the engine makes no progress")));
  responder->Send({.body = "{\"status\":\"ok\"}"});
}

}  // namespace pith
