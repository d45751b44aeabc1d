#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "server/api_error.h"
#include "server/route.h"

namespace pith {

// Defined in routes/.
void HandleCompletions(const ServerContext& context, const HttpRequest& request, std::shared_ptr<Responder> responder);
void HandleChatCompletions(const ServerContext& context, const HttpRequest& request, std::shared_ptr<Responder> responder);
void HandleModels(const ServerContext& context, const HttpRequest& request, std::shared_ptr<Responder> responder);
void HandleModel(const ServerContext& context, const HttpRequest& request, std::shared_ptr<Responder> responder);
void HandleHealth(const ServerContext& context, const HttpRequest& request, std::shared_ptr<Responder> responder);
void HandleMetrics(const ServerContext& context, const HttpRequest& request, std::shared_ptr<Responder> responder);

namespace {

constexpr Route kRoutes[] = {
    {"POST", "/v1/completions", HandleCompletions},
    {"POST", "/v1/chat/completions", HandleChatCompletions},
    {"GET", "/v1/models", HandleModels},
    {"GET", "/v1/models/*", HandleModel},
    {"GET", "/health", HandleHealth},
    {"GET", "/metrics", HandleMetrics},
};

bool Matches(absl::string_view pattern, absl::string_view path) {
  if (!absl::EndsWith(pattern, "/*")) return pattern == path;
  const absl::string_view prefix = pattern.substr(0, pattern.size() - 1);
  return absl::StartsWith(path, prefix) && path.size() > prefix.size();
}

// Counts the response when it is sent.
class CountingResponder : public Responder {
 public:
  CountingResponder(std::shared_ptr<Responder> inner, ServerMetrics* metrics, absl::string_view route)
      : inner_(std::move(inner)), metrics_(metrics), route_(route) {}
  void Send(HttpResponse response) override {
    metrics_->CountResponse(route_, response.status);
    inner_->Send(std::move(response));
  }
  void BeginStream(HttpResponse response) override {
    metrics_->CountResponse(route_, response.status);
    inner_->BeginStream(std::move(response));
  }
  bool Write(std::string chunk) override { return inner_->Write(std::move(chunk)); }
  void End() override { inner_->End(); }
  void OnDisconnect(std::function<void()> callback) override { inner_->OnDisconnect(std::move(callback)); }

 private:
  std::shared_ptr<Responder> inner_;
  ServerMetrics* metrics_;
  absl::string_view route_;
};

}  // namespace

absl::Span<const Route> Routes() { return kRoutes; }

void Dispatch(const ServerContext& context, const HttpRequest& request, std::shared_ptr<Responder> responder) {
  const absl::string_view method = request.method == "HEAD" ? "GET" : absl::string_view(request.method);
  std::vector<absl::string_view> allowed;
  for (const Route& route : kRoutes) {
    if (!Matches(route.path, request.path)) continue;
    if (route.method == method) {
      return route.handle(context, request, std::make_shared<CountingResponder>(std::move(responder), context.metrics, route.path));
    }
    allowed.push_back(route.method);
  }
  const int status = allowed.empty() ? 404 : 405;
  HttpResponse response = ToResponse(
      MakeApiError(status, allowed.empty() ? absl::StrCat("no such path: ", Printable(request.path))
                                           : absl::StrCat(Printable(request.path), ": expected ", absl::StrJoin(allowed, " or "),
                                                          ", found ", Printable(request.method))));
  if (!allowed.empty()) response.headers.emplace_back("Allow", absl::StrJoin(allowed, ", "));
  context.metrics->CountResponse("other", status);
  responder->Send(std::move(response));
}

}  // namespace pith
