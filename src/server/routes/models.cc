#include "base/json.h"
#include "server/api_error.h"
#include "server/route.h"

namespace pith {
namespace {

OrderedJson ModelJson(const ServerContext& context) {
  return {{"id", context.model.name},
          {"object", "model"},
          {"created", context.model.created_unix_seconds},
          {"owned_by", "pith"},
          {"max_model_len", context.bridge->config().max_model_len}};
}

}  // namespace

void HandleModels(const ServerContext& context, const HttpRequest&, std::shared_ptr<Responder> responder) {
  responder->Send({.body = DumpJson(OrderedJson({{"object", "list"}, {"data", OrderedJson::array({ModelJson(context)})}}))});
}

void HandleModel(const ServerContext& context, const HttpRequest& request, std::shared_ptr<Responder> responder) {
  const absl::Status status = CheckModelName(context.model, request.path.substr(sizeof("/v1/models/") - 1));
  if (!status.ok()) return responder->Send(ToResponse(ToApiError(status)));
  responder->Send({.body = DumpJson(ModelJson(context))});
}

}  // namespace pith
